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

from tarviz.formats.tar_header import TAR_END, Spans, plain_header, tar_header, tar_member
from tarviz.model.errors import UsageError
from tarviz.read import stream
from tests.read.tars import END, member, raw

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

    @pytest.mark.parametrize(("length", "blocks"), [(100, 1), (101, 3), (300, 3), (511, 3), (512, 4)])
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

    def test_a_link_may_be_long_too(self):
        (info,) = opened(tar_header("a.lnk", 0, type="symlink", link="t" * 200) + TAR_END)

        assert ("a.lnk", "t" * 200, True) == (info.name, info.linkname, info.issym())


class TestNumbers:
    @pytest.mark.parametrize("size", [0, 8**11 - 1, 8**11, 1 << 50])
    @pytest.mark.parametrize("mtime", [0, -1, 8**11, -(2**40)])
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


class TestSpans:
    DATA = (
        member("a.txt", b"1")
        + member("a.cls", b"2")
        + member("b.txt", b"3")
        + raw("k.lnk", 0, b"1")
        + member("b.cls", b"4")
        + member("c.txt", b"5")
    )

    def spans(self, tmp_path: Path, end: bytes = END) -> Spans:
        (tmp_path / "a.tar").write_bytes(self.DATA + end)
        with pytest.warns(Warning, match="W_"):
            (block,) = stream.blocks(str(tmp_path / "a.tar"), stream.ReadOptions(strict=False))
        return Spans(block)

    def test_records_side_by_side_are_one_piece(self, tmp_path: Path):
        spans = self.spans(tmp_path)

        assert 3 == len(spans)
        assert [2048, 2048, 1024] == spans.size.tolist()
        assert [self.DATA[:3072], self.DATA[3584:]] == [bytes(piece) for piece in spans.buffers()]

    def test_what_is_of_no_record_stays_behind(self, tmp_path: Path):
        assert [self.DATA[2048:3072], self.DATA[3584:4608]] == [bytes(piece) for piece in self.spans(tmp_path).buffers(1, 2)]
