"""What is a shard, what lies near a name that does not exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from tarviz.stores.paths import is_shard, nearest
from tests.conftest import each_case


@each_case(
    ("name", "expected"), [("a.tar", True), ("A.TGZ", True), ("a.tar.zst", True), (".a.tar", False), ("a.tar.tmp", False), ("tar", False)]
)
def test_a_shard_is_told_by_its_suffix(name: str, expected: bool):
    assert expected == is_shard(name)


class TestNearest:
    def test_a_close_name_is_offered(self, tmp_path: Path):
        for name in ("train-0000.tar", ".train-000.tar", "x.txt"):
            (tmp_path / name).touch()

        assert f"Nearest in {tmp_path}: train-0000.tar." == nearest(str(tmp_path / "train-000.tar"))

    def test_shards_are_offered_where_no_name_is_close(self, tmp_path: Path):
        for name in ("b.tar", "a10.tar", "a2.tar", "c.tar", "z.txt"):
            (tmp_path / name).touch()

        assert f"Nearest in {tmp_path}: a2.tar, a10.tar, b.tar." == nearest(str(tmp_path / "qqqqqqqqq"))

    def test_the_folder_that_is_missing_is_named(self, tmp_path: Path):
        (tmp_path / "data").mkdir()
        text = nearest(str(tmp_path / "date" / "x" / "a.tar"))

        assert f"There is no folder {tmp_path / 'date'}." in text
        assert f"Nearest in {tmp_path}: data." in text

    def test_an_empty_folder_is_said_to_be_empty(self, tmp_path: Path):
        assert f"The folder {tmp_path} is empty." == nearest(str(tmp_path / "a.tar"))

    def test_where_only_others_lie_there_is_nothing_to_say(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "z.txt").touch()
        assert "" == nearest("qqqqqqqqq")

        (tmp_path / "z.tar").touch()
        assert "Nearest in .: z.tar." == nearest("qqqqqqqqq")
