"""Headers written are read by others as they were meant: names, sizes and times of any kind."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarviz.formats.tar_header import TAR_END, plain_header, tar_header, tar_member
from tarviz.model.errors import UsageError
from tests.conftest import each_case

NAMES = st.lists(
    st.binary(min_size=1, max_size=120).filter(lambda part: b"\0" not in part and b"/" not in part), min_size=1, max_size=4
).map(b"/".join)


def opened(data: bytes) -> list[tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(data), encoding="utf-8", errors="surrogateescape") as tar:
        return list(tar)


class TestNames:
    @given(NAMES)
    def test_any_bytes_are_kept_exactly(self, name: bytes):
        (info,) = opened(b"".join(map(bytes, tar_member(name, b"payload"))) + TAR_END)

        assert name == info.name.encode("utf-8", "surrogateescape").rstrip(b"/") + b"/" * (len(name) - len(name.rstrip(b"/")))
        assert 7 == info.size

    @each_case(("length", "blocks"), [(100, 1), (101, 3), (300, 3), (511, 3), (512, 4)])
    def test_a_name_without_a_slash_is_long_from_101_bytes_on(self, length: int, blocks: int):
        assert 512 * blocks == len(tar_header("n" * length, 0))

    @given(NAMES, st.one_of(st.integers(0, 1 << 20), st.sampled_from([8**11 - 1, 8**11, 1 << 40])))
    def test_the_quick_header_is_the_same(self, name: bytes, size: int):
        assert tar_header(name, size) == plain_header(name, size)

    def test_with_a_slash_in_its_place_it_fits_in_ustar(self):
        assert 512 == len(tar_header("d" * 155 + "/" + "n" * 100, 0))
        assert 512 < len(tar_header("d" * 156 + "/" + "n" * 100, 0))

    @pytest.mark.parametrize("name", ["", "a\0b", b"\0"])
    def test_a_name_that_cannot_be_is_refused(self, name: str | bytes):
        with pytest.raises(UsageError, match="cannot name a member"):
            tar_header(name, 0)


class TestNumbers:
    @each_case("size", [0, 8**11 - 1, 8**11, 1 << 50])
    @each_case("mtime", [0, -1, 8**11, -(2**40)])
    def test_large_and_negative_ones_are_in_base_256(self, size: int, mtime: int):
        info = tarfile.TarInfo.frombuf(tar_header("a.bin", size, mtime), "utf-8", "strict")

        assert (size, mtime, 0o644) == (info.size, info.mtime, info.mode)
        with pytest.raises(UsageError):
            tar_header("a.bin", -1)

    @pytest.mark.skipif(not shutil.which("tar"), reason="no tar here")
    def test_gnu_tar_reads_them(self, tmp_path: Path):
        names = ["a.txt", "d" * 150 + "/" + "e" * 90 + ".txt", "n" * 240 + ".txt"]
        (tmp_path / "a.tar").write_bytes(b"".join(bytes(part) for name in names for part in tar_member(name, name.encode(), 5)) + TAR_END)
        done = subprocess.run(["tar", "tf", tmp_path / "a.tar"], check=True, capture_output=True, text=True)

        assert names == done.stdout.splitlines()
