"""Parallel concatenation: all shards read, one order whatever the workers, mixes by weight, shuffles."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from tarviz import cli
from tarviz.commands.pcat import command, pcat
from tarviz.model.errors import DataError, NotFoundError, StoreError, UsageError
from tarviz.testing.faults import ALWAYS, Fault, FaultServer
from tarviz.testing.strategies import numbered_records, shard
from tests.commands.conftest import listed, plain

Make = Callable[..., Path]
LARGE = b"\xff" * 70_000


def keys(path: Path) -> list[str]:
    return [key for key, _ in plain(path)]


class TestOrder:
    @pytest.mark.parametrize("workers", [1, 2, 3, 50])
    @pytest.mark.parametrize("payload", [b"x" * 600, LARGE], ids=["tiny", "large"])
    def test_every_shard_is_read_in_shard_order(self, make: Make, out: Path, payload: bytes, workers: int):
        content = numbered_records(120, payload=payload)
        for number in range(12):
            data = shard(content[number * 10 : number * 10 + 10])
            make(gzip.compress(data, 1) if number % 2 else data, f"s-{number:02d}.tar")

        result = pcat(out.parent / "s-{00..11}.tar", out, workers=workers)

        assert content == plain(out)
        assert (120, 12, 0) == (result.report.records, result.report.shards, result.exit_code)

    @pytest.mark.matrix
    def test_count_ends_early_and_leaves_no_thread(self, make: Make, out: Path):
        for number in range(6):
            make(numbered_records(3000, prefix=f"{number}/"), f"{number}.tar")
        before = threading.active_count()

        result = pcat(out.parent / "{0..5}.tar", out, count=4000, workers=3)

        assert (4000, before) == (result.records, threading.active_count())
        assert keys(out) == [key for number in (0, 1) for key, _ in numbered_records(3000, prefix=f"{number}/")][:4000]


class TestMix:
    def test_is_drawn_by_weight_and_drops_nothing(self, make: Make, out: Path):
        a, b = make(numbered_records(600, prefix="a")), make(numbered_records(200, prefix="b"), "b.tar")

        result = pcat([a, b], out, weights=[3, 1], seed=5)
        found = keys(out)

        assert 800 == result.records
        assert [key for key, _ in numbered_records(600, prefix="a")] == [key for key in found if key[0] == "a"]
        assert [key for key, _ in numbered_records(200, prefix="b")] == [key for key in found if key[0] == "b"]
        assert 60 < sum(key[0] == "b" for key in found[:400]) < 140

    def test_the_seed_repeats_it_whatever_the_workers(self, make: Make, out: Path):
        for number in range(6):
            make(numbered_records(50, prefix=f"{number}/"), f"{number}.tar")
        results = []
        for workers, seed in ((1, 1), (5, 1), (5, 2)):
            pcat([out.parent / "{0..3}.tar", out.parent / "{4..5}.tar"], out, weights=[1, 1], seed=seed, workers=workers)
            results.append(out.read_bytes())

        assert results[0] == results[1] != results[2]

    @pytest.mark.matrix
    def test_a_lane_far_behind_keeps_no_other_waiting(self, make: Make, out: Path):
        for number in range(8):
            make(numbered_records(4000, prefix=f"{number}/"), f"{number}.tar")

        result = pcat([out.parent / "{0..6}.tar", out.parent / "7.tar"], out, weights=[1, 1e-9], workers=2)

        assert 32_000 == result.records
        assert keys(out)[-1].startswith("7/")

    def test_weights_that_are_none(self, make, out):
        for weights in [[1], [1, 2, 3], [0, 1], [-1, 1], [float("inf"), 1], [float("nan"), 1]]:
            with pytest.raises(UsageError):
                pcat([make(numbered_records(1)), make(numbered_records(1), "b.tar")], out, weights=weights)


class TestShuffle:
    @pytest.mark.parametrize("weights", [None, [1, 1]])
    def test_is_a_permutation(self, make: Make, out: Path, weights: Any):
        a, b = make(numbered_records(300, prefix="a")), make(numbered_records(300, prefix="b"), "b.tar")

        pcat([a, b], out, shuffle=100, weights=weights)

        content = [*numbered_records(300, prefix="a"), *numbered_records(300, prefix="b")]
        assert content == sorted(plain(out))
        assert content != plain(out)
        assert 1200 == len(listed(out))


class TestDamage:
    def test_an_error_in_any_shard_ends_it(self, make: Make, out: Path):
        for number in range(5):
            data = shard(numbered_records(100, prefix=f"{number}/"))
            make(data[:-20_000] if number == 3 else data, f"{number}.tar")

        with pytest.raises(DataError, match=r"3\.tar"):
            pcat(out.parent / "{0..4}.tar", out, workers=4)
        assert not out.exists()

    def test_or_is_counted(self, make: Make, out: Path):
        for number in range(5):
            data = shard(numbered_records(100, prefix=f"{number}/"))
            make(data[:-20_000] if number == 3 else data, f"{number}.tar")

        result = pcat(out.parent / "{0..4}.tar", out, workers=4, on_error="skip")

        assert (1, 1) == (result.exit_code, len(result.report.skipped))
        assert 400 < result.records < 500
        assert result.records == len(plain(out))

    def test_a_missing_shard(self, make: Make, out: Path):
        make(numbered_records(1), "0.tar")
        with pytest.raises(NotFoundError):
            pcat(out.parent / "{0..4}.tar", out)


class TestDraws:
    def test_a_url_that_has_ended_takes_its_weight_along(self, make: Make, out: Path):
        for name, count in (("a", 1), ("b", 20), ("c", 20)):
            make(numbered_records(count, prefix=name), f"{name}.tar")

        pcat([out.parent / f"{name}.tar" for name in "abc"], out, weights=[1e12, 1e-6, 1e3])

        assert "a" + "c" * 20 + "b" * 20 == "".join(key[0] for key, _ in plain(out))

    def test_the_seed_decides_the_order_of_shards(self, make: Make, out: Path):
        for number in range(6):
            make(numbered_records(1, prefix=f"{number}/"), f"{number}.tar")

        def order(seed: int) -> str:
            pcat(out.parent / "{0..5}.tar", out, shuffle=1, seed=seed)
            return "".join(key[0] for key, _ in plain(out))

        orders = [order(seed) for seed in range(6)]
        assert orders[3] == order(3)
        assert len(set(orders)) >= 4
        assert {tuple("012345")} == {tuple(sorted(each)) for each in orders}


class TestShell:
    def test_weights_and_workers(self, make: Make, bash: Any):
        make(numbered_records(30, prefix="a"), "a.tar")
        make(numbered_records(10, prefix="b"), "b.tar")

        done = bash("tarviz pcat -j 3 -w 3,1 a.tar b.tar | tarviz sort | tarviz cat --slice 39:40 -f cls | tar tf -")

        assert (0, b"b00000009.cls\n", b"") == (done.returncode, done.stdout, done.stderr)

    def test_wrong_weights(self, make: Make, bash: Any):
        make(numbered_records(1))

        assert b"write 3,1" in bash("tarviz pcat -w x a.tar > b.tar").stderr


def test_a_store_that_fails_is_no_damage_to_pass_over(make: Make, out: Path):
    with FaultServer() as server:
        there = server.put("/a.tar", shard(numbered_records(5)))
        refused = server.put("/b.tar", shard(numbered_records(5)), plan=[Fault(status=403, times=ALWAYS)])
        with pytest.raises(StoreError) as caught:
            pcat([there, refused], out, on_error="skip")

    assert refused == caught.value.shard
    assert not out.exists()


def test_shard_to_shard_mixes_nothing(make: Make, tmp_path: Path):
    with pytest.raises(UsageError, match="mixes nothing"):
        pcat([make(numbered_records(1))], tmp_path / "o-{}.tar", weights=[1])


def test_standard_input_is_in_one_lane_only(out: Path):
    with pytest.raises(UsageError, match="once only"):
        pcat(["-", "-"], out, weights=[1, 1])


def test_a_list_is_not_weighed(make: Make, out: Path, tmp_path: Path):
    (tmp_path / "list").write_text(str(make(numbered_records(1))))
    with pytest.raises(UsageError, match="1 weights for 1 URLs"):
        pcat([make(numbered_records(1))], out, weights=[1], files=str(tmp_path / "list"))


def test_a_shard_that_cannot_be_begun_is_passed_over_where_that_is_asked(make: Make, out: Path):
    (out.parent / "b.tar").write_bytes(b"no tar" * 500)
    result = pcat([make(numbered_records(3)), out.parent / "b.tar", make(numbered_records(2, prefix="c"), "c.tar")], out, on_error="skip")

    assert (5, [str(out.parent / "b.tar")]) == (result.records, [fault.shard for fault in result.report.skipped])


def test_weights_are_written_with_commas_or_colons():
    for text, expected in [("3,1", (3.0, 1.0)), ("3:1", (3.0, 1.0)), ("0.5", (0.5,)), (None, None)]:
        option = next(each for each in command.params if each.name == "weights")

        assert expected == option.callback(click.Context(command), option, text)  # type: ignore[misc]


def test_what_is_no_weight_says_how_to_write_one(capsys: pytest.CaptureFixture[str]):
    assert 2 == cli.main(["pcat", "-w", "a", "x.tar"])
    assert "'a' are not weights; write 3,1." in capsys.readouterr().err


def test_so_many_records_and_no_more(make, out):
    for count in [0, 1, 5, 6, 7, 12, 20]:
        content = [record for name in "ab" for record in numbered_records(6, prefix=name)]
        result = pcat([make(content[:6]), make(content[6:], "b.tar")], out, count=count)

        assert content[:count] == plain(out)
        assert min(count, 12) == result.records
