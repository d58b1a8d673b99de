"""No verb writes onto what it reads (issue 10, F1): an error before anything is written, and every byte is still there."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import pytest

from tarviz.commands.cat import cat
from tarviz.commands.convert import convert
from tarviz.commands.create import create
from tarviz.commands.first import first
from tarviz.commands.index import index
from tarviz.commands.join import join
from tarviz.commands.objects import objects
from tarviz.commands.pcat import pcat
from tarviz.commands.proc import proc
from tarviz.commands.sort import sort
from tarviz.commands.split import split
from tarviz.commands.sql import sql
from tarviz.commands.tsv import tsv
from tarviz.commands.verify import verify
from tarviz.model.errors import UsageError
from tarviz.outputs import tar_member

ONE = {
    "cat": cat,
    "pcat": pcat,
    "sort": sort,
    "tsv": tsv,
    "convert": convert,
    "proc": lambda urls, output: proc(urls, output, op="keep(txt)"),
    "first": lambda urls, output: first(urls, output, field="txt"),
    "verify": lambda urls, output: verify(urls, repair=True, output=output),
    "index": lambda urls, output: index(urls, dali=output),
    "sql": lambda urls, output: sql("SELECT key FROM records", urls, output, format="csv"),
    "objects": lambda urls, output: objects(urls, output, form="voc"),
}
COUNTED = {
    "split": lambda urls, output: split(urls, output, count=4),
    "convert": convert,
    "convert-limited": lambda urls, output: convert(urls, output, max_shard_size="1kB"),
    "join": lambda urls, output: join(urls, "d/a-0.tar", output),
}


def state(folder):
    """Every file below a folder, and what is in it."""
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Four shards `d/a-0.tar` … of 12 records, a link `link.tar` to the first, and a link `e` to the folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d").mkdir()
    for shard in range(4):
        members = b"".join(b"".join(tar_member(f"{shard}{at:03d}.txt", b"%d" % at)) for at in range(12))
        (tmp_path / "d" / f"a-{shard}.tar").write_bytes(members + bytes(1024))
    os.symlink("d/a-0.tar", "link.tar")
    os.symlink("d", "e")
    return tmp_path


@pytest.mark.parametrize("name", ["d/a-0.tar", "./d/../d/a-0.tar", "link.tar", "e/a-0.tar", "d/hard.tar"])
@pytest.mark.parametrize("verb", ONE)
def test_an_output_that_is_an_input_is_refused(folder, verb, name):
    os.link(folder / "d" / "a-0.tar", folder / "d" / "hard.tar")
    before = state(folder)

    with pytest.raises(UsageError, match="one of the inputs"):
        ONE[verb](["d/a-0.tar"], name)
    assert before == state(folder)


@pytest.mark.parametrize("name", ["d/a-{shard}.tar", "d/a-{}.tar", "./e/a-{shard:01d}.tar", "d/a.tar", "link{}.tar"])
@pytest.mark.parametrize("verb", COUNTED)
def test_so_is_one_of_many(folder, verb, name):
    os.symlink("d/a-3.tar", "link2.tar")
    if name == "d/a.tar" and verb != "convert-limited":
        name = "d/a-{shard}.tar"
    before = state(folder)

    with pytest.raises(UsageError, match="one of the inputs"):
        COUNTED[verb]("d/", name)
    assert before == state(folder)


def test_split_by_its_default_names_twice_in_one_folder(folder, monkeypatch):
    monkeypatch.chdir(folder / "d")
    split("a-0.tar", count=3)
    before = state(folder)

    with pytest.raises(UsageError, match=r"split-000000\.tar.*one of the inputs"):
        split("split-*.tar", count=2)
    assert before == state(folder)


def test_split_may_write_beside_its_inputs_where_no_name_is_theirs(folder):
    split("d/", "d/a-{shard:06d}.tar", count=10)
    split("d/a-{0..3}.tar", "d/a-{shard}.tar", start=4)

    assert 10 == len(list((folder / "d").iterdir()))


def test_create_neither_overwrites_its_plan_nor_a_file_it_takes(folder):
    (folder / "plan.tsv").write_text("__key__\t@txt\nk\td/a-1.tar\n")
    for output in ("plan.tsv", "d/a-1.tar", "./d/a-{shard}.tar"):
        with pytest.raises(UsageError, match="one of the inputs"):
            create("plan.tsv", output, count=5 if "{" in output else None)
    before = state(folder)
    with pytest.raises(UsageError, match="one of the inputs"):
        create("d", "d/a-2.tar", layout="flat")

    assert before == state(folder)


@pytest.mark.parametrize("name", ["d/a-0.tar", "link.tar"])
@pytest.mark.parametrize("verb", ["cat", "sort", "tsv -f txt", "pcat", "proc --op keep(txt)", "first -f txt"])
def test_standard_output_may_not_be_appended_to_an_input(folder, verb, name):
    before = state(folder)
    with open(name, "ab") as out:
        done = subprocess.run(
            [sys.executable, "-m", "tarviz", *verb.split(), "d/a-0.tar"], stdout=out, stderr=subprocess.PIPE, text=True, check=False
        )

    assert (2, True) == (done.returncode, "standard output is one of the inputs" in done.stderr)
    assert before == state(folder)
