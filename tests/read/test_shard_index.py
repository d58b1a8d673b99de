"""Indexes of shards that lie far away: by the fewest bytes."""

from __future__ import annotations

import gzip

import pytest

import tarviz
from tarviz.model.errors import DataError, LimitError, TarvizError
from tarviz.model.types import URL
from tarviz.read.shard_index import entry
from tarviz.read.stream import ReadOptions
from tarviz.samples import write_shard
from tarviz.stores.cache_files import is_kept
from tarviz.testing.faults import FaultServer
from tests.read.tars import END, member, pax


class TestFromAfar:
    @pytest.mark.parametrize(("size", "whole"), [(3_000_000, False), (10_000, True)])
    def test_only_large_members_have_their_headers_read_alone(self, tmp_path, size, whole):
        write_shard(tmp_path / "a.tar", [(f"{number}", {"bin": bytes(size)}) for number in range(6)])
        with FaultServer() as server:
            url = server.put("/a.tar", tmp_path / "a.tar")
            index = tarviz.index(url, cache=False)

            assert 6 == len(index)
            assert whole == (server.sent > 0.5 * 6 * size)
            assert list(index.keys()) == list(tarviz.index(tmp_path / "a.tar", cache=False).keys())


@pytest.mark.filterwarnings("ignore::tarviz.model.errors.TarvizWarning")
class TestRefusal:
    """An index is made by a lenient walk; who reads strictly is refused the shards that a strict walk refuses, for the same reason."""

    TARS = {
        "E_NO_EOF": member("a.txt", b"1") + member("b.txt", b"2"),
        "E_TRAILING": member("a.txt", b"1") + END + member("b.txt", b"2") + END,
        "E_SPLIT_RECORD": member("a.txt", b"1") + member("b.txt", b"2") + member("a.cls", b"3") + END,
        "E_HEADER": pax((b"path", b"a.t\0xt")) + member("a.txt", b"1") + END,
        "E_CHECKSUM": member("a.txt", b"1") + b"x" * 512 + END,
        "E_TRUNCATED": (member("a.txt", b"1") + member("b.txt", b"2"))[:-1],
        "E_TRUNCATED, of another volume": member("a.txt", b"1") + member("b.txt", b"2", b"M") + member("b.cls", b"1") + END,
        "E_HEADER, behind more warnings than are kept": b"".join(member(f"{at}.txt", b"", b"Z") for at in range(1200))
        + pax((b"path", b"a.t\0xt"))
        + member("a.txt", b"1")
        + END,
    }

    @pytest.mark.parametrize("what", TARS)
    @pytest.mark.parametrize("cache", [False, True])
    def test_has_the_code_of_strict_reading(self, make, what, cache):
        path, code = make(self.TARS[what]), what.partition(",")[0]
        with pytest.raises(TarvizError) as caught:
            list(tarviz.records(path))
        assert code == caught.value.code
        with pytest.raises(TarvizError) as caught:
            tarviz.index(path, strict=True, cache=cache)
        assert code == caught.value.code
        with pytest.raises(TarvizError) as caught:
            tarviz.Pipeline(path).indexed()
        assert code == caught.value.code

    def test_a_lenient_reader_has_all_there_is(self, make):
        index = tarviz.index(make(self.TARS["E_NO_EOF"]))

        assert ["a", "b"] == list(index.keys())
        assert [False, True] == [record.pending for record in index]

    def test_padding_of_any_kind_is_not_refused(self, make):
        path = make(member("a.txt", b"1") + END + b"not zeros" * 100)

        assert 1 == len(tarviz.index(path, strict=True)) == len(tarviz.Pipeline(path).indexed())

    def test_chosen_records_keep_their_mark(self, make):
        """The last record of a shard without an end may lack a member, also where it is the only one chosen."""
        pytest.importorskip("pyarrow", reason="pyarrow: pip install 'tarviz[table]'")
        index = tarviz.index(make(self.TARS["E_NO_EOF"]), where="key = 'b'")

        assert [("b", True)] == [(record.key, record.pending) for record in index]


class TestBesideTheRecords:
    """A member over the limit that is in no record ends reading, by number too."""

    DATA = member("k0.txt", b"x" * 3000) + member("k0.txt", b"y") + member("k1.txt", b"z") + END

    def test_is_refused_by_number(self, make):
        path = make(self.DATA)
        options = {"duplicates": "last", "max_member_bytes": 1200}
        tarviz.index(path, duplicates="last")
        for read in (lambda: list(tarviz.records(path, **options)), lambda: tarviz.Pipeline(path, **options).indexed()):
            with pytest.raises(LimitError, match="3000 bytes, 1200 are allowed"):
                read()

    def test_is_no_matter_where_it_is_allowed(self, make):
        assert 2 == len(tarviz.Pipeline(make(self.DATA), duplicates="last").indexed())

    def test_before_other_damage(self, make):
        path = make(member("k0.txt", b"x") + member("k1.txt", b"y" * 3000) + b"x" * 512 + END)
        with pytest.raises(LimitError, match="3000 bytes, 1200 are allowed"):
            tarviz.Pipeline(path, max_member_bytes=1200).indexed()

    def test_behind_the_last_record(self, make):
        path = make(member("k0.txt", b"x") + member("README", b"y" * 3000) + END)
        with pytest.raises(LimitError):
            tarviz.Pipeline(path, max_member_bytes=1200).indexed()


@pytest.mark.filterwarnings("ignore::tarviz.model.errors.TarvizWarning")
class TestEntry:
    """Records from one on are those that reading all of them gives there: where damage is skipped an index has other numbers."""

    LARGE = {
        "a field": member("00.txt", bytes(3000)),
        "no record's": member("README", bytes(3000)),
        "a vendor's": member("b.txt", bytes(3000), b"Z"),
    }
    DAMAGE = {
        "a NUL in a name": pax((b"path", b"b.cls\0.sh")) + member("x", b"1"),
        "a bad header": b"x" * 512,
        "a key that comes again": member("b.txt", b"1") + member("00.cls", b"1"),
    }

    @pytest.mark.parametrize("what", [*LARGE, *DAMAGE])
    @pytest.mark.parametrize("strict", [True, False])
    @pytest.mark.parametrize("group", ["adjacent", "shard"])
    def test_counts_what_is_read(self, make, what, strict, group):
        path = make(
            member("00.txt", b"1") + {**self.LARGE, **self.DAMAGE}[what] + b"".join(member(f"r{at}.txt", b"1") for at in range(5)) + END
        )
        options = ReadOptions(strict=strict, on_error="skip", group=group, duplicates="first", max_member_bytes=1200)
        expected = [(record.index, record.key) for block in tarviz.blocks(path, options) for record in block]
        for start in range(1, 8):
            found = [(record.index, record.key) for block in tarviz.blocks(path, options, start=start) for record in block]

            assert expected[start:] == found, start

    def test_is_where_the_record_begins_and_the_front_where_nothing_says_so(self, make):
        data = b"".join(member(f"r{at}.txt", b"1") for at in range(3)) + END
        plain, packed = URL(str(make(data))), URL(str(make(gzip.compress(data), "a.tar.gz")))

        assert (0, 0) == entry(plain, ReadOptions(), 0)
        assert not is_kept("index", plain)
        assert [(1024, 1), (2048, 2), (3072, 3), (0, 0)] == [entry(plain, ReadOptions(), start) for start in (1, 2, 3, 4)]
        assert is_kept("index", plain)
        assert (0, 0) == entry(packed, ReadOptions(), 1)
        assert (0, 0) == entry(URL(str(make(END, "empty.tar"))), ReadOptions(), 1)

    @pytest.mark.parametrize("what", DAMAGE)
    def test_behind_damage_that_strict_reading_ends_with_is_refused(self, make, what):
        path = make(member("00.cls", b"1") + self.DAMAGE[what] + b"".join(member(f"r{at}.txt", b"1") for at in range(5)) + END)
        for start in range(6):
            with pytest.raises(DataError):
                list(tarviz.blocks(path, start=start))

    @pytest.mark.parametrize("packed", [False, True])
    def test_of_an_index_has_its_numbers(self, make, packed):
        """Whatever is skipped elsewhere: one is over the limit, and those behind it are found."""
        data = member("a.txt", b"1") + member("b.txt", bytes(3000)) + member("c.txt", b"2") + member("d.txt", b"3") + END
        index = tarviz.index(make(gzip.compress(data) if packed else data), on_error="skip", max_member_bytes=1200)
        with pytest.raises(LimitError, match="3000 bytes, 1200 are allowed"):
            index[1]["txt"]
        if not packed:
            assert ["a", "c", "d"] == [index[at].key for at in (0, 2, 3)]


def test_a_size_beyond_any_memory_is_no_reason_to_ask_for_it(make):
    header = bytearray(member("a.txt", b""))
    header[124:136] = b"\x80" + (1 << 62).to_bytes(11, "big")  # base 256, as GNU tar writes what octal digits cannot say
    header[148:156] = b"%06o\0 " % (sum(header[:148]) + sum(header[156:512]) + 8 * 32)

    index = tarviz.index(make(member("b.txt", b"1") + bytes(header)))

    assert "E_TRUNCATED" == index.shards[0].error["code"]


def test_a_refused_shard_is_refused_for_what_strict_reading_meets_first(tmp_path):
    """A field given twice, in the record before a second archive: both are faults, and every door names the same one."""
    data = member("k0.txt", b"x") + 2 * member("k1.cls", b"x") + END + member("k2.txt", b"y") + END
    (tmp_path / "a.tar").write_bytes(data)
    found = []
    for read in (
        lambda path: list(tarviz.records(path)),
        lambda path: tarviz.index(path, strict=True),
        lambda path: tarviz.Pipeline(path).indexed()[0],
    ):
        with pytest.raises(DataError) as caught:
            read(tmp_path / "a.tar")
        found.append((caught.value.code, caught.value.offset))

    assert [("E_TRAILING", 4096)] * 3 == found


class TestKept:
    """An index is kept of a shard, not of the text that names it."""

    @pytest.fixture(autouse=True)
    def place(self, tmp_path, monkeypatch):
        monkeypatch.setenv("TARVIZ_CACHE_DIR", str(tmp_path / "cache"))
        monkeypatch.chdir(tmp_path)
        return tmp_path

    def test_all_spellings_of_a_path_share_one(self, place):
        write_shard("a.tar", [("a", {"txt": b"1"})])
        (place / "sub").mkdir()
        (place / "link.tar").symlink_to("a.tar")
        for name in ("a.tar", "./a.tar", "sub/../a.tar", "link.tar", f"{place}/a.tar", f"file://{place}/a.tar"):
            assert ["a"] == list(tarviz.index(name).keys())

        assert 1 == len(list((place / "cache" / "index").glob("*.tvi")))

    def test_two_of_one_name_in_two_folders_have_two(self, place, monkeypatch):
        for folder in ("A", "B"):
            (place / folder).mkdir()
            write_shard(place / folder / "a.tar", [(folder, {"txt": b"1"})])
            monkeypatch.chdir(place / folder)
            assert [folder] == list(tarviz.index("a.tar").keys())

        assert 2 == len(list((place / "cache" / "index").glob("*.tvi")))

    def test_a_signature_renewed_finds_it(self, place):
        write_shard("a.tar", [("a", {"txt": b"1"})])
        with FaultServer() as server:
            url = server.put("/a.tar", place / "a.tar")
            assert ["a"] == list(tarviz.index(f"{url}?X-Amz-Date=1&X-Amz-Signature=one").keys())
            sent = server.sent

            assert ["a"] == list(tarviz.index(f"{url}?X-Amz-Date=2&X-Amz-Signature=two").keys())
            assert sent == server.sent

    def test_damage_is_told_of_the_shard_as_it_is_spelled_now(self, place):
        (place / "a.tar").write_bytes(member("a.txt", b"1") + b"x" * 512 + END)
        for name in ("a.tar", f"{place}/a.tar"):
            (found,) = tarviz.index(name).shards
            assert name == found.error["shard"]

    def test_it_is_kept_for_a_version_and_these_rules_alone(self, place):
        write_shard("a.tar", [("a.b", {"c.txt": b"1"})])
        for options in ({}, {"key_split": "last-dot"}, {"duplicates": "last"}, {"concatenated": True}):
            tarviz.index("a.tar", **options)
            tarviz.index("a.tar", **options)

        assert 4 == len(list((place / "cache" / "index").glob("*.tvi")))

    def test_one_that_cannot_be_kept_is_no_error_and_leaves_nothing(self, place, caplog):
        write_shard("a.tar", [("a", {"txt": b"1"})])
        tarviz.index("a.tar")
        (kept,) = (place / "cache" / "index").iterdir()
        kept.unlink()
        kept.mkdir()

        with caplog.at_level("INFO"):
            assert ["a"] == list(tarviz.index("a.tar").keys())
        assert [kept] == list((place / "cache" / "index").iterdir())
        assert "index not cached" in caplog.text

    def test_one_of_another_shard_under_its_name_is_made_anew(self, place):
        write_shard("a.tar", [("a", {"txt": b"1"})])
        write_shard("b.tar", [("b", {"txt": b"1"})])
        files = {}
        for name in ("a.tar", "b.tar"):
            tarviz.index(name)
            (files[name],) = set((place / "cache" / "index").iterdir()) - set(files.values())
        files["b.tar"].replace(files["a.tar"])

        assert ["a"] == list(tarviz.index("a.tar").keys())

    def test_of_a_shard_without_a_version_none_is_kept(self, place):
        write_shard("a.tar", [("a", {"txt": b"1"})])
        with FaultServer() as server:
            url = server.put("/a.tar", place / "a.tar", etag=None, modified=None)
            assert ["a"] == list(tarviz.index(url).keys())

        assert not (place / "cache" / "index").exists()
