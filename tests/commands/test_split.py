"""Splitting: limits that hold, records that stay whole, names, commands on finished shards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tarviz
from tarviz import cli
from tarviz.commands import split as module
from tarviz.commands.cat import cat
from tarviz.commands.split import pattern, split
from tarviz.model.errors import ChangedError, DataError, StoreError, UsageError
from tarviz.testing.strategies import numbered_records, shard
from tarviz.testing.strategies import records as record_lists
from tarviz.tools import shard_command
from tests.commands.conftest import listed, plain

Make = Callable[..., Path]
LARGE = b"\xff" * 70_000


class TestLimits:
    @pytest.mark.parametrize("payload", [b"x" * 600, LARGE], ids=["tiny", "large"])
    @pytest.mark.parametrize(("count", "expected"), [(7, [7, 7, 6]), (10, [10, 10]), (20, [20]), (99, [20]), (1, [1] * 20)])
    def test_so_many_records_each(self, make: Make, tmp_path: Path, count: int, expected: list[int], payload: bytes):
        content = numbered_records(20, payload=payload)

        result = split(make(content), tmp_path / "s-{shard:02d}.tar", count=count)

        assert expected == [tar.records for tar in result.outputs]
        assert [str(tmp_path / f"s-{number:02d}.tar") for number in range(len(expected))] == [tar.url for tar in result.outputs]
        assert content == [record for tar in result.outputs for record in plain(tar.url)]

    @settings(max_examples=80, deadline=None)
    @given(
        record_lists(max_size=12), st.integers(1, 12_000), st.sampled_from([tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
    )
    @pytest.mark.matrix
    def test_no_shard_is_larger_unless_one_record_is(self, tmp_path_factory: Any, content: Any, limit: int, format: int):
        folder = tmp_path_factory.mktemp("split")
        content = [(f"n{number}", fields) for number, (_, fields) in enumerate(content)]
        (folder / "a.tar").write_bytes(shard(content, format=format, mtime=0.5 if format == tarfile.PAX_FORMAT else 0))

        result = split(folder / "a.tar", folder / "s.tar", size=limit)

        assert content == [record for tar in result.outputs for record in plain(tar.url)]
        for number, tar in enumerate(result.outputs):
            assert Path(tar.url).stat().st_size == tar.bytes
            assert tar.bytes <= limit or tar.records == 1
            if number:  # the first record would not have fitted into the shard before it
                one = split(tar.url, folder / f"one-{number}-%d.tar", count=1).outputs[0]
                assert result.outputs[number - 1].bytes + one.bytes - 1024 > limit

    @settings(max_examples=60, deadline=None)
    @given(record_lists(), st.integers(1, 5))
    @pytest.mark.matrix
    def test_cat_puts_together_what_split_took_apart(self, tmp_path_factory: Any, content: Any, count: int):
        folder = tmp_path_factory.mktemp("split")
        data = shard(content, format=tarfile.GNU_FORMAT)
        (folder / "a.tar").write_bytes(data)

        result = split(folder / "a.tar", folder / "s.tar", count=count)
        if result.outputs:
            cat([tar.url for tar in result.outputs], folder / "out.tar")
            assert data.rstrip(b"\0") == (folder / "out.tar").read_bytes().rstrip(b"\0")
        else:
            assert [] == content

    def test_the_end_mark_counts(self, make: Make, tmp_path: Path):
        content = numbered_records(4, payload=b"x" * 512)  # 2048 bytes a record

        exact = split(make(content), tmp_path / "a.tar", size=2 * 2048 + 1024)
        less = split(make(content), tmp_path / "b.tar", size=2 * 2048 + 1023)

        assert ([2, 2], [1, 1, 1, 1]) == ([tar.records for tar in exact.outputs], [tar.records for tar in less.outputs])

    def test_sizes_are_written_as_people_write_them(self, make, tmp_path):
        for size in ["1e4", "10kB", 10_000, 1e4]:
            assert 3 == len(split(make(numbered_records(10, payload=b"x" * 512)), tmp_path / "a.tar", size=size).outputs)

    def test_both_limits_hold(self, make: Make, tmp_path: Path):
        content = [*numbered_records(4), *numbered_records(4, payload=LARGE, prefix="b")]

        result = split(make(content), tmp_path / "a.tar", size=80_000, count=3)

        assert [3, 2, 1, 1, 1] == [tar.records for tar in result.outputs]

    def test_no_more_shards_than_asked_for(self, make: Make, tmp_path: Path):
        a = make(numbered_records(10))
        (tmp_path / "broken.tar").write_bytes(a.read_bytes()[:2000])

        result = split([a, tmp_path / "broken.tar"], tmp_path / "s.tar", count=4, maxshards=2)

        assert ([4, 4], 0) == ([tar.records for tar in result.outputs], result.exit_code)

    def test_no_records_make_no_shard(self, make: Make, tmp_path: Path):
        assert [] == split(make([]), tmp_path / "s.tar").outputs

    def test_limits_that_hold_nothing_are_refused(self, make, tmp_path):
        for wrong in [{"count": 0}, {"size": 0}, {"maxshards": 0}, {"size": "many"}]:
            with pytest.raises(UsageError):
                split(make(numbered_records(1)), tmp_path / "s.tar", **wrong)


class TestNames:
    def test_a_pattern_is_understood(self):
        for text, expected in [
            ("imagenet_train", "imagenet_train-{shard:06d}.tar"),
            ("out/train.tar", "out/train-{shard:06d}.tar"),
            ("train.tar.gz", "train-{shard:06d}.tar.gz"),
            ("train.tgz", "train-{shard:06d}.tgz"),
            ("s-%06d.tar", "s-%06d.tar"),
            ("s-%d", "s-%d"),
            ("s-{shard:04d}.tar", "s-{shard:04d}.tar"),
            ("s-{}.tar", "s-{}.tar"),
        ]:
            assert expected == pattern(text)

    def test_start_is_the_first_number(self, make: Make, tmp_path: Path):
        result = split(make(numbered_records(4)), tmp_path / "s-%03d.tar", count=2, start=7)

        assert ["s-007.tar", "s-008.tar"] == [Path(tar.url).name for tar in result.outputs]

    def test_packed_shards(self, make: Make, tmp_path: Path):
        result = split(make(numbered_records(4)), tmp_path / "s-%d.tar.gz", count=2)

        assert numbered_records(4) == [record for tar in result.outputs for record in plain(tar.url)]

    def test_into_another_store(self, make: Make):
        split(make(numbered_records(4)), "memory://split/s-%d.tar", count=2)

        assert numbered_records(4)[2:] == plain("memory://split/s-1.tar")

    def test_a_folder_is_no_pattern(self, make: Make, tmp_path: Path):
        with pytest.raises(UsageError):
            split(make(numbered_records(1)), f"{tmp_path}/{{what}}.tar")


class TestDamage:
    @pytest.mark.parametrize("payload", [b"x" * 600, LARGE], ids=["tiny", "large"])
    def test_finished_shards_stay_and_no_half_one(self, make: Make, tmp_path: Path, payload: bytes):
        data = shard(numbered_records(20, payload=payload))

        with pytest.raises(DataError):
            split(make(data[: data.index(b"train/n00000017.cls") + 100]), tmp_path / "out" / "s-%d.tar", count=5)

        assert ["s-0.tar", "s-1.tar", "s-2.tar"] == sorted(path.name for path in (tmp_path / "out").iterdir())
        assert [5, 5, 5] == [len(plain(tmp_path / "out" / f"s-{number}.tar")) for number in range(3)]


class TestCommand:
    @pytest.mark.parametrize("name", ["s.tar", "a b.tar", "$(touch x);'\".tar", "-rf.tar"])
    @pytest.mark.parametrize(
        ("command", "expected"),
        [
            ("printf %s,", "{shard},"),
            ("printf %s, {base}_copy{ext}", "{base}_copy.tar,"),
            ("printf '%s,' '{base}|{ext}'", "{base}|.tar,"),
            ('printf %s, "a {base} b"; printf %s, $(basename {shard} .tar)xx | head -c 2', "a {base} b,"),
            ("printf %s, {dirname} {other} && printf %s, \\{x", "out,{{other}},{{x,"),
            ("printf %s, 1 > /dev/null; printf %s, 2", "2,"),
        ],
    )
    def test_a_shell_reads_the_command_and_no_name(self, tmp_path: Path, name: str, command: str, expected: str):
        (tmp_path / "out").mkdir()
        line = shard_command.line(command)
        environment = {**os.environ, **shard_command.environment(f"out/{name}")}

        done = subprocess.run(["bash", "-c", line], env=environment, cwd=tmp_path, capture_output=True, check=True)

        assert done.stdout.decode().startswith(expected.format(shard=f"out/{name}", base=name.removesuffix(".tar")))
        assert ["out"] == os.listdir(tmp_path)

    def test_parts_of_a_url_stay(self):
        assert "s3://b/s.tar" == shard_command.environment("s3://b/s.tar")["TARVIZ_ABSPATH"]

    @pytest.mark.parametrize("wrong", ["", "  ", "echo 'a"])
    def test_words_that_are_none(self, make: Make, tmp_path: Path, wrong: str):
        with pytest.raises(UsageError):
            split(make(numbered_records(1)), tmp_path / "s.tar", command=wrong)

    def test_sees_each_shard_whole_and_no_shell_reads_its_name(self, make: Make, tmp_path: Path):
        code = f"import sys, os; open({str(tmp_path / 'log')!r}, 'a').write(f'{{sys.argv[1:]}} {{os.path.getsize(sys.argv[1])}}\\n')"
        (tmp_path / "log.py").write_text(code)

        result = split(
            make(numbered_records(4)), tmp_path / "s $(touch x);{shard}.tar", count=2, command=f"{sys.executable} {tmp_path / 'log.py'}"
        )

        lines = (tmp_path / "log").read_text().splitlines()
        assert [f"{[tar.url]} {tar.bytes}" for tar in result.outputs] == lines

    def test_one_that_fails_ends_the_work(self, make: Make, tmp_path: Path):
        with pytest.raises(StoreError, match=r"E_COMMAND.*ended with 1"):
            split(make(numbered_records(4)), tmp_path / "s.tar", count=2, command="false")
        assert (tmp_path / "s-000000.tar").exists()
        assert not (tmp_path / "s-000001.tar").exists()

    def test_or_is_counted(self, make: Make, tmp_path: Path):
        result = split(make(numbered_records(4)), tmp_path / "s.tar", count=2, command="false", on_error="skip")

        assert (2, 1, {"E_COMMAND": 2}) == (len(result.outputs), result.exit_code, result.report.counts())

    def test_one_that_is_killed_ends_the_work_too(self, make: Make, tmp_path: Path):
        with pytest.raises(StoreError, match=r"E_COMMAND.*ended with -9"):
            split(make(numbered_records(4)), tmp_path / "s.tar", count=2, command="kill -9 $$; true")

    def test_a_command_there_is_not(self, make: Make, tmp_path: Path):
        with pytest.raises(StoreError, match=r"E_COMMAND.*ended with 127"):
            split(make(numbered_records(4)), tmp_path / "s.tar", count=2, command="no-such-thing")


class TestShell:
    def test_a_pipe_of_tools(self, make: Make, bash: Any, tmp_path: Path):
        make(numbered_records(50))

        done = bash("tarviz cat a.tar | tarviz split -n 20 -o 's-{shard:04d}.tar' - && tarviz cat 's-{0000..0002}.tar' | cmp - a.tar")

        assert (0, b"") == (done.returncode, done.stderr) or b"EOF on" in done.stderr
        assert b"s-0002.tar: 10 records" in done.stdout
        assert 40 == len(listed(tmp_path / "s-0001.tar"))

    def test_json_stays_out_of_a_tar_on_standard_output(self, make: Make, bash: Any):
        make(numbered_records(5))

        done = bash("tarviz split -o - --json a.tar | tar -t")

        assert 10 == len(done.stdout.split())
        assert 5 == json.loads(done.stderr)["records"]

    def test_json(self, make: Make, bash: Any):
        make(numbered_records(5))

        content = json.loads(bash("tarviz split -n 2 -o s --json < a.tar").stdout)

        assert [2, 2, 1] == [tar["records"] for tar in content["outputs"]]

    def test_what_commands_print_goes_to_stderr(self, make: Make, bash: Any):
        make(numbered_records(5))

        done = bash("tarviz split -n 3 -o s -q -C 'echo done' a.tar --json")

        assert b"done s-000000.tar\ndone s-000001.tar\n" == done.stderr
        assert 5 == json.loads(done.stdout)["records"]

    @pytest.mark.matrix
    def test_commands_of_tarsplit_run_as_they_stand(self, make: Make, bash: Any, tmp_path: Path):
        make(numbered_records(4))
        (tmp_path / "old.tar").touch()

        done = bash("tarsplit -n 2 -o s -C 'rm -f old.tar ; mkdir -p done && cp {abspath} done/{base}_copy{ext}' a.tar")
        more = bash("tarsplit -n 2 -o t -C 'rm -f t-000000.tar x' a.tar; tarsplit -n 2e0 -z a.tar")

        assert (0, 0) == (done.returncode, more.returncode), done.stderr + more.stderr
        assert ["s-000000_copy.tar", "s-000001_copy.tar"] == sorted(os.listdir(tmp_path / "done"))
        assert {"s-000000.tar", "s-000001.tar", "t-000001.tar", "temp-000000.tgz", "temp-000001.tgz"} == {
            path.name for path in tmp_path.glob("?*-*.t*")
        }
        assert not (tmp_path / "old.tar").exists()

    def test_the_sum_of_a_folder(self, bash: Any, tmp_path: Path):
        for number in range(30):
            folder = tmp_path / "raw" / "train" / f"n{number % 3}"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{number:03d}.jpg").write_bytes(LARGE)

        done = bash("tar -cf - --sort=name -C raw train | tarviz split -s 1e6 -o t --maxshards 2")

        assert (0, b"") == (done.returncode, done.stderr)
        assert [14, 14] == [len(plain(tmp_path / f"t-00000{number}.tar")) for number in (0, 1)]

    def test_default_limits(self):
        assert (100_000, 10**9) == (module.DEFAULT_COUNT, module.DEFAULT_SIZE)


def test_where_it_is_wished_for_nothing_that_is_there_is_replaced(make: Make, tmp_path: Path):
    (tmp_path / "s-000001.tar").write_bytes(b"of somebody")

    with pytest.raises(UsageError, match=r"s-000001\.tar is there already"):
        split(make(numbered_records(4)), tmp_path / "s.tar", count=2, exists="error")
    assert b"of somebody" == (tmp_path / "s-000001.tar").read_bytes()
    assert not (tmp_path / "s-000000.tar").exists()
    assert 2 == len(split(make(numbered_records(4)), tmp_path / "s.tar", count=2).outputs)


def listed_last(path: Path) -> list[tuple[str, Any]]:
    """The records of a shard, their keys up to the last dot."""
    return [(record.key, dict(record)) for record in tarviz.records(path, key_split="last-dot")]


class TestRatio:
    RATIO = "train=0.8,val=0.1,test=0.1"

    def parts(self, folder: Path, *sources: Path, **options: Any) -> dict[str, list[str]]:
        result = split(sources, folder / "{part}-{shard:03d}.tar", ratio=self.RATIO, **options)
        found: dict[str, list[str]] = {"train": [], "val": [], "test": []}
        for tar in result.outputs:
            found[Path(tar.url).name.partition("-")[0]] += [key for key, _ in plain(tar.url)]
        return found

    def test_every_record_is_in_one_part_and_shares_are_about_right(self, make: Make, tmp_path: Path):
        content = numbered_records(3000)
        found = self.parts(tmp_path, make(content), count=1000)

        assert sorted(key for key, _ in content) == sorted(key for keys in found.values() for key in keys)
        assert [2400, 300, 300] == pytest.approx([len(keys) for keys in found.values()], abs=75)
        assert all(keys == sorted(keys) for keys in found.values())  # as they lie
        assert ["train-000.tar", "train-001.tar", "train-002.tar"] == sorted(each.name for each in tmp_path.glob("train-*"))

    def test_no_record_moves_when_shards_are_added(self, make: Make, tmp_path: Path):
        shards = [make(numbered_records(50, prefix=f"{number}/"), f"s-{number:02d}.tar") for number in range(15)]
        (tmp_path / "a").mkdir()
        (tmp_path / "b").mkdir()
        before, later = self.parts(tmp_path / "a", *shards[:5]), self.parts(tmp_path / "b", *shards[::-1])

        assert all(set(before[part]) < set(later[part]) for part in before)

    def test_records_of_one_group_stay_together(self, make: Make, tmp_path: Path):
        pytest.importorskip("duckdb", reason="a table needs DuckDB: pip install 'tarviz[table]'")
        content = [(f"{at:04d}", {"json": json.dumps({"patient": f"p{at % 40}"}).encode()}) for at in range(400)]
        content.append(("none", {"txt": b"no patient"}))
        half = [make(content[:150], "a.tar"), make(content[150:], "b.tar")]
        found = self.parts(tmp_path, *half, by="json.patient")

        patients = [{int(key) % 40 for key in keys if key != "none"} for keys in found.values()]
        assert 401 == sum(map(len, found.values()))
        assert 40 == sum(map(len, patients)) == len(set().union(*patients))

    def test_groups_are_of_the_records_as_they_are_cut(self, make: Make, tmp_path: Path):
        """Two archives in one file, and keys up to the last dot: what is looked up are the records that are written."""
        pytest.importorskip("duckdb", reason="a table needs DuckDB: pip install 'tarviz[table]'")
        content = [(f"a.{at:04d}", {"json": json.dumps({"patient": f"p{at % 7}"}).encode()}) for at in range(60)]
        path = make(shard(content[:30]) + shard(content[30:]))
        found = self.parts(tmp_path, path, by="json.patient", concatenated=True, key_split="last-dot")

        written = [key for part in found for tar in sorted(tmp_path.glob(f"{part}-*.tar")) for key, _ in listed_last(tar)]
        assert sorted(key for key, _ in content) == sorted(written)
        patients = [{int(key[2:]) % 7 for tar in tmp_path.glob(f"{part}-*.tar") for key, _ in listed_last(tar)} for part in found]
        assert 7 == sum(map(len, patients))
        with pytest.raises(UsageError, match="named once"):
            self.parts(tmp_path, path, path, by="json.patient")

    def test_what_cannot_be_meant_is_refused_before_anything_is_written(self, make, tmp_path):
        for output, options, match in [
            ("{part}.tar", {}, "go together"),
            ("s-{shard}.tar", {"ratio": "a=1,b=1"}, "go together"),
            ("{part}-{shard}.tar", {"ratio": "a=0.5,b"}, "no ratio"),
            ("{part}-{shard}.tar", {"ratio": "a=1,b=-1"}, "no ratio"),
            ("{part}-{shard}.tar", {"ratio": "a=1,a=1"}, "names of their own"),
            ("{part}-{shard}.tar", {"ratio": "a/b=1,c=1"}, "names of their own"),
            ("{part}-{shard}.tar", {"ratio": "a=1,b=1", "jobs": 2}, "one process"),
            ("s-{shard}.tar", {"by": "cls"}, "for a ratio"),
        ]:
            path = make(numbered_records(3))
            with pytest.raises(UsageError, match=match):
                split(path, tmp_path / output, **options)

            assert [path] == list(tmp_path.iterdir())

    def test_damage_leaves_no_half_shard(self, make: Make, tmp_path: Path):
        data = shard(numbered_records(40))
        path = make(data[: len(data) // 2 + 100])
        with pytest.raises(DataError):
            split(path, tmp_path / "{part}-{shard}.tar", ratio="a=1,b=1")

        assert [path] == list(tmp_path.iterdir())

    def test_the_shell_takes_it(self, make: Make, tmp_path: Path):
        path = make(numbered_records(40))
        words = ["split", "-q", "--ratio", "a=3,b=1", "-o", str(tmp_path / "{part}-{shard:02d}.tar"), str(path)]

        assert 0 == cli.main(words)
        assert {"a-00.tar", "b-00.tar"} <= {each.name for each in tmp_path.iterdir()}


def test_a_name_without_a_counter_is_refused(make: Make, tmp_path: Path):
    for name in ("{what}.tar", "a{.tar", "a}.{b.tar", "{{}}.tar", "{shard.tar"):
        with pytest.raises(UsageError):
            split(make(numbered_records(1)), tmp_path / name)


@pytest.mark.parametrize(
    "wrong", [{"maxshards": 2}, {"jobs": 1}, {"resume": True}, {"address": "auto"}, {"engine": "ray"}], ids=lambda wrong: next(iter(wrong))
)
def test_parts_are_written_here_and_all_of_them(make: Make, tmp_path: Path, wrong: Any):
    with pytest.raises(UsageError, match="parts are written by one process"):
        split(make(numbered_records(1)), tmp_path / "{part}-{shard}.tar", ratio="a=1,b=1", **wrong)


@pytest.mark.parametrize("wrong", [{"where": "cls = 1"}, {"keys": "list"}, {"on_error": "skip"}])
def test_a_group_is_of_whole_shards(make: Make, tmp_path: Path, wrong: Any):
    (tmp_path / "list").write_text("a")
    options = {**wrong, **({"keys": str(tmp_path / "list")} if "keys" in wrong else {})}
    with pytest.raises(UsageError, match="whole shards, each named once"):
        split(make(numbered_records(1)), tmp_path / "{part}-{shard}.tar", ratio="a=1,b=1", by="cls", **options)


def test_a_shard_that_grew_since_its_groups_were_looked_up_is_an_error(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("duckdb", reason="a table needs DuckDB: pip install 'tarviz[table]'")
    path, look = make(numbered_records(3)), module._values

    def grown(*args: Any) -> Any:
        found = look(*args)
        make(numbered_records(4))
        return found

    monkeypatch.setattr(module, "_values", grown)
    with pytest.raises(ChangedError, match="more records than when their groups"):
        split(path, tmp_path / "{part}-{shard}.tar", ratio="a=1,b=1", by="cls")

    assert [path] == list(tmp_path.iterdir())


def test_what_a_manifest_says_of_a_split(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    make(numbered_records(5))
    split("a.tar", "o-%d.tar", count=2, resume=True, jobs=1)
    said = json.loads(Path("o-1.tar.manifest.json").read_text())

    assert ("tar", "split", {"first": 2, "records": 2}, 2) == (said["format"], said["verb"], said["part"], said["records"])
    limits = {"count": 2, "size": None}
    reading = {"on_error": "raise", "strict": True, "key_split": "first-dot", "duplicates": "error", "concatenated": False}
    assert limits | reading == said["options"]
    assert [0] == [source["number"] for source in said["sources"]]
    assert Path("o-1.tar").stat().st_size == said["bytes"]


def test_an_output_whose_shard_was_cut_otherwise_is_no_proof(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What a condition chooses may change without its text changing: nothing is kept."""
    pytest.importorskip("duckdb", reason="a table needs DuckDB: pip install 'tarviz[table]'")
    monkeypatch.chdir(tmp_path)
    make(numbered_records(5))
    split("a.tar", "o-%d.tar", count=2, resume=True, where="cls > 0")
    before = os.stat("o-0.tar").st_mtime_ns
    split("a.tar", "o-%d.tar", count=2, resume=True, where="cls > 0")

    assert before != os.stat("o-0.tar").st_mtime_ns
    assert json.loads(Path("o-0.tar.manifest.json").read_text())["options"] is None
