"""What `convert` returns: the paths written, as text and data."""

from __future__ import annotations

import io
import json
import os
import tarfile
from pathlib import Path

import numpy as np

import tarviz
from tarviz.commands import convert as module
from tarviz.commands.convert import convert
from tarviz.model.types import URL
from tarviz.outputs import Written


def make(path: Path, records: list[tuple[str, dict[str, bytes]]]) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for key, fields in records:
            for ext, data in fields.items():
                info = tarfile.TarInfo(f"{key}.{ext}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return str(path)


def some(count: int, seed: int = 0, size: int = 3000) -> list[tuple[str, dict[str, bytes]]]:
    rng = np.random.default_rng(seed)
    return [(f"s{seed}/k{at:05d}", {"jpg": rng.bytes(int(rng.integers(size))), "cls": b"%d" % rng.integers(300)}) for at in range(count)]


def shards(folder: Path, count: int = 5, records: int = 40) -> list[str]:
    return [make(folder / f"train-{at:04d}.tar", some(records + at, at)) for at in range(count)]


class TestResult:
    def test_it_is_a_sequence_of_paths_with_figures(self, tmp_path):
        shards(tmp_path / "in", 3, 3)

        found = convert(tmp_path / "in", tmp_path / "t-{}.tfrecord")

        assert isinstance(found[0], str)
        assert found[1:] == list(found)[1:]
        assert found == list(found)
        assert repr(list(found)) == repr(found)
        assert sum(os.path.getsize(path) for path in found) == found.bytes
        assert "text/html" in found._repr_mimebundle_()

    def test_many_outputs_are_counted_not_listed(self, tmp_path):
        path = make(tmp_path / "a.tar", some(100))

        text = str(convert(path, tmp_path / "t.tfrecord", max_shard_size=1))

        assert "… 81 more" in text
        assert "100 files" in text

    def test_secrets_in_urls_are_not_shown(self):
        found = module.Converted([Written(URL("http://me:pw@host/a?sig=abc"), 1, 1, "")], tarviz.read.stream.ReadReport())

        assert "pw" not in str(found)
        assert "abc" not in json.dumps(found.to_dict())
