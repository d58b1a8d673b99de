"""Local names: the path behind a URL, what is a shard, what lies near a name that does not exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from tarviz.model.errors import UsageError
from tarviz.stores.paths import is_shard, local_path, nearest


class TestLocalPath:
    @pytest.mark.parametrize(
        ("url", "path"),
        [
            ("file:///a%20b.tar", "/a b.tar"),
            ("FILE://localhost/a.tar", "/a.tar"),
            ("file:a.tar", "a.tar"),
            ("file:/a%20b.tar", "/a%20b.tar"),
            ("file:///%FF", "/\udcff"),
            ("a%20b.tar", "a%20b.tar"),
        ],
    )
    def test_schemes_are_taken_off(self, url: str, path: str):
        assert path == local_path(url)

    def test_a_file_of_that_very_name_is_meant(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "file:a.tar").touch()

        assert "file:a.tar" == local_path("file:a.tar")

    def test_the_home_folder_has_its_sign(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("HOME", "/home/x")

        assert "/home/x/a.tar" == local_path("~/a.tar")
        assert "a~/b" == local_path("a~/b")

    @pytest.mark.parametrize("url", ["file://other/a.tar", "a\0b.tar"])
    def test_what_is_no_path_here_is_refused(self, url: str):
        with pytest.raises(UsageError):
            local_path(url)


@pytest.mark.parametrize(
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
        for name in ("b.tar", "a10.tar", "a2.tar", "z.txt"):
            (tmp_path / name).touch()

        assert f"Nearest in {tmp_path}: a2.tar, a10.tar, b.tar." == nearest(str(tmp_path / "qqqqqqqqq"))

    def test_the_folder_that_is_missing_is_named(self, tmp_path: Path):
        (tmp_path / "data").mkdir()
        text = nearest(str(tmp_path / "date" / "x" / "a.tar"))

        assert f"There is no folder {tmp_path / 'date'}." in text
        assert f"Nearest in {tmp_path}: data." in text

    def test_an_empty_folder_is_said_to_be_empty(self, tmp_path: Path):
        assert f"The folder {tmp_path} is empty." == nearest(str(tmp_path / "a.tar"))
