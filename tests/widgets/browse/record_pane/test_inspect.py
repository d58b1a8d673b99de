"""A record looked into: its fields, panels, parts, its Example, its headers; what is too large, damaged or cut."""

from __future__ import annotations

import contextlib
import hashlib
import io
import struct
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tarviz.formats import example as examples
from tarviz.formats.tfrecord import masked_crc32c
from tarviz.model.errors import TarvizError
from tarviz.widgets.browse.controller import Browser
from tarviz.widgets.browse.record_pane import header_rows, inspect
from tarviz.widgets.browse.rows import Row
from tests.conftest import DATA
from tests.widgets.browse.test_controller import ask, settle
from tests.widgets.conftest import png, tar

FIELDS = {"png": png(), "cls": b"7", "txt": b"x" * 100, "bin": bytes(range(256)) * 40}


@pytest.fixture
def browser(tmp_path: Path):
    with contextlib.closing(settle(Browser(tar(tmp_path / "a.tar", [("a/k1", FIELDS), ("a/k2", {"txt": b"y"})]), cache=False))) as found:
        yield found


@pytest.fixture
def row(browser: Browser) -> Row:
    return browser.shards.rows.row(0)


def test_a_record_is_described_without_its_payloads(row: Row, tmp_path: Path):
    found = inspect.describe(row)
    place = f"{tmp_path}/a.tar"

    assert ("a/k1", 0, 0, place, False) == tuple(found[name] for name in ("key", "id", "index", "shard", "pending"))
    assert [
        {"ext": "png", "size": len(FIELDS["png"]), "offset": 512, "kind": "image"},
        {"ext": "cls", "size": 1, "offset": 1536, "kind": "cls"},
        {"ext": "txt", "size": 100, "offset": 2560, "kind": "text"},
        {"ext": "bin", "size": 10_240, "offset": 3584, "kind": "bytes"},
    ] == found["fields"]
    assert f"import tarviz\nrecord = tarviz.index({place!r})[0]  # 'a/k1'" == found["python"]


@pytest.mark.parametrize(
    ("start", "length", "part"),
    [(0, 10, slice(0, 10)), (5, 3, slice(5, 8)), (10_239, 5, slice(10_239, 10_240)), (0, 10**9, slice(None))],
)
def test_a_part_of_a_field_ends_where_it_does(row: Row, start: int, length: int, part: slice):
    assert FIELDS["bin"][part] == inspect.part(row, "bin", start, length)


@pytest.mark.parametrize(("start", "length"), [(-1, 5), (10_240, 5), (10**9, 5), (5, 0), (5, -1)])
def test_beyond_it_there_is_nothing(row: Row, start: int, length: int):
    assert b"" == inspect.part(row, "bin", start, length)


def test_its_sum_is_that_of_all_parts(row: Row):
    for ext, data in FIELDS.items():
        assert hashlib.sha256(data).hexdigest() == inspect.digest(row, ext)


@pytest.mark.parametrize(
    ("ext", "blob", "mime"),
    [
        ("wav", b"RIFF", "audio/wav"),
        ("left.flac", b"", "audio/flac"),
        ("m4a", b"", "audio/mp4"),
        ("mov", b"", "video/mp4"),
        ("mkv", b"", "video/webm"),
        ("bin", b"0000ftypisom", "video/mp4"),
        ("bin", b"000ftypisom", "application/octet-stream"),
        ("html", b"<html>", "application/octet-stream"),
    ],
)
def test_what_a_page_plays_is_named(tmp_path: Path, ext: str, blob: bytes, mime: str):
    with contextlib.closing(settle(Browser(tar(tmp_path / "m.tar", [("k", {ext: blob})]), cache=False))) as browser:
        media = browser.media(f"0/{ext}")

        assert media is not None
        assert (mime, len(blob), blob[1:3]) == (media.mime, media.size, media.read(1, 2))


class TestPanels:
    def panel(self, browser: Browser, ext: str, **options: Any) -> dict[str, Any]:
        return ask(browser, "record", row=0, ext=ext, options=options)[0]["panel"]

    def test_what_is_too_large_is_shown_in_parts(self, browser: Browser, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(inspect, "MAX_PREVIEW_BYTES", 10_240)
        whole = self.panel(browser, "bin")
        monkeypatch.setattr(inspect, "MAX_PREVIEW_BYTES", 10_239)
        large = self.panel(browser, "bin")

        assert whole != large
        assert [("note", "warn"), ("hex", None)] == [(block["type"], block.get("tone")) for block in large["blocks"]]
        assert "are more than a preview reads" in large["blocks"][0]["text"]
        assert (["size", "10,240 bytes"], "bytes") == (list(large["facts"][0]), large["viewer"])
        assert "E_LIMIT" in ask(browser, "example", row=0)[0]["code"]
        assert ask(browser, "example", row=1)[0]["features"]

    @pytest.mark.parametrize(("ext", "mime"), [("mp4", "video/mp4"), ("webm", "video/webm")])
    def test_a_film_that_is_too_large_is_played(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ext: str, mime: str):
        monkeypatch.setattr(inspect, "MAX_PREVIEW_BYTES", 4)
        with contextlib.closing(settle(Browser(tar(tmp_path / "m.tar", [("k", {ext: b"12345"})]), cache=False))) as browser:
            assert ["note", "video"] == [block["type"] for block in self.panel(browser, ext)["blocks"]]
            assert mime == self.panel(browser, ext)["blocks"][1]["mime"]

    def test_what_cannot_be_read_says_why(self, browser: Browser, tmp_path: Path):
        (tmp_path / "a.tar").write_bytes(bytes(1024))
        found = self.panel(browser, "txt")

        assert ("note", "bad", "bytes") == (found["blocks"][0]["type"], found["blocks"][0]["tone"], found["viewer"])
        assert found["blocks"][0]["text"].startswith("E_CHANGED: ")
        assert "E_CHANGED" == ask(browser, "example", row=0)[0]["code"]

    def test_a_record_that_may_be_cut_says_so(self, tmp_path: Path):
        path = tar(tmp_path / "cut.tar", [("a", {"txt": b"1"}), ("b", {"txt": b"2"})])
        path.write_bytes(path.read_bytes()[: 4 * 512])
        with contextlib.closing(settle(Browser(path, cache=False))) as browser:
            whole, cut = (ask(browser, "record", row=at, ext="txt")[0] for at in range(2))

        assert [False, True] == [whole["pending"], cut["pending"]]
        assert "may be incomplete" in cut["panel"]["blocks"][0]["text"]
        assert "warn" == cut["panel"]["blocks"][0]["tone"]
        assert ["text"] == [block["type"] for block in whole["panel"]["blocks"]]

    def test_class_numbers_have_their_names_and_counts(self, tmp_path: Path):
        pytest.importorskip("duckdb", reason="counts come from the table")
        path = tar(tmp_path / "c.tar", [(f"k{at}", {"cls": b"%d" % (at % 3)}) for at in range(9)])
        with contextlib.closing(settle(Browser(path, cache=False, classes={0: "cat", 2: "owl"}))) as browser:
            browser.first()
            assert browser.shards.questions.wait(60)
            ask(browser, "facet", column="cls")
            record, _ = ask(browser, "record", row=2)

        assert "owl" in str(record["panel"])
        assert browser.shards.labels.counts == {"0": 3, "1": 3, "2": 3}

    def test_a_record_without_fields_is_only_described(self, browser: Browser, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(Row, "fields", property(lambda _: []))
        found, buffers = ask(browser, "record", row=0)

        assert ("panel" not in found, []) == (True, buffers)


def test_the_example_and_its_frame_are_those_of_tfrecord(browser: Browser):
    found, (data,) = ask(browser, "example", row=0)
    data = bytes(data)
    length = struct.pack("<Q", found["size"] - 16)

    assert found["size"] - 16 > 4096 == len(data)
    assert ["CRC of the length", "masked CRC32C", struct.pack("<I", masked_crc32c(length)).hex(" ")] == found["frame"][1]
    assert ["length", f"{found['size'] - 16:,} bytes", length.hex(" ")] == found["frame"][0]
    assert ["example", f"{found['size'] - 16:,} bytes", data[:16].hex(" ") + " …"] == found["frame"][2]
    features = {name: (kind, shown) for name, kind, shown in found["features"]}
    assert ("bytes_list[1]", "'a/k1'") == features["__key__"]
    assert ("int64_list[1]", "7") == features["cls"]
    assert ("bytes_list[1]", repr("x" * 48) + " … (100 bytes)") == features["txt"]
    assert ("bytes_list[1]", FIELDS["png"][:16].hex(" ") + f" … ({len(FIELDS['png'])} bytes)") == features["png"]
    assert [] == found["notes"]

    found, (data,) = ask(browser, "example", row=1)
    data = bytes(data)
    assert ["CRC of the example", "masked CRC32C", struct.pack("<I", masked_crc32c(data)).hex(" ")] == found["frame"][3]
    assert {"__key__": [b"a/k2"], "txt": [b"y"]} == {name: values for name, (_, values) in examples.features(data).items()}


def test_what_is_not_what_its_name_says_travels_as_bytes(tmp_path: Path):
    with contextlib.closing(settle(Browser(tar(tmp_path / "n.tar", [("k", {"cls": b"cat"})]), cache=False))) as browser:
        found = ask(browser, "example", row=0)[0]
    features = {name: (kind, shown) for name, kind, shown in found["features"]}

    assert ("bytes_list[1]", "'cat'") == features["cls"]
    assert found["notes"][0].startswith(".cls as bytes: ")


class TestHeaders:
    def rows(self, archive: bytes, tmp_path: Path, ext: str = "txt") -> tuple[list[list[str]], bytes]:
        (tmp_path / "h.tar").write_bytes(archive)
        with contextlib.closing(settle(Browser(tmp_path / "h.tar", cache=False))) as browser:
            message, (raw,) = header_rows.header(browser.shards.rows.row(0), ext)
        return message["rows"], bytes(raw)

    def archive(self, form: int, name: str = "a.txt", **more: Any) -> bytes:
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=form) as file:
            member = tarfile.TarInfo(name)
            usual = {"size": 3, "uid": 1000, "gid": 50, "mtime": 1_700_000_000, "mode": 0o640, "uname": "me", "gname": "us"}
            for attribute, value in (usual | more).items():
                setattr(member, attribute, value)
            file.addfile(member, io.BytesIO(b"123"))
        return out.getvalue()

    def test_every_field_of_a_ustar_header(self, tmp_path: Path):
        archive = self.archive(tarfile.USTAR_FORMAT)
        rows, raw = self.rows(archive, tmp_path)

        assert archive[:512] == raw
        assert [
            ["name", "a.txt"],
            ["member begins", "byte 0 (0x0)"],
            ["payload", "byte 512 (0x200), 3 bytes"],
            ["member ends", "byte 1,024"],
            ["— header", "file"],
            ["name field", "a.txt"],
            ["mode", "640 (octal)   '0000640'"],
            ["uid", "1,000   '0001750'"],
            ["gid", "50   '0000062'"],
            ["size", "3   '00000000003'"],
            ["mtime", "1,700,000,000   '14524770400'"],
            ["checksum", archive[148:154].decode()],
            ["format", "ustar"],
            ["owner", "me:us"],
        ] == rows

    @pytest.mark.parametrize(("form", "name"), [(tarfile.GNU_FORMAT, "GNU"), (tarfile.USTAR_FORMAT, "ustar")])
    def test_the_format_is_told_by_its_magic(self, tmp_path: Path, form: int, name: str):
        assert ["format", name] in self.rows(self.archive(form), tmp_path)[0]

    def test_a_header_of_v7_has_no_magic_and_no_owner(self, tmp_path: Path):
        block = bytearray(self.archive(tarfile.USTAR_FORMAT))
        block[257:345] = bytes(88)
        block[148:156] = b" " * 8
        block[148:156] = b"%06o\0 " % sum(block[:512])
        rows, _ = self.rows(bytes(block), tmp_path)

        assert ["format", "v7"] in rows
        assert "owner" not in [name for name, _ in rows]

    def test_numbers_that_are_none_are_unreadable(self, tmp_path: Path):
        block = bytearray(self.archive(tarfile.USTAR_FORMAT))
        block[108:116] = b"nothing\0"
        block[148:156] = b" " * 8
        block[148:156] = b"%06o\0 " % sum(block[:512])

        assert ["uid", "unreadable   'nothing'"] in self.rows(bytes(block), tmp_path)[0]

    def test_pax_headers_come_before_the_member_with_their_records(self, tmp_path: Path):
        rows, raw = self.rows(self.archive(tarfile.PAX_FORMAT, name="ü" * 60 + ".txt", pax_headers={"comment": "c" * 600}), tmp_path)
        names = [name for name, _ in rows]

        assert [["— header", "PAX header"], ["— header", "file"]] == [row for row in rows if row[0] == "— header"]
        assert ["PAX comment", "c" * 500] in rows
        assert ["PAX path", "ü" * 60 + ".txt"] in rows
        assert names.index("PAX path") < names.index("— header", 5)
        assert 0 == len(raw) % 512
        assert ["payload", f"byte {len(raw):,} (0x{len(raw):x}), 3 bytes"] in rows

    def test_a_gnu_long_name_is_told_of(self, tmp_path: Path):
        rows, _ = self.rows(self.archive(tarfile.GNU_FORMAT, name="y" * 200 + ".txt"), tmp_path)

        assert ["long name", "y" * 200 + ".txt"] in rows
        assert [["— header", "GNU long name"], ["— header", "file"]] == [row for row in rows if row[0] == "— header"]


def test_what_a_payload_met_is_raised(row: Row, tmp_path: Path):
    assert FIELDS["txt"] == inspect.payload(row, "txt")
    (tmp_path / "a.tar").write_bytes(b"")
    with pytest.raises(TarvizError):
        inspect.payload(row, "txt")


def test_a_part_of_a_sparse_member_is_cut_from_the_whole():
    with contextlib.closing(settle(Browser(str(DATA / "corpora" / "generated" / "A46-sparse-gnu-old.tar"), cache=False))) as browser:
        row = browser.shards.rows.row(0)
        (ext, *_) = row.fields
        whole = inspect.part(row, ext, 0, 1 << 20)

        assert len(whole) > 600
        assert whole[500:600] == inspect.part(row, ext, 500, 100)
        assert whole[-3:] == inspect.part(row, ext, len(whole) - 3, 100)
