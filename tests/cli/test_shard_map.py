"""`-o 'x-{}.tar'`: a verb that reads several shards makes an output of each by itself (seeds, finding 8)."""

from __future__ import annotations

import inspect
import io
import json
import os
import tarfile

import pytest

from tarviz.commands.cat import cat
from tarviz.commands.pcat import pcat
from tarviz.commands.proc import proc
from tarviz.commands.sort import sort
from tarviz.commands.tsv import tsv
from tarviz.model.errors import DataError, UsageError
from tarviz.outputs import tar_member

VERBS = {
    "cat": cat,
    "cat-chosen": lambda urls, out, **more: cat(urls, out, count=3, skip=1, fields="txt", key="{base}-{n:03d}", **more),
    "cat-shuffled": lambda urls, out, **more: cat(urls, out, shuffle=4, seed=5, **more),
    "pcat": pcat,
    "proc": lambda urls, out, **more: proc(urls, out, command="tr 0-9 a-j < sample.txt > sample.low; rm sample.cls", **more),
    "proc-chain": lambda urls, out, **more: proc(urls, out, op="keep(txt)", **more),
    "sort": lambda urls, out, **more: sort(urls, out, by="cls", to="int", **more),
    "sort-shuffled": lambda urls, out, **more: sort(urls, out, shuffle=True, seed=3, **more),
    "tsv": lambda urls, out, **more: tsv(urls, out, fields="cls txt", **more),
}


def put(path, records, cut=None):
    data = b"".join(
        b"".join([*tar_member(f"n{at:03d}.txt", b"%d" % at), *tar_member(f"n{at:03d}.cls", b"%d" % (7 * at % 5))]) for at in records
    )
    path.write_bytes((data + bytes(1024))[:cut])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number, count in enumerate((5, 1, 12)):
        put(tmp_path / f"in-{number}.tar", range(100 * number, 100 * number + count))
    return tmp_path


class TestShardToShard:
    @pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
    def test_each_output_is_the_verb_run_on_its_shard_alone(self, folder, verb):
        alone = []
        for number in range(3):
            verb(f"in-{number}.tar", "alone.out")
            alone.append((folder / "alone.out").read_bytes())

        result = verb("in-{0..2}.tar", "x-{}.out")

        assert alone == [(folder / f"x-{number}.out").read_bytes() for number in (1, 2, 3)]
        assert not (folder / "x-{}.out").exists()
        assert 0 == result.exit_code

    def test_worker_processes_write_the_same(self, folder):
        cat("in-{0..2}.tar", "a-{shard:04d}.tar")

        result = cat("in-{0..2}.tar", "b-{shard:04d}.tar", jobs=2)

        assert [(folder / f"a-000{at}.tar").read_bytes() for at in range(3)] == [
            (folder / f"b-000{at}.tar").read_bytes() for at in range(3)
        ]
        assert [("b-0000.tar", 5), ("b-0001.tar", 1), ("b-0002.tar", 12)] == [(tar.url, tar.records) for tar in result.outputs]

    def test_names_count_inputs_also_past_one_that_fails(self, folder):
        put(folder / "in-1.tar", range(9), cut=5000)

        with pytest.raises(DataError, match=r"in-1\.tar"):
            cat("in-{0..2}.tar", "x-{}.tar")

        assert {"x-1.tar", "x-3.tar"} == {name for name in os.listdir() if "x-" in name}

    def test_the_error_names_every_shard_that_failed(self, folder):
        put(folder / "in-0.tar", range(9), cut=5000)
        put(folder / "in-2.tar", range(9), cut=5000)

        with pytest.raises(DataError, match=r"in-0\.tar.*1 more failed: in-2\.tar \(E_TRUNCATED\)"):
            sort("in-{0..2}.tar", "x-{}.tar")

        assert ["x-2.tar"] == [name for name in os.listdir() if "x-" in name]

    def test_what_is_skipped_is_counted_over_all_shards(self, folder):
        put(folder / "in-1.tar", range(9), cut=5000)

        result = cat("in-{0..2}.tar", "x-{}.tar", on_error="skip")

        assert 1 == result.exit_code
        assert ["in-1.tar"] == [fault.shard for fault in result.report.skipped]
        assert 3 == len(result.outputs)

    def test_an_output_that_is_an_input_is_refused_before_anything_is_written(self, folder):
        before = {name: (folder / name).read_bytes() for name in os.listdir()}

        with pytest.raises(UsageError, match="one of the inputs"):
            cat("in-{0..2}.tar", "in-{}.tar")

        assert before == {name: (folder / name).read_bytes() for name in os.listdir()}

    def test_standard_input_is_the_first_shard(self, folder, monkeypatch):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO((folder / "in-0.tar").read_bytes())))
        cat(["-", "in-1.tar"], "x-{}.tar")

        assert [(folder / f"in-{at}.tar").read_bytes() for at in (0, 1)] == [(folder / f"x-{at}.tar").read_bytes() for at in (1, 2)]

    def test_a_call_that_cannot_work_is_said_once(self, folder):
        with pytest.raises(UsageError, match="command, script and op"):
            proc("in-{0..2}.tar", "x-{}.tar")

    def test_one_output_has_no_engine(self, folder):
        with pytest.raises(UsageError, match="one output of all shards"):
            cat("in-{0..2}.tar", "x.tar", jobs=2)


class TestResume:
    def test_outputs_that_are_proven_stay(self, folder):
        cat("in-{0..2}.tar", "x-{}.tar", resume=True)
        before = (folder / "x-1.tar").stat().st_mtime_ns
        os.unlink("x-2.tar")
        with open("x-3.tar", "r+b") as file:
            file.seek(600)
            file.write(b"?")

        result = cat("in-{0..2}.tar", "x-{}.tar", resume=True)

        assert before == (folder / "x-1.tar").stat().st_mtime_ns
        assert [5, 1, 12] == [tar.records for tar in result.outputs]
        with tarfile.open("x-3.tar") as tar:
            assert 24 == len(tar.getnames())

    @pytest.mark.parametrize("change", [{"count": 2}, {"fields": "txt"}])
    def test_other_options_make_them_anew(self, folder, change):
        cat("in-{0..2}.tar", "x-{}.tar", resume=True)

        result = cat("in-{0..2}.tar", "x-{}.tar", resume=True, **change)
        cat("in-2.tar", "alone.tar", **change)

        assert (folder / "alone.tar").read_bytes() == (folder / "x-3.tar").read_bytes()
        assert 3 == len(result.outputs)

    def test_another_source_makes_it_anew(self, folder):
        cat("in-{0..2}.tar", "x-{}.tar", resume=True)
        put(folder / "in-1.tar", range(3))

        result = cat("in-{0..2}.tar", "x-{}.tar", resume=True)

        assert [5, 3, 12] == [tar.records for tar in result.outputs]

    def test_the_manifest_tells_source_options_and_checksum(self, folder):
        sort("in-{0..2}.tar", "x-{}.tar", resume=True, reverse=True)

        manifest = json.loads((folder / "x-3.tar.manifest.json").read_text())

        assert ("tar", "sort", 12) == (manifest["format"], manifest["verb"], manifest["records"])
        assert (str((folder / "in-2.tar").resolve()), 2) == (manifest["sources"][0]["shard"], manifest["sources"][0]["number"])
        assert manifest["options"]["reverse"] is True
        assert (folder / "x-3.tar").stat().st_size == manifest["bytes"]

    def test_without_resume_there_is_no_manifest(self, folder):
        cat("in-{0..2}.tar", "x-{}.tar")

        assert {"x-1.tar", "x-2.tar", "x-3.tar"} == {name for name in os.listdir() if name.startswith("x-")}


class Marked:
    """A Python function, which may change without its name changing."""

    mark = b"1"

    def __call__(self, record):
        record["txt"] = self.mark
        return record


def test_what_a_function_made_is_made_anew_whatever_the_manifest_says(folder, monkeypatch):
    from tarviz.ops import Func

    found = []
    for mark in (b"1", b"2"):
        monkeypatch.setattr(Marked, "mark", mark)
        proc("in-{0..2}.tar", "x-{}.tar", op=Func(Marked()), resume=True)
        with tarfile.open(folder / "x-1.tar") as archive:
            found.append(archive.extractfile("n000.txt").read())

    assert [b"1", b"2"] == found


@pytest.mark.parametrize(("urls", "output"), [("-", "x-{}.tar"), ("memory://a/b.tar", "x-{}.tar"), ("in-0.tar", "memory://a/x-{}.tar")])
def test_what_is_of_this_process_alone_does_not_travel(folder, urls, output):
    with pytest.raises(UsageError, match="of this process alone"):
        cat(urls, output, engine="ray")


def test_what_a_script_made_is_kept_as_long_as_the_script_is_the_same(folder):
    def made(word):
        (folder / "work.sh").write_text(f"printf {word} > sample.txt")
        proc("in-{0..2}.tar", "x-{}.tar", script="work.sh", resume=True)
        with tarfile.open(folder / "x-1.tar") as archive:
            return archive.extractfile("n000.txt").read(), os.stat("x-1.tar").st_mtime_ns

    first, again, other = made("one"), made("one"), made("two")

    assert (b"one", b"two", first) == (first[0], other[0], again)


def test_what_a_manifest_says_of_a_tool(folder):
    cat("in-{0..2}.tar", "x-{}.tar", resume=True, sub=("n", "m"), count=3)
    manifest = json.loads((folder / "x-1.tar.manifest.json").read_text())

    assert {
        "count": 3, "skip": 0, "slice": None, "shuffle": 0, "seed": 0, "fields": None, "drop": [], "key": None, "sub": ["n", "m"]
    } == manifest["options"]  # fmt: skip
    assert ("tar", "cat", 3) == (manifest["format"], manifest["verb"], manifest["records"])


def test_a_shard_in_memory_is_worked_on_here(folder):
    cat("in-0.tar", "memory://mapped/in.tar")

    assert [5] == [tar.records for tar in cat(["memory://mapped/in.tar"], "y-{}.tar", jobs=4).outputs]


def test_a_tool_says_all_its_options():
    for verb in [cat, pcat, proc, sort, tsv]:
        own = inspect.signature(verb).parameters

        assert ["urls", "output"] == [*own][:2]
        assert [*own][-5:] == ["engine", "address", "jobs", "resume", "reading"]
        assert ("local", None, None, False) == tuple(own[name].default for name in ("engine", "address", "jobs", "resume"))
        assert {inspect.Parameter.KEYWORD_ONLY} == {part.kind for name, part in own.items() if name not in ("urls", "output", "reading")}


def test_a_call_is_bound_as_it_is_written(folder):
    assert [5] == [tar.records for tar in cat(output="x-{}.tar", urls="in-0.tar").outputs]
    assert [2] == [tar.records for tar in cat("in-0.tar", output="x-{}.tar", count=2).outputs]
    with pytest.raises(TypeError):
        cat("in-0.tar", "x-{}.tar", 2)
    with pytest.raises(TypeError):
        pcat()
    with pytest.raises(UsageError, match="no option 'cuont'"):
        cat("in-0.tar", "x-{}.tar", cuont=2)
