"""Fetches what test_peers.py runs, into build/peers: the files that peers.json pins, held against its checksums, and two older webdatasets.

`make test-peers` calls it; nothing of what it fetches is committed.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

PEERS: dict[str, dict[str, object]] = json.loads(Path(__file__).with_name("peers.json").read_text("utf-8"))
SOURCE = "https://raw.githubusercontent.com"
PLACE = Path(__file__).parents[3] / "build" / "peers"
WEBDATASETS = ("0.2.86", "0.2.111")  # that open_clip pins; the last with wids


def right(peer: str) -> bool:
    """Whether the files of a peer are there, and are those that are pinned."""
    files: dict[str, str] = PEERS[peer]["files"]  # type: ignore[assignment]
    paths = {PLACE / peer / name: checksum for name, checksum in files.items()}
    return all(path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == checksum for path, checksum in paths.items())


def fetch(peer: str) -> None:
    """Fetch the files of a peer."""
    about = PEERS[peer]
    for name, checksum in about["files"].items():  # type: ignore[attr-defined]
        url = f"{SOURCE}/{about['repository']}/{about['commit']}/{name}"
        with urlopen(url, timeout=60) as answer:
            data = answer.read()
        if hashlib.sha256(data).hexdigest() != checksum:
            sys.exit(f"{url} is not the file that peers.json pins.")
        path = PLACE / peer / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


if __name__ == "__main__":
    for each in PEERS:
        if not right(each):
            fetch(each)
    for version in WEBDATASETS:
        folder = PLACE / f"webdataset-{version}"
        if not folder.is_dir():
            quiet = ["--quiet", "--disable-pip-version-check", "--no-deps"]
            subprocess.run([sys.executable, "-m", "pip", "install", *quiet, "--target", str(folder), f"webdataset=={version}"], check=True)
