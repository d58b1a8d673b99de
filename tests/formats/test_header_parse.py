"""Headers that are read with care: long ustar names, old GNU sparse maps of several blocks, what maps may claim, PAX padding, times."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from tarviz.formats import header_parse, pax
from tarviz.formats.tar import Scanner
from tarviz.model.errors import DataError, TarvizWarning
from tarviz.read import stream
from tarviz.testing.strategies import shard
from tests.conftest import each_case
from tests.read import tars
from tests.read.tars import END, member, raw

DEEP = f"{'d' * 90}/{'e' * 50}"


def sparse_tar(folder: Path, pieces: int) -> None:
    """`a.tar` with one old GNU sparse member, `a.bin`, of so many pieces of 4096 bytes, each before a hole of 8192."""
    with (folder / "a.bin").open("wb") as file:
        for number in range(pieces):
            file.seek(number * 12288)
            file.write(b"%06d" % number + b"x" * 4090)
        file.truncate(pieces * 12288 + 4096)
    line = ["tar", "--format=gnu", "--sparse", "--hole-detection=raw", "-cf", "a.tar", "a.bin"]
    subprocess.run(line, cwd=folder, check=True)
    if (folder / "a.tar").read_bytes()[156:157] != b"S":
        pytest.skip("this file system has no holes")


@each_case(
    ("data", "code"),
    [
        (raw("x", b"9" * 11 + b"\0", b"x"), "E_SIZE"),
        (raw("x", b"\xff" * 12, b"L"), "E_SIZE"),
        (raw("x", header_parse.MAX_SPECIAL, b"x"), "E_TRUNCATED"),
        (raw("x", header_parse.MAX_SPECIAL + 1, b"x"), "E_LIMIT"),
        (tars.pax((b"a", b"b")) * header_parse.MAX_EXTENSIONS + END, "E_HEADER"),
        (tars.pax((b"a", b"b")) * (header_parse.MAX_EXTENSIONS + 1) + END, "E_LIMIT"),
    ],
)
def test_extension_headers_that_cannot_be_or_are_too_many_are_refused(data: bytes, code: str):
    scanner = Scanner("a.tar")
    scanner.scan(memoryview(data), 0, final=True)

    assert scanner.error is not None
    assert (code, 0) == (scanner.error.code, scanner.error.offset)


@each_case(("keyword", "codes"), [(b"path", ["W_GLOBAL_PATH_IGNORED"]), (b"size", ["W_GLOBAL_PATH_IGNORED"]), (b"comment", [])])
def test_a_global_header_names_no_member_and_an_empty_one_says_nothing(keyword: bytes, codes: list[str]):
    data = tars.pax((keyword, b"7"), kind=b"g") + raw("x", 0, b"x") + member("a.b", b"1") + END
    scanner = Scanner("a.tar")

    assert [("a.b", 1)] == [(each.name, each.size) for each in scanner.scan(memoryview(data), 0, final=True)]
    assert codes == [note.code for note in scanner.notes]


@pytest.mark.parametrize("count", [1, 40])
def test_a_ustar_prefix_and_its_name_are_joined_by_a_slash(tmp_path: Path, count: int):
    content = [(f"{DEEP}/k{number:03d}", {"cls": b"%d" % number}) for number in range(count)]
    (tmp_path / "a.tar").write_bytes(shard(content, format=tarfile.USTAR_FORMAT))

    assert [key for key, _ in content] == [record.key for record in stream.records(tmp_path / "a.tar")]
    with tarfile.open(tmp_path / "a.tar") as tar:
        assert [f"{key}.cls" for key, _ in content] == tar.getnames()


@pytest.mark.skipif(not shutil.which("tar"), reason="no tar here")
@each_case("pieces", [3, 4, 5, 25, 26, 47, 120])
def test_every_piece_of_an_old_gnu_sparse_file_is_there(tmp_path: Path, pieces: int):
    content = b"".join(b"%06d" % number + b"x" * 4090 + bytes(8192) for number in range(pieces)) + bytes(4096)
    sparse_tar(tmp_path, pieces)

    [record] = stream.records(tmp_path / "a.tar")

    assert content == bytes(record["bin"])
    assert b"S" == (tmp_path / "a.tar").read_bytes()[156:157]


def test_a_sparse_map_may_not_speak_of_more_than_is_stored():
    pax.pieces_right([(0, 512), (1024, 512)], 2048, 1024)
    with pytest.raises(DataError, match=r"E_SPARSE.*more bytes than the 1023"):
        pax.pieces_right([(0, 512), (1024, 512)], 2048, 1023)


@pytest.mark.skipif(not shutil.which("tar"), reason="no tar here")
def test_nor_may_that_of_a_member(tmp_path: Path):
    sparse_tar(tmp_path, 3)
    data = bytearray((tmp_path / "a.tar").read_bytes())
    data[124:136] = b"%011o\0" % 4096  # one piece is stored, three are spoken of
    data[148:156] = b" " * 8
    data[148:156] = b"%06o\0 " % sum(data[:512])
    (tmp_path / "a.tar").write_bytes(data)

    with pytest.raises(DataError, match=r"E_SPARSE.*more bytes than the 4096"):
        list(stream.records(tmp_path / "a.tar"))


def test_nuls_may_fill_a_pax_body_and_nothing_may_follow_them():
    assert [(b"size", b"512")] == list(pax.records(b"12 size=512\n" + bytes(20)))
    for rest in (b"\0" * 8 + b"x", b"\0" + b"12 size=999\n"):
        with pytest.raises(DataError, match="E_PAX"):
            list(pax.records(b"12 size=512\n" + rest))


@each_case("time", [2.0**40, -(2.0**40)])
@each_case("count", [1, 40])
def test_a_time_in_base_256_is_read_with_care(tmp_path: Path, time: float, count: int):
    (tmp_path / "a.tar").write_bytes(shard([(f"k{n:03d}", {"cls": b"1"}) for n in range(count)], format=tarfile.GNU_FORMAT, mtime=time))

    run = stream.records(tmp_path / "a.tar")
    with pytest.warns(TarvizWarning, match="W_MTIME"):
        found = list(run)

    assert count == len(found)
    assert {"W_MTIME": count} == run.report.counts()


def pax_sparse(version: str, pieces: list[tuple[int, int]], size: int, stored: bytes) -> bytes:
    """`a.bin`, sparse as GNU tar has it in PAX headers of this version."""
    numbers = [b"%d" % number for piece in pieces for number in piece]
    if version == "0.0":
        words = [(b"GNU.sparse.offset", b"GNU.sparse.numbytes")[at % 2] for at in range(len(numbers))]
        return tars.pax((b"GNU.sparse.size", b"%d" % size), *zip(words, numbers, strict=True)) + member("a.bin", stored)
    if version == "0.1":
        return tars.pax((b"GNU.sparse.size", b"%d" % size), (b"GNU.sparse.map", b",".join(numbers))) + member("a.bin", stored)
    head = b"%d\n" % len(pieces) + b"".join(b"%b\n" % number for number in numbers)
    words = [(b"major", b"1"), (b"minor", b"0"), (b"name", b"a.bin"), (b"realsize", b"%d" % size)]
    records = [(b"GNU.sparse." + word, value) for word, value in words]
    return tars.pax(*records) + member("GNUSparseFile.0/a.bin", head + bytes(-len(head) % 512) + stored)


@each_case("count", [0, 1, 2, 63, 200])
@each_case("version", ["0.0", "0.1", "1.0"])
def test_a_sparse_file_of_each_version_is_what_tarfile_makes_of_it(make, version: str, count: int):
    pieces = [(7 + number * 100, 1 + number % 5) for number in range(count)]
    stored = (bytes(range(1, 252)) * 3)[: sum(length for _, length in pieces)]
    path = make(pax_sparse(version, pieces, 7 + count * 100, stored) + member("b.bin", b"next") + END)

    found = [bytes(record["bin"]) for record in stream.records(path)]
    if count:  # tarfile takes an empty map of 0.0 and 0.1 for none
        with tarfile.open(path) as tar:
            assert [tar.extractfile(name).read() for name in tar.getnames()] == found
    assert [7 + count * 100, 4] == [len(payload) for payload in found]


@each_case(
    ("data", "said"),
    [
        (tars.pax((b"GNU.sparse.size", b"x"), (b"GNU.sparse.map", b"0,1")) + member("a.bin", b"1"), "an impossible size"),
        (tars.pax((b"GNU.sparse.size", b"%d" % (2**62 + 1)), (b"GNU.sparse.map", b"0,1")) + member("a.bin", b"1"), "an impossible size"),
        (tars.pax((b"GNU.sparse.size", b"9"), (b"GNU.sparse.map", b"0,1,2")) + member("a.bin", b"1"), "not a list of numbers in pairs"),
        (pax_sparse("1.0", [], 9, b"").replace(b"0\n\0", b"x\n\0"), "begins with b'x', which is not a count"),
        (pax_sparse("1.0", [], 9, b"").replace(b"0\n\0", b"9\n\0"), "goes on after the member's end"),
        (raw("a.bin", 0, b"S"), None),
    ],
)
def test_a_sparse_map_that_cannot_be_is_refused(make, data: bytes, said: str | None):
    path = make(data + bytes(512) + END)

    if said is None:
        assert [b""] == [bytes(record["bin"]) for record in stream.records(path)]
        return
    with pytest.raises(DataError, match=f"E_SPARSE.*{said}"):
        list(stream.records(path))


def test_an_old_gnu_sparse_file_has_a_size(make):
    header = bytearray(raw("a.bin", 0, b"S"))
    header[483:486] = b"99z"
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)

    with pytest.raises(DataError, match=r"E_SPARSE.*the sparse file's size is b'99z"):
        list(stream.records(make(bytes(header) + END)))


@pytest.mark.parametrize("version", ["0.0", "1.0"])
def test_a_map_of_very_many_pieces_is_refused(make, monkeypatch, version: str):
    path = make(pax_sparse(version, [(number, 1) for number in range(5)], 5, b"12345") + END)
    monkeypatch.setattr(header_parse, "MAX_PIECES", 5)

    assert [b"12345"] == [bytes(record["bin"]) for record in stream.records(path)]
    monkeypatch.setattr(header_parse, "MAX_PIECES", 4)
    with pytest.raises(DataError, match="E_SPARSE"):
        list(stream.records(path))


@pytest.mark.skipif(not shutil.which("tar"), reason="no tar here")
def test_so_is_one_of_an_old_gnu_file(tmp_path: Path, monkeypatch):
    sparse_tar(tmp_path, 26)
    monkeypatch.setattr(header_parse, "MAX_PIECES", 20)

    with pytest.raises(DataError, match=r"E_SPARSE.*more than 20 pieces"):
        list(stream.records(tmp_path / "a.tar"))


@each_case("time", [b"yesterday", b"nan", b"-1e400", b"99999999999999"])
def test_a_pax_time_that_is_none_is_warned_of(make, time: bytes):
    run = stream.records(make(tars.pax((b"mtime", time)) + member("a.bin", b"1") + END))
    with pytest.warns(TarvizWarning, match="W_MTIME"):
        assert [b"1"] == [bytes(record["bin"]) for record in run]

    assert [("W_MTIME", 0, f"the time {time.decode()} is outside the calendar.")] == [
        (fault.code, fault.offset, fault.message) for fault in run.report.warnings
    ]


@pytest.mark.parametrize("own", [0, 5])
def test_a_header_without_a_size_of_its_own_leaves_it_to_pax(make, own):
    run = stream.records(make(tars.pax((b"size", b"5")) + tars.raw("a.txt", own) + b"12345" + bytes(507) + END))

    assert [b"12345"] == [bytes(record["txt"]) for record in run]
    assert () == tuple(run.report.warnings)


@pytest.mark.filterwarnings("ignore:W_SIZE_MISMATCH")
def test_a_header_with_another_size_than_pax_is_told(make):
    with pytest.raises(DataError, match=r"E_SIZE.*the header says 3 bytes, PAX says 5"):
        list(stream.records(make(tars.pax((b"size", b"5")) + tars.raw("a.txt", 3) + b"12345" + bytes(507) + END)))
