"""The tar headers of a field as rows of text, each format's in full."""

from __future__ import annotations

import io
import tarfile

import pytest

from tarviz.formats.tar_header import tar_member
from tarviz.widgets.browse.controller import Browser
from tests.widgets.browse.test_controller import ask, settle

LONG = "d" * 120 + "/" + "n" * 90


def headers(tmp_path, form, name="a/n.txt", **fields):
    path = tmp_path / "s.tar"
    with tarfile.open(path, "w", format=form) as file:
        info = tarfile.TarInfo(name)
        info.size, info.mode, info.uid, info.gid, info.mtime = 5, 0o640, 1000, 100, 1_700_000_000
        for field, value in fields.items():
            setattr(info, field, value)
        file.addfile(info, io.BytesIO(b"12345"))
    browser = settle(Browser([path], cache=False))
    message, (raw,) = ask(browser, "header", row=0, ext="txt")
    browser.close()
    return message["rows"], raw, path.read_bytes()


def fields(rows, at=0):
    """The rows of one header, by name."""
    starts = [number for number, row in enumerate(rows) if row[0] == "— header"] + [len(rows)]
    return dict(rows[starts[at] : starts[at + 1]])


@pytest.mark.parametrize(("form", "named"), [(tarfile.USTAR_FORMAT, "ustar"), (tarfile.GNU_FORMAT, "GNU")])
def test_a_header_is_shown_field_by_field(tmp_path, form, named):
    rows, raw, whole = headers(tmp_path, form, uname="me", gname="us")
    checksum = whole[148:156].split(b"\0")[0].decode()

    assert rows == [
        ["name", "a/n.txt"],
        ["member begins", "byte 0 (0x0)"],
        ["payload", "byte 512 (0x200), 5 bytes"],
        ["member ends", "byte 1,024"],
        ["— header", "file"],
        ["name field", "a/n.txt"],
        ["mode", "640 (octal)   '0000640'"],
        ["uid", "1,000   '0001750'"],
        ["gid", "100   '0000144'"],
        ["size", "5   '00000000005'"],
        ["mtime", "1,700,000,000   '14524770400'"],
        ["checksum", checksum],
        ["format", named],
        ["owner", "me:us"],
    ]
    assert whole[:512] == raw


def test_a_long_name_of_gnu_comes_before_its_header(tmp_path):
    rows, raw, whole = headers(tmp_path, tarfile.GNU_FORMAT, f"{LONG}.txt")

    assert ["GNU long name", "file"] == [row[1] for row in rows if row[0] == "— header"]
    assert ["long name", f"{LONG}.txt"] in rows
    assert "owner" not in fields(rows, 1)
    assert whole[: 3 * 512] == raw


def test_pax_records_are_named(tmp_path):
    rows, raw, whole = headers(tmp_path, tarfile.PAX_FORMAT, f"{LONG}.txt", pax_headers={"comment": "ä" * 600})

    assert ["PAX header", "file"] == [row[1] for row in rows if row[0] == "— header"]
    assert ["PAX comment", "ä" * 500] in rows
    assert ["PAX path", f"{LONG}.txt"] in rows
    assert whole[: len(raw)] == raw


def shown(tmp_path, **fields):
    """The rows of a header whose bytes from _N on are these."""
    data = bytearray(tar_member("n.txt", b"12345")[0] + b"12345".ljust(1536, b"\0"))
    for place, text in {**fields, "_148": b" " * 8}.items():
        data[int(place[1:]) : int(place[1:]) + len(text)] = text
    data[148:156] = b"%06o\0 " % sum(data[:512])
    path = tmp_path / "s.tar"
    path.write_bytes(data)
    browser = settle(Browser([path], cache=False))
    rows = ask(browser, "header", row=0, ext="txt")[0]["rows"]
    browser.close()
    return dict(rows)


def test_fields_end_where_the_next_begin(tmp_path):
    name, link, owner, group = b"n" * 96 + b".txt", b"l" * 100, b"o" * 32, b"g" * 32
    numbers = b"200006442000175020000144000000000005214524770400"
    rows = shown(tmp_path, _0=name + numbers, _156=b"0" + link, _257=b"ustar\x0000" + owner + group + b"d" * 16)

    assert [
        ["name field", name.decode()],
        ["mode", "20000644 (octal)   '20000644'"],
        ["uid", "4,195,304   '20001750'"],
        ["gid", "4,194,404   '20000144'"],
        ["size", "5   '000000000005'"],
        ["mtime", f"{0o214524770400:,}   '214524770400'"],
        ["format", "ustar"],
        ["link", link.decode()],
        ["owner", f"{owner.decode()}:{group.decode()}"],
    ] == [[key, rows[key]] for key in ("name field", "mode", "uid", "gid", "size", "mtime", "format", "link", "owner")]


def test_a_map_of_a_sparse_file_behind_its_header_is_none(tmp_path):
    rows = shown(
        tmp_path, _156=b"S", _257=b"ustar  \0", _386=b"%011o\0%011o\0" % (0, 5), _482=b"\1%011o\0" % 5, _512=bytes(512), _1024=b"1"
    )

    assert ("byte 1,024 (0x400), 5 bytes", "GNU sparse file", "GNU") == (rows["payload"], rows["— header"], rows["format"])


def test_what_cannot_be_read_is_said(tmp_path):
    found = shown(tmp_path, _257=bytes(8), _108=b"9x9x9x9\0")  # as the first tars: no magic

    assert ("v7", "unreadable   '9x9x9x9'") == (found["format"], found["uid"])
