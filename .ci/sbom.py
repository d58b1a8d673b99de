"""Write what tarviz and each extra bring, with versions and licences, as CycloneDX 1.5: `python .ci/sbom.py FILE`.

It is made from the metadata of what is installed where it runs, through all that a package needs in turn. A requirement that is not
installed has no version there; its licence is the one of `docs/licences.json`, which `--licences` writes anew.
"""

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LICENCES = ROOT / "docs" / "licences.json"
_SPDX = {  # what authors write in place of an identifier
    "": None,
    "UNKNOWN": None,
    "Dual License": None,
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache": "Apache-2.0",
    "Apache License": "Apache-2.0",
    "Apache 2.0 License": "Apache-2.0",
    "BSD 2-Clause License": "BSD-2-Clause",
    "BSD 3-Clause": "BSD-3-Clause",
    "ISC license": "ISC",
    "MIT license": "MIT",
    "PSFL": "PSF-2.0",
    "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "Apache Software License 2.0": "Apache-2.0",
    "BSD": "BSD-3-Clause",
    "BSD License": "BSD-3-Clause",
    "BSD 3-Clause License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "ISC License": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}


def asked() -> dict[str, list[Requirement]]:
    """The direct requirements of the core (its name is "") and of every extra; those of another extra of ours stand there."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    every = {"": project["dependencies"], **project["optional-dependencies"]}
    found = {extra: [Requirement(each) for each in needs] for extra, needs in every.items()}
    return {extra: [need for need in needs if need.name != "tarviz"] for extra, needs in found.items()}


def licence(about: Any) -> str | None:
    """What a package's metadata says, as SPDX where it is one line."""
    text = about.get("License-Expression") or about.get("License") or ""
    if "\n" in text or _SPDX.get(text, text) is None:  # none, or all of it
        said = [line.rpartition(" :: ")[2] for line in about.get_all("Classifier") or () if line.startswith("License ::")]
        text = " OR ".join(_SPDX.get(each) or each for each in said if each != "OSI Approved") or text.partition("\n")[0]
    return _SPDX.get(text.strip(), text.strip())


def brought(needs: list[Requirement]) -> Iterator[tuple[str, Any]]:
    """Name and metadata of everything that these requirements bring here; None for what is not installed."""
    seen: set[tuple[str, str]] = set()
    queue = [(need, "") for need in needs]
    while queue:
        need, extra = queue.pop()
        if need.marker is not None and not need.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(need.name)
        new = [(name, each) for each in ("", *need.extras) if (name, each) not in seen]
        seen.update(new)
        try:
            about = metadata.distribution(need.name)
        except metadata.PackageNotFoundError:
            about = None
        if (name, "") in new:
            yield name, None if about is None else about.metadata
        queue += [(Requirement(text), each) for _, each in new for text in (about.requires or () if about is not None else ())]


def bill(version: str) -> dict[str, Any]:
    """The bill of materials; each component says which extras bring it."""
    known = {canonicalize_name(name): text for name, text in json.loads(LICENCES.read_text("utf-8")).items()}
    parts: dict[str, dict[str, Any]] = {}
    for extra, needs in asked().items():
        for name, about in brought(needs):
            part = parts.setdefault(name, {"type": "library", "name": name, "purl": f"pkg:pypi/{name}", "properties": []})
            if about is not None:
                part |= {"version": about["Version"], "purl": f"pkg:pypi/{name}@{about['Version']}"}
            if text := (licence(about) if about is not None else None) or known.get(name):
                part["licenses"] = [{"license": {"name": text}}]
            part["properties"].append({"name": "tarviz:extra", "value": extra or "core"})
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "library", "name": "tarviz", "version": version, "purl": f"pkg:pypi/tarviz@{version}"}},
        "components": [parts[name] for name in sorted(parts)],
    }


def licences() -> dict[str, str]:
    """Direct requirements and their licences: as installed here, else as they were known before."""
    known = json.loads(LICENCES.read_text("utf-8")) if LICENCES.is_file() else {}
    found = {}
    for name in sorted({need.name for needs in asked().values() for need in needs}, key=str.lower):
        try:
            said = licence(metadata.metadata(name))
        except metadata.PackageNotFoundError:
            said = None
        found[name] = said or known.get(name, "?")
    return found


if __name__ == "__main__":
    if sys.argv[1:] == ["--licences"]:
        LICENCES.write_text(json.dumps(licences(), indent=1) + "\n", "utf-8")
    else:
        told = re.search(r'__version__ = "(.*)"', (ROOT / "tarviz" / "__init__.py").read_text("utf-8"))
        assert told is not None
        Path(sys.argv[1]).write_text(json.dumps(bill(told[1]), indent=1) + "\n", "utf-8")
