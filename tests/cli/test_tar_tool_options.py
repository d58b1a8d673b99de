"""What the tar tools share: which shards a call means, the buffer that shuffles, and how their result is shown."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarviz.cli import tar_tool_options, verb_base
from tarviz.cli.shard_map import engine_options
from tarviz.cli.tar_tool_options import MAX_FAULTS, Made, Tar, command_shards, inputs_argument, listing, shuffled, tool_options
from tarviz.commands.cat import cat
from tarviz.model.errors import Fault, UsageError
from tarviz.model.types import URL
from tarviz.read.spans import Batch, intake
from tarviz.read.stream import ReadOptions, ReadReport
from tarviz.testing.strategies import numbered_records, shard
from tests.commands.conftest import plain
from tests.conftest import DATA

Make = Callable[..., Path]


class TestInputs:
    def test_none_is_standard_input_unless_a_list_says_so(self, tmp_path: Path):
        (tmp_path / "list").write_text("# nothing yet\n\n")

        assert ["-"] == command_shards(())
        with pytest.raises(UsageError, match="the list of URLs is empty"):
            command_shards((), str(tmp_path / "list"))

    def test_those_named_come_before_those_of_the_list(self, make: Make, tmp_path: Path):
        paths = [str(make(b"", f"{name}.tar")) for name in "abc"]
        (tmp_path / "list").write_text(f"\ufeff  {paths[1]}  \r\n#{paths[0]}\n{paths[2]}", "utf-8")

        assert [paths[0], paths[1], paths[2]] == command_shards(paths[0], str(tmp_path / "list"))

    @pytest.mark.parametrize("urls", [["-", "-"], ["-", "a.tar", "-"]])
    def test_standard_input_is_read_once(self, urls: list[str]):
        with pytest.raises(UsageError, match="once only"):
            command_shards(urls)

    def test_one_url_or_many_are_texts(self):
        assert (
            ["a.tar"]
            == tar_tool_options.list_urls("a.tar")
            == tar_tool_options.list_urls(Path("a.tar"))
            == tar_tool_options.list_urls([Path("a.tar")])
        )

    def test_a_list_that_is_too_long_is_none(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        (tmp_path / "list").write_text("a.tar\nb.tar\n")
        monkeypatch.setattr(tar_tool_options, "MAX_LIST", 12)
        assert ["a.tar", "b.tar"] == listing(str(tmp_path / "list"))
        monkeypatch.setattr(tar_tool_options, "MAX_LIST", 11)

        with pytest.raises(UsageError, match="the list of shards has more than 11 B"):
            listing(str(tmp_path / "list"))


class TestShuffled:
    @given(st.integers(1, 40), st.integers(1, 12), st.integers(0, 5))
    def test_it_is_what_a_list_drawn_from_by_that_seed_gives(self, tmp_path_factory: Any, count: int, size: int, seed: int):
        """The order that was drawn with a seed is the same in every version."""
        draw = random.Random(seed).randrange
        held, expected = [], []
        for key in (each for each, _ in numbered_records(count)):
            if len(held) < size:
                held.append(key)
            else:
                at = draw(size)
                expected.append(held[at])
                held[at] = key
        while held:
            at = draw(len(held))
            held[at], held[-1] = held[-1], held[at]
            expected.append(held.pop())
        path = tmp_path_factory.mktemp("shuffled") / "a.tar"
        path.write_bytes(shard(numbered_records(count)))

        with closing(intake([URL(str(path))], ReadOptions(), ReadReport())) as batches:
            assert expected == [batch.block.keys[record].decode() for batch, record in shuffled(batches, size, seed)]

    def test_records_that_wait_hold_no_more_than_a_few_beside_them(self, make: Make):
        """A block of a megabyte is not kept for one small record of it."""
        path = make(numbered_records(400), "small.tar.gz")
        path.write_bytes(gzip.compress(path.read_bytes()))

        with closing(intake([URL(str(path))], ReadOptions(), ReadReport())) as batches:
            found: list[tuple[Batch, int]] = list(shuffled(batches, 50, 0))

        assert 400 == len(found)
        assert 8 == max(len(batch) for batch, _ in found)
        assert all(len(batch.block.data) <= 8 * 2560 for batch, _ in found)

    def test_sparse_members_stay_whole(self, tmp_path: Path):
        for path in sorted((DATA / "corpora" / "generated").glob("A4[67]-*.tar")):
            cat(path, tmp_path / "o.tar", shuffle=2)

            assert sorted(plain(path)) == sorted(plain(tmp_path / "o.tar"))


class TestMade:
    def made(self, faults: int = 2) -> Made:
        report = ReadReport()
        for at in range(faults):
            report.add(Fault("E_SCHEMA", f"odd {at}.", "s.tar", f"k{at}"), skipped=True)
        report.add(Fault("W_EMPTY", "nothing <in> it.", "http://me:pw@h/a.tar"))
        return Made([Tar("http://me:pw@h/o.tar", 1, 1500), Tar("p.tar", 1200, 2_000_000)], report)

    def test_as_text(self):
        report = self.made().report
        assert [
            "http://***@h/o.tar: 1 record, 1.50 kB",
            "p.tar: 1,200 records, 2.00 MB",
            *(f"left out: {fault}" for fault in report.skipped),
            str(report.warnings[0]),
            "2 faults left out.",
        ] == str(self.made()).splitlines()
        assert "1 fault left out." in str(self.made(1))
        assert "left out." not in str(Made([], ReadReport()))

    def test_beyond_twenty_faults_are_counted(self):
        notes = list(self.made(MAX_FAULTS + 3).notes())

        others = [note for note in notes if not note.startswith(("left out: ", "W_"))]
        assert ["… 3 more", f"{MAX_FAULTS + 3} faults left out."] == others
        assert MAX_FAULTS == sum(note.startswith("left out: ") for note in notes)
        assert not any(note.startswith("…") for note in self.made(MAX_FAULTS).notes())

    def test_as_data(self):
        made = self.made()

        assert {
            "records": 1201,
            "bytes": 2_001_500,
            "outputs": [
                {"url": "http://***@h/o.tar", "records": 1, "bytes": 1500},
                {"url": "p.tar", "records": 1200, "bytes": 2_000_000},
            ],
            "read": made.report.to_dict(),
        } == made.to_dict()

    def test_in_a_notebook(self):
        bundle = self.made()._repr_mimebundle_()

        assert str(self.made()) == bundle["text/plain"]
        assert "<tr><td>p.tar</td><td class=right>1,200</td><td class=right>2.00 MB</td></tr>" in bundle["text/html"]
        assert "<th>tar</th><th class=right>records</th><th class=right>size</th>" in bundle["text/html"]
        assert 4 == bundle["text/html"].count('<p class="bad">')
        assert "nothing &lt;in&gt; it." in bundle["text/html"]
        assert "pw" not in bundle["text/html"]

    @pytest.mark.parametrize(("url", "silent"), [("-", True), ("/dev/stdout", True), ("o.tar", False)])
    def test_a_filter_is_silent_but_for_what_was_left_out(self, url: str, silent: bool):
        made = Made([Tar(url, 1, 1024)], self.made().report)

        assert silent == made.to_stdout
        assert ([] if silent else [str(made.outputs[0])]) == list(made.lines())
        assert 1 == len(list(made.lines(json=True)))
        assert list(self.made().notes()) == list(made.notes())

    def test_the_exit_code_is_1_where_something_was_left_out_or_warned_of(self):
        skipped, warned = ReadReport(), ReadReport()
        skipped.add(Fault("E_SCHEMA", "odd."), skipped=True)
        warned.add(Fault("W_EMPTY", "empty."))

        assert [0, 1, 1] == [Made([], report).exit_code for report in (ReadReport(), skipped, warned)]


TOOL = {"as_json": False, "on_error": "raise", "strict": True, "key_split": "first-dot", "duplicates": "error", "concatenated": False}


def test_the_options_of_a_tool():
    for words, changed in [
        ([], {}),
        (["a", "b", "-T", "list"], {"urls": ("a", "b"), "files": "list"}),
        (
            ["--json", "--on-error", "skip", "--lenient", "--concatenated"],
            {"as_json": True, "on_error": "skip", "strict": False, "concatenated": True},
        ),
        (
            ["--key-split", "last-dot", "--duplicates", "first", "--where", "x", "--keys", "k"],
            {"key_split": "last-dot", "duplicates": "first", "where": "x", "keys": "k"},
        ),
        (
            ["--engine", "ray", "--address", "auto", "--jobs", "0", "--resume"],
            {"engine": "ray", "address": "auto", "jobs": 0, "resume": True},
        ),
    ]:

        @verb_base.verb("some", example="some")
        @inputs_argument
        @engine_options
        @tool_options
        def some(**options: Any) -> dict[str, Any]:
            return options

        spread = {"engine": "local", "address": None, "jobs": None, "resume": False}
        assert {**TOOL, "where": "", "keys": "", "urls": (), "files": None, **spread, **changed} == some.main(words, standalone_mode=False)
