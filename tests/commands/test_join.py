"""Records joined by key with other records and with tables: what has a partner, what has none, what has several."""

from __future__ import annotations

import gzip
import json
import random
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarviz import cli
from tarviz.commands.join import join
from tarviz.formats.tar_header import tar_member
from tarviz.model.errors import DataError, UsageError
from tarviz.testing.strategies import numbered_records, shard
from tests import memory
from tests.commands.conftest import listed, names, plain

Make = Callable[..., Path]
OLD = st.dictionaries(st.sampled_from(["jpg", "cls"]), st.binary(max_size=600), min_size=1)
NEW = st.dictionaries(st.sampled_from(["txt", "seg.png"]), st.binary(max_size=600), min_size=1)
KEYS = st.sampled_from([f"train/{letter}" for letter in "abcdefgh"])


def texts(keys: list[str]) -> list[tuple[str, dict[str, bytes]]]:
    return [(key, {"txt": key.encode()}) for key in keys]


class TestShards:
    @settings(max_examples=60)
    @given(st.dictionaries(KEYS, OLD), st.dictionaries(KEYS, NEW), st.sampled_from(["left", "inner"]), st.booleans())
    @pytest.mark.matrix
    def test_it_says_what_joining_dicts_says(self, tmp_path_factory: Any, old: Any, new: Any, how: Any, packed: bool):
        folder = tmp_path_factory.mktemp("join")
        (folder / "a.tar").write_bytes(shard(old.items()))
        other = shard(random.Random(len(new)).sample(sorted(new.items()), len(new)))
        (folder / "b.tar").write_bytes(gzip.compress(other) if packed else other)

        result = join(folder / "a.tar", folder / "b.tar", folder / "c.tar", how=how)

        assert [(key, old[key] | new.get(key, {})) for key in old if how == "left" or key in new] == plain(folder / "c.tar")
        both = len(old.keys() & new.keys())
        assert (both, len(old) - both, len(new) - both) == (result.found, result.alone, result.unused)

    def test_partners_are_found_in_whatever_shard_and_order(self, make: Make, out: Path):
        keys = [key for key, _ in numbered_records(40)]
        others = [make(texts(keys[20:][::-1]), "b-0.tar"), make(texts(keys[:20]), "b-1.tar")]

        result = join(make(numbered_records(40)), others, out)

        assert [(key, {**fields, "txt": key.encode()}) for key, fields in numbered_records(40)] == plain(out)
        assert (40, 0, 0, 0) == (result.found, result.alone, result.unused, result.exit_code)
        assert 120 == len(listed(out))

    def test_what_a_had_stays_as_it_is(self, tmp_path: Path, out: Path):
        (tmp_path / "a.tar").write_bytes(shard(numbered_records(3), mtime=77))
        (tmp_path / "b.tar").write_bytes(shard(texts(["train/n00000001"])))

        join(tmp_path / "a.tar", tmp_path / "b.tar", out)

        with tarfile.open(out) as tar:
            assert [77, 77, 77, 77, 0, 77, 77] == [member.mtime for member in tar]

    def test_large_payloads_are_copied_from_where_they_lie(self, make: Make, out: Path):
        content = numbered_records(5, payload=b"\xff" * 300_000)

        join(make(content), make(texts([key for key, _ in content]), "b.tar"), out)

        assert [(key, {**fields, "txt": key.encode()}) for key, fields in content] == plain(out)

    def test_a_counter_makes_a_tar_of_each_shard(self, make: Make, tmp_path: Path):
        content = numbered_records(6)
        a = [make(content[:4], "a-0.tar"), make(content[4:], "a-1.tar")]

        result = join(a, make(texts([key for key, _ in content]), "b.tar"), tmp_path / "out" / "c-{}.tar")

        assert [("c-1.tar", 4), ("c-2.tar", 2)] == [(Path(tar.url).name, tar.records) for tar in result.outputs]
        assert [key for key, _ in content[4:]] == [key for key, _ in plain(tmp_path / "out" / "c-2.tar")]
        assert (6, 0) == (result.found, result.unused)
        with pytest.raises(UsageError, match="one of the inputs"):
            join(a, make(content, "b-1.tar"), tmp_path / "b-{}.tar")

    def test_a_field_of_both_is_taken_once_where_it_is_the_same(self, make: Make, out: Path):
        join(make([("k", {"txt": b"1", "cls": b"1"})]), make([("k", {"txt": b"1", "jpg": b""})], "b.tar"), out)

        assert 3 == len(listed(out))

    @pytest.mark.parametrize(("duplicates", "expected"), [("first", b"1"), ("last", b"2")])
    def test_a_field_of_both_that_differs_is_refused_or_chosen(self, make: Make, out: Path, duplicates: Any, expected: bytes):
        a, b = make([("k", {"txt": b"1"}), ("m", {"txt": b"0"})]), make([("k", {"txt": b"2", "cls": b"7"})], "b.tar")

        with pytest.raises(DataError, match=r"E_DUP_FIELD.*txt is in both"):
            join(a, b, out)
        assert not out.exists()
        join(a, b, out, duplicates=duplicates)
        assert [("k", {"txt": expected, "cls": b"7"}), ("m", {"txt": b"0"})] == plain(out)
        assert {"E_DUP_FIELD": 1} == join(a, b, out, on_error="skip").report.counts()
        assert ["m"] == [key for key, _ in plain(out)]

    def test_several_partners_are_refused_or_one_is_chosen(self, make: Make, out: Path):
        a = make([("k", {"cls": b"1"}), ("m", {"cls": b"1"})])
        b = [make([("k", {"txt": b"1"}), ("m", {"txt": b"3"})], "b-0.tar"), make([("k", {"txt": b"2"})], "b-1.tar")]

        with pytest.raises(DataError, match="2 of the others have this key"):
            join(a, b, out)
        assert [b"1", b"3"] == self.texts(join(a, b, out, duplicates="first"), out)
        assert [b"2", b"3"] == self.texts(join(a, b, out, duplicates="last"), out)
        skipped = join(a, b, out, on_error="skip")
        assert [b"3"] == self.texts(skipped, out)
        assert (1, 2, {"E_DUP_FIELD": 1}) == (skipped.exit_code, skipped.found, skipped.report.counts())

    @staticmethod
    def texts(_: Any, out: Path) -> list[bytes]:
        return [fields["txt"] for _, fields in plain(out)]

    def test_a_key_that_a_has_twice_finds_its_partner_twice(self, make: Make, out: Path):
        a = [make([("k", {"cls": b"1"})], "a-0.tar"), make([("m", {"cls": b"2"}), ("k", {"cls": b"3"})], "a-1.tar")]

        result = join(a, make(texts(["k"]), "b.tar"), out)

        assert [b"k.cls", b"k.txt", b"m.cls", b"k.cls", b"k.txt"] == names(out)
        assert (2, 1, 0) == (result.found, result.alone, result.unused)

    def test_fields_are_chosen_and_renamed(self, make: Make, out: Path):
        join(make([("k", {"jpg": b"a"})]), make([("k", {"jpg": b"b", "txt": b"c"})], "b.tar"), out, fields={"jpg": "small.jpg"})

        assert [("k", {"jpg": b"a", "small.jpg": b"b"})] == plain(out)

    def test_damage_of_the_others_is_an_error_or_counted(self, make: Make, out: Path):
        whole = shard(texts([key for key, _ in numbered_records(9)]))
        a, b = make(numbered_records(9)), make(whole[: len(whole) // 2], "b.tar")

        with pytest.raises(DataError):
            join(a, b, out)
        result = join(a, b, out, on_error="skip")

        assert 9 == result.found + result.alone == len(plain(out))
        assert 1 == result.exit_code
        assert result.alone


@pytest.fixture
def duckdb() -> None:
    pytest.importorskip("duckdb", reason="a table needs DuckDB: pip install 'tarviz[table]'")


class TestMany:
    """A hundred thousand records, and partners that memory does not hold."""

    COUNT = 100_000

    @pytest.mark.usefixtures("duckdb")
    @pytest.mark.matrix
    def test_a_table_of_a_hundred_thousand_rows_in_another_order(self, tmp_path: Path, out: Path):
        keys = [f"n{number:06d}" for number in range(self.COUNT)]
        (tmp_path / "a.tar").write_bytes(b"".join(piece for key in keys for piece in tar_member(f"{key}.cls", b"1")) + bytes(1024))
        random.Random(1).shuffle(keys)
        (tmp_path / "l.csv").write_text("key,w\n" + "".join(f"{key},{key[1:]}\n" for key in keys))

        before = memory.begin()
        result = join(tmp_path / "a.tar", tmp_path / "l.csv", out, fields={"w": "txt"})

        assert (self.COUNT, 0, 0) == (result.found, result.alone, result.unused)
        assert memory.peak() - before < 300 << 20
        assert all(fields["txt"].decode() == key[1:] for key, fields in plain(out))

    def test_large_partners_in_another_order_do_not_lie_in_memory(self, tmp_path: Path, out: Path):
        count = 200
        (tmp_path / "a.tar").write_bytes(shard([(f"{number}", {"cls": b"1"}) for number in range(count)]))
        with open(tmp_path / "b.tar", "wb") as file:
            file.writelines(b"".join(tar_member(f"{n}.bin", bytes([n]) * (1 << 20))) for n in reversed(range(count)))
            file.write(bytes(1024))

        before = memory.begin()
        result = join(tmp_path / "a.tar", tmp_path / "b.tar", out)

        assert count == result.found
        assert memory.peak() - before < 100 << 20
        assert out.stat().st_size > 200 << 20


class TestShell:
    @pytest.mark.usefixtures("duckdb")
    @pytest.mark.matrix
    def test_a_table_in_a_pipe_of_tools(self, make: Make, tmp_path: Path, bash: Any):
        make(numbered_records(3))
        (tmp_path / "labels.csv").write_text("filename,label\nn00000001.jpg,dog\n")

        done = bash(
            "tarviz cat a.tar | tarviz join - labels.csv --on filename --match '{base}' --as txt=label --how inner | tarviz tsv -f txt"
        )

        assert (0, b"__key__\ttxt\ntrain/n00000001\tdog\n", b"") == (done.returncode, done.stdout, done.stderr)

    def test_counts_are_said_and_are_json(self, make: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
        a, b = make(numbered_records(3)), make(texts(["train/n00000000", "x"]), "b.tar")

        assert 0 == cli.main(["join", str(a), str(b), "-o", str(tmp_path / "c.tar")])
        assert "1 records found a partner, 2 without one are kept; 1 of the others belong to none" in capsys.readouterr().out
        assert 0 == cli.main(["join", str(a), str(b), "-o", str(tmp_path / "c.tar"), "--how", "inner", "--json"])
        said = json.loads(capsys.readouterr().out)
        assert (1, 2, 1, 1) == (said["found"], said["alone"], said["unused"], said["records"])

    def test_as_needs_two_names(self, make: Make, tmp_path: Path):
        assert 2 == cli.main(
            ["join", str(make(numbered_records(1))), str(make(numbered_records(1), "b.tar")), "--as", "cls", "-o", str(tmp_path / "c.tar")]
        )
