"""The licences of what tarviz brings: every extra is told of, and the bill of materials follows what is installed."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from types import ModuleType

import pytest

from docs import tables

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def sbom() -> ModuleType:
    pytest.importorskip("packaging", reason="packaging is not installed")
    spec = importlib.util.spec_from_file_location("sbom", ROOT / ".ci" / "sbom.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_licence_of_every_direct_requirement_is_known(sbom: ModuleType):
    known = json.loads((ROOT / "docs" / "licences.json").read_text("utf-8"))

    assert {need.name for needs in sbom.asked().values() for need in needs} == set(known)
    assert [] == [name for name, text in known.items() if len(text) < 3]


def test_the_table_has_every_extra_with_all_it_asks_for(sbom: ModuleType):
    lines = tables.licences().splitlines()
    for extra, needs in sbom.asked().items():
        (line,) = [line for line in lines if line.startswith(f"| `{extra}` |" if extra else "| (the core) |")] if needs else [""]
        assert [] == [need.name for need in needs if need.name not in line], extra


@pytest.mark.matrix
def test_the_bill_names_version_licence_and_extras_of_what_is_installed(sbom: ModuleType, tmp_path: Path):
    subprocess.run([sys.executable, str(ROOT / ".ci" / "sbom.py"), str(tmp_path / "bill.json")], check=True)
    bill = json.loads((tmp_path / "bill.json").read_text("utf-8"))
    parts = {each["name"]: each for each in bill["components"]}

    assert ("CycloneDX", "1.5", "tarviz") == (bill["bomFormat"], bill["specVersion"], bill["metadata"]["component"]["name"])
    assert metadata.version("click") == parts["click"]["version"]
    assert f"pkg:pypi/click@{metadata.version('click')}" == parts["click"]["purl"]
    assert [{"license": {"name": "BSD-3-Clause"}}] == parts["click"]["licenses"]
    assert {"core"} <= {each["value"] for each in parts["numpy"]["properties"]}
    for extra, needs in sbom.asked().items():
        for need in needs:
            if need.marker is None or need.marker.evaluate({"extra": ""}):
                part = parts[sbom.canonicalize_name(need.name)]
                assert {"name": "tarviz:extra", "value": extra or "core"} in part["properties"]
                assert part["licenses"]


def test_what_a_package_needs_in_turn_is_in_it_once(sbom: ModuleType):
    found = [name for name, _ in sbom.brought([sbom.Requirement("moto[server]"), sbom.Requirement("pytest")])]

    assert len(set(found)) == len(found)
    assert "pluggy" in found
