"""Members that other readers lose, or we did, in silence: volumes, links with a size, headers under zeros, long PAX sizes."""

from __future__ import annotations

import gzip
import subprocess
import warnings
from pathlib import Path

import pytest

import tarviz
from tarviz.formats.tar_header import TAR_END, tar_header, tar_member
from tarviz.model.errors import DataError, LimitError
from tests.conftest import each_case


def retyped(header: bytes, kind: bytes, *, checksum: bool = True) -> bytes:
    """A header of another type; with `checksum=False` one whose checksum is wrong."""
    block = header[:148] + b" " * 8 + kind + header[157:512]
    total = sum(block) + (0 if checksum else 1)
    return block[:148] + b"%06o\0 " % total + block[156:]


def written(path: Path, *pieces: bytes) -> str:
    path.write_bytes(b"".join(pieces))
    return str(path)


def member(name: str, data: bytes = b"text") -> bytes:
    return b"".join(tar_member(name, data))


def outcome(url: str, **options: object) -> tuple[list[tuple[str, list[str], bool]], str, list[str]]:
    """Records with their fields and whether they may lack one, the error's code, and the codes of the warnings."""
    rows, code = [], ""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            rows.extend((record.key, sorted(record), record.pending) for record in tarviz.records(url, **options))
        except DataError as error:
            code = error.code
    return rows, code, [str(each.message).split(":")[0] for each in seen]


@pytest.fixture
def volumes(tmp_path: Path) -> Path:
    """The last of three volumes that GNU tar wrote: it begins with the rest of a file."""
    for number in range(6):
        (tmp_path / f"k{number}.bin").write_bytes(bytes([number]) * 60_000)
        (tmp_path / f"k{number}.cls").write_bytes(b"%d" % number)
    names = [f"k{number}.{ext}" for number in range(6) for ext in ("bin", "cls")]
    argv = ["tar", "-c", "-M", "-L", "150", "-f", "v1.tar", "-f", "v2.tar", "-f", "v3.tar", *names]
    subprocess.run(argv, cwd=tmp_path, check=True, capture_output=True)
    assert b"M" == (tmp_path / "v3.tar").read_bytes()[156:157]
    return tmp_path / "v3.tar"


class TestVolumes:
    def test_the_rest_of_a_file_is_an_error_that_says_so(self, volumes):
        with pytest.raises(DataError, match="continued from another volume") as caught, pytest.warns(match="W_CONTINUED"):
            list(tarviz.records(volumes))

        assert "E_TRUNCATED" == caught.value.code
        assert caught.value.member.endswith(".bin")

    def test_a_record_that_such_a_file_is_of_is_not_given_whole(self, tmp_path):
        rest = retyped(tar_header("k1.bin", 4), b"M") + b"rest".ljust(512, b"\0")
        url = written(tmp_path / "a.tar", member("k0.cls"), member("k1.cls"), rest, member("k2.cls"), TAR_END)

        rows, code, _ = outcome(url)
        assert ([("k0", ["cls"], False)], "E_TRUNCATED") == (rows, code)

        rows, code, _ = outcome(url, on_error="skip")
        assert (["k0", "k2"], "") == ([key for key, _, _ in rows], code)

    @pytest.mark.parametrize("first", [True, False])
    def test_lenient_reading_marks_the_record_that_it_is_of(self, tmp_path, first):
        rest = retyped(tar_header("k1.bin", 4), b"M") + b"rest".ljust(512, b"\0")
        pair = [rest, member("k1.cls")] if first else [member("k1.cls"), rest]
        url = written(tmp_path / "a.tar", member("k0.cls"), *pair, member("k2.cls"), TAR_END)

        rows, _, codes = outcome(url, strict=False)
        assert [False, True, False] == [pending for _, _, pending in rows]
        assert [False, True, False] == [record.pending for record in tarviz.index(url)]
        assert "W_CONTINUED" in str(codes)

    def test_lenient_reading_leaves_it_out_and_warns(self, volumes):
        rows, code, codes = outcome(str(volumes), strict=False)

        assert not code
        assert {"bin"} <= {field for _, fields, _ in rows[1:] for field in fields}
        assert any("continued" in text or "W_CONTINUED" in text for text in codes)

    def test_a_list_of_old_names_is_told(self, tmp_path):
        url = written(tmp_path / "a.tar", retyped(tar_header("names", 4), b"N") + b"list".ljust(512, b"\0"), member("k0.cls"), TAR_END)

        rows, code, codes = outcome(url)
        assert ([("k0", ["cls"], False)], "") == (rows, code)
        assert any("old names" in text or "W_SKIPPED_TYPE" in text for text in codes)


def test_a_link_with_a_size_does_not_take_a_damaged_header_for_its_data(tmp_path):
    link = retyped(tar_header("k0.lnk", 700), b"1")
    damaged = retyped(tar_header("k0.json", 4), b"0", checksum=False) + b"data".ljust(512, b"\0")
    url = written(tmp_path / "a.tar", member("k0.txt"), link, damaged, TAR_END)

    rows, code, _ = outcome(url)
    assert ([], "E_CHECKSUM") == (rows, code)


@pytest.mark.parametrize("rows_before", [0, 1, 3])
def test_a_record_before_a_header_under_zeros_may_lack_a_member(tmp_path, rows_before):
    whole = [member(f"k{number}.{ext}") for number in range(rows_before) for ext in ("cls", "txt")]
    lost = bytes(512) + member("last.txt")[512:]
    url = written(tmp_path / "a.tar", *whole, member("last.cls"), lost, TAR_END)

    rows, _, codes = outcome(url)
    assert ("last", ["cls"], True) == rows[-1]
    assert not any(pending for _, _, pending in rows[:-1])
    assert codes
    index = tarviz.index(url)
    assert [key for key, _, _ in rows] == [record.key for record in index]
    assert index[len(index) - 1].pending


def test_stream_and_index_agree_where_several_records_may_lack_a_member(tmp_path):
    """An extension header without a member before one end, and no end mark behind what follows."""
    orphan = retyped(tar_header("././@LongLink", 6), b"L") + b"a.json".ljust(512, b"\0")
    url = written(tmp_path / "a.tar", member("a.txt"), orphan, TAR_END, member("b.cls"), member("c.txt"))

    rows, _, _ = outcome(url, strict=False, concatenated=True)
    assert [("a", True), ("b", False), ("c", True)] == [(key, pending) for key, _, pending in rows]
    index = tarviz.index(url, strict=False, concatenated=True)
    assert [True, False, True] == [record.pending for record in index]
    (shard,) = index.shards
    kept = type(shard).load(b"".join(shard.dump()))
    assert (0, 2) == kept.pending
    assert [True, True] == [record.pending for record in tarviz.index(url, strict=False, concatenated=True, keys=["c", "a"])]


@each_case(("size", "right"), [(b"4", True), (b"0" * 30 + b"4", True), (b"9" * 19, False), (b"-4", False), (b" 4", False)])
def test_a_pax_size_may_have_zeros_before_it(tmp_path, size, right):
    body = b"size=" + size + b"\n"
    length = next(total for total in range(len(body), 99) if len(b"%d " % total) + len(body) == total)
    record = b"%d " % length + body
    extension = retyped(tar_header("PaxHeader/k0.txt", len(record)), b"x") + record.ljust(512, b"\0")
    url = written(tmp_path / "a.tar", extension, member("k0.txt"), TAR_END)

    if right:
        assert [b"text"] == [bytes(record["txt"]) for record in tarviz.records(url)]
    else:
        with pytest.raises(DataError) as caught:
            list(tarviz.records(url))
        assert "E_SIZE" == caught.value.code


class TestRatio:
    def packed(self, path: Path, size: int) -> str:
        with gzip.open(path, "wb") as out:
            out.write(tar_header("mask.bin", size))
            for _ in range(size >> 20):
                out.write(bytes(1 << 20))
            out.write(TAR_END)
        return str(path)

    def test_an_archive_of_zeros_that_stays_small_is_read(self, tmp_path):
        (record,) = tarviz.records(self.packed(tmp_path / "a.tar.gz", 50 << 20))

        assert 50 << 20 == len(record["bin"])

    def test_one_that_goes_on_is_refused(self, tmp_path):
        with pytest.raises(LimitError, match="to 1"):
            list(tarviz.records(self.packed(tmp_path / "a.tar.gz", 80 << 20)))


def test_the_list_of_a_folder_that_gnu_tar_writes_with_increments_is_passed_over(tmp_path):
    """A member of type D has a payload: the names that lie in the folder."""
    names = b"Yk0.txt\0Yk1.txt\0\0"
    listed = retyped(tar_header("folder/", len(names)), b"D") + names + bytes(512 - len(names))

    found = outcome(written(tmp_path / "a.tar", member("k0.txt"), listed, member("k1.txt"), TAR_END))

    assert ([("k0", ["txt"], False), ("k1", ["txt"], False)], "") == found[:2]
