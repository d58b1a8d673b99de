"""Listings: numbers, fields, damage; members as GNU tar and tarfile see them."""

from __future__ import annotations

import json
import os
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tarviz import cli
from tarviz.commands.ls import Field, Listing, ShardListing, entries, ls
from tarviz.formats import example, tfrecord
from tarviz.model.config import format_size
from tarviz.model.errors import NotFoundError
from tarviz.outputs import tar_member
from tests.conftest import DATA, corpus

TARS = DATA / "corpora" / "generated"


class TestTFRecords:
    RECORDS = (
        {"image/encoded": b"\xff\xd8\xff", "n": 1, "list": [1, 2]},
        {"image/encoded": b"\xff\xd8\xff.", "n": 20, "list": np.zeros(0, np.int64)},
    )

    def written(self, path: Path) -> Path:
        path.write_bytes(b"".join(tfrecord.frame([example.encode(each) for each in self.RECORDS]).buffers()))
        return path

    def test_the_features_are_listed_as_fields(self, tmp_path: Path):
        path = self.written(tmp_path / "x.tfrecord-00000-of-00001")
        listing = ls(path)

        assert (2, path.stat().st_size, 0) == (listing.records, listing.bytes, listing.exit_code)
        assert ["image.encoded.jpg", "list.npy", "n.cls"] == list(listing.fields)
        assert (2, 7) == (listing.fields["image.encoded.jpg"].records, listing.fields["image.encoded.jpg"].bytes)
        assert (2, 3) == (listing.fields["n.cls"].records, listing.fields["n.cls"].bytes)

    def test_damage_is_listed_with_its_byte(self, tmp_path: Path):
        path = self.written(tmp_path / "x.tfrecord")
        data = bytearray(path.read_bytes())
        data[tfrecord.HEADER] ^= 1
        path.write_bytes(data[:-1])
        listing = ls(path)

        assert (0, 2) == (listing.records, listing.exit_code)
        assert ["E_DATA_CRC", "E_TRUNCATED"] == sorted(
            [listing.shards[0].error["code"], *(each["code"] for each in listing.shards[0].warnings)]
        )
        assert {0, tfrecord.FRAME + len(example.encode(self.RECORDS[0]))} == {
            listing.shards[0].error["offset"],
            *(each["offset"] for each in listing.shards[0].warnings),
        }


class TestLs:
    def test_counts_records_bytes_and_fields(self, digits: Path):
        listing = ls(str(digits / "train-{0000..0003}.tar"))

        assert 1500 == listing.records
        assert sum((digits / f"train-000{n}.tar").stat().st_size for n in range(4)) == listing.bytes
        assert ["png", "cls"] == list(listing.fields)
        assert (1500, 1500) == (listing.fields["cls"].records, listing.fields["cls"].bytes)
        assert 0 == listing.exit_code

    def test_a_folder_is_the_shards_in_it(self, digits: Path):
        assert 5 == len(ls(str(digits)).shards)

    def test_shows_a_table_with_a_total(self, digits: Path):
        lines = str(ls(str(digits))).splitlines()

        assert lines[0].split() == ["shard", "records", "size", "fields"]
        assert lines[6].split()[:3] == ["5", "shards", "1,797"]
        assert lines[8].split() == ["field", "records", "bytes", "mean"]

    def test_the_second_time_comes_from_the_cache(self, digits: Path, monkeypatch: pytest.MonkeyPatch):
        first = ls(str(digits)).to_dict()
        monkeypatch.setattr("tarviz.read.shard_index._build", None)

        assert first == ls(str(digits)).to_dict()

    def test_lists_damage_beside_its_shard(self, digits: Path):
        listing = ls([str(digits / "test-0000.tar"), str(TARS / "B14-trunc-in-data.tar")])

        assert 2 == listing.exit_code
        assert [None, "E_TRUNCATED"] == [shard.error and shard.error["code"] for shard in listing.shards]
        assert "damaged" in str(listing)
        assert "at byte 1024" in str(listing)

    def test_read_strictly_a_damaged_one_has_no_records_and_the_others_are_listed(self, digits: Path):
        damaged, good = ls([str(TARS / "B14-trunc-in-data.tar"), str(digits / "test-0000.tar")], strict=True).shards

        assert (0, {}, None, "E_TRUNCATED", 1024) == (
            damaged.records,
            damaged.fields,
            damaged.bytes,
            damaged.error["code"],
            damaged.error["offset"],
        )
        assert good == ls(str(digits / "test-0000.tar")).shards[0]

    def test_a_warning_is_exit_code_one(self):
        assert 1 == ls(str(TARS / "A06-no-eof-blocks.tar")).exit_code

    def test_a_missing_shard_is_an_error(self):
        with pytest.raises(NotFoundError):
            ls("nothing-here.tar")

    @pytest.mark.parametrize(("path", "entry"), corpus("generated"))
    def test_lists_the_whole_corpus(self, path: Path, entry: dict):
        listing = ls(str(path))

        expected = entry["tarviz_expected"]
        if "records" in expected and "error_at_end" not in expected:
            assert expected["records"] == listing.records
        if "error" in expected and entry["id"] not in ("B37", "B44"):  # B44: a sparse bomb is listed with its real size, never read
            assert listing.shards[0].error is not None
        json.dumps(listing.to_dict())

    def test_the_notebook_gets_escaped_html(self):
        html = ls(str(TARS / "S13-xss.tar"))._repr_mimebundle_()["text/html"]

        assert "<script" not in html
        assert "<table>" in html


class TestEntries:
    def test_are_those_of_tarfile(self, digits: Path):
        with tarfile.open(digits / "test-0000.tar") as tar:
            expected = [(each.name, each.size, each.offset, each.offset_data) for each in tar]

        found = [(each.name, each.size, each.header_offset, each.data_offset) for _, each in entries(str(digits / "test-0000.tar"))]

        assert expected == found

    def test_every_type_is_named(self, capsys: pytest.CaptureFixture[str]):
        cli.main(["ls", "--members", "--json", str(TARS / "A25-links-devices.tar")])

        types = {json.loads(line)["type"] for line in capsys.readouterr().out.splitlines()}
        assert {"file", "symlink", "hardlink", "char", "block", "fifo"} == types

    def test_one_json_object_a_line(self, digits: Path, capsys: pytest.CaptureFixture[str]):
        assert 0 == cli.main(["ls", "--members", "--json", str(digits / "test-0000.tar")])

        lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert 594 == len(lines)
        assert {"name": "test/n00000000.png", "type": "file", "size": lines[0]["size"], "header_offset": 0, "data_offset": 512} == lines[0]

    def test_names_are_surrogate_escaped(self, capsys: pytest.CaptureFixture[str]):
        cli.main(["ls", "--members", "--json", str(TARS / "A19-latin1-names.tar")])

        name = json.loads(capsys.readouterr().out.splitlines()[0])["name"]
        assert name.encode("utf-8", "surrogateescape").startswith(b"gr\xf6\xdfe")

    def test_a_sparse_member_has_its_logical_size(self):
        sizes = {member.name: member.size for _, member in entries(str(TARS / "A46-sparse-gnu-old.tar"))}

        assert 4099 == sizes["k0.bin"]

    def test_several_shards_are_named(self, digits: Path, capsys: pytest.CaptureFixture[str]):
        cli.main(["ls", "--members", "--json", str(digits)])

        assert "shard" in json.loads(capsys.readouterr().out.splitlines()[0])

    def test_damage_comes_at_the_end(self, capsys: pytest.CaptureFixture[str]):
        assert 2 == cli.main(["ls", "--members", str(TARS / "B18-size-not-octal.tar")])
        assert "E_SIZE" in capsys.readouterr().out.splitlines()[-1]


class TestListed:
    def test_the_whole_listing(self, make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.chdir(tmp_path)
        make([(f"k{at:04d}", {"txt": b"x" * 10, **({"cls": b"1"} if at % 3 else {})}) for at in range(1200)])
        odd = b"".join(piece for at in range(23) for piece in tar_member(f"README{at}", b""))
        make(b"".join(tar_member("a.txt", b"")) + odd + bytes(1024), "b.tar")
        found = ls(["a.tar", "b.tar"])

        size = os.stat("a.tar").st_size, os.stat("b.tar").st_size
        head, fields, notes = str(found).split("\n\n")
        assert [
            ["shard", "records", "size", "fields"],
            ["a.tar", "1,200", *format_size(size[0]).split(), "txt", "cls"],
            ["b.tar", "1", *format_size(size[1]).split(), "txt"],
            ["2", "shards", "1,201", *format_size(sum(size)).split()],
        ] == [line.split() for line in head.splitlines()]
        assert [
            ["field", "records", "bytes", "mean"],
            ["txt", "1,201", "12.0", "kB", "10", "B"],
            ["cls", "800", "800", "B", "1", "B"],
        ] == [line.split() for line in fields.splitlines()]
        assert 21 == len(notes.splitlines())
        assert "… 3 warnings more in b.tar" == notes.splitlines()[-1]
        assert notes.startswith("W_NO_KEY b.tar, member 'README0' at byte 512: ")
        html = found._repr_mimebundle_()["text/html"]
        assert 21 == html.count('<p class="bad">')
        assert "<td>2 shards</td><td class=right>1,201</td>" in html
        assert "<td>cls</td><td class=right>800</td><td class=right>800 B</td><td class=right>1 B</td>" in html

    def test_a_size_that_nobody_tells_is_a_question(self):
        found = Listing([ShardListing("http://h/a.tar", None, 0, {}, (), {"code": "E_TRUNCATED", "message": "cut."})])

        assert ["http://h/a.tar", "0", "?", "damaged"] == str(found).splitlines()[1].split()
        assert (0, 2) == (found.bytes, found.exit_code)
        assert 0.0 == Field(0, 0).mean

    def test_what_is_no_shard_is_listed_as_damaged(self, tmp_path: Path):
        (tmp_path / "a.tar").write_bytes(b"no tar" * 1000)
        found = ls([str(tmp_path / "a.tar")])

        (listed,) = found.shards
        assert (0, 6000, {}) == (listed.records, listed.bytes, listed.fields)
        assert "E_NOT_TAR" == (listed.error or {})["code"]

    def test_entries_are_a_text_and_data(self, make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.chdir(tmp_path)
        make(b"".join(tar_member("a.txt", b"1")) + b"".join(tar_member("d\x1b/x", b"x" * 1234)) + bytes(1024))

        assert "file                  1              0  a.txt\nfile              1,234          1,024  d\\x1b/x" == str(entries("a.tar"))
        assert [
            {"shard": "a.tar", "name": "a.txt", "type": "file", "size": 1, "header_offset": 0, "data_offset": 512},
            {"shard": "a.tar", "name": "d\x1b/x", "type": "file", "size": 1234, "header_offset": 1024, "data_offset": 1536},
        ] == entries("a.tar").to_dict()["members"]
