"""What is said of shards: one line, a message each, faults in their order, a summary."""

from __future__ import annotations

from typing import Any

import pytest

from tarviz.model.errors import Fault
from tarviz.model.types import URL
from tarviz.stores import Stat
from tarviz.widgets.browse import status
from tarviz.widgets.browse.rows import Rows


def rows_of(*shards: dict[str, Any]) -> Rows:
    rows = Rows([URL(f"/x/s-{number}.tar") for number in range(len(shards))])
    for shard, more in zip(rows.shards, shards, strict=True):
        for name, value in ({"state": "done", "count": 5} | more).items():
            setattr(shard, name, value)
    return rows


@pytest.mark.parametrize(
    ("shards", "line"),
    [
        ([{}], "scanned · 5 records"),
        ([{"count": 1}], "scanned · 1 record"),
        ([{"count": 0}], "scanned · 0 records · nothing in here"),
        ([{}, {"count": 1200}], "scanned 2 of 2 shards · 1,205 records"),
        ([{"state": "scanning"}], "scanned 0 of 1 shards · ≥ 5 records"),
        ([{}, {"state": "waiting", "count": 0}], "scanned 1 of 2 shards · ≥ 5 records"),
        ([{}, {"state": "paused"}], "scanned 1 of 2 shards · ≥ 10 records · the rest is read when it is looked at"),
        ([{"state": "scanning", "compression": "gzip"}], "scanned 0 of 1 shards · ≥ 5 records · gzip: read from the front"),
        ([{"compression": "gzip"}], "scanned · 5 records"),
        ([{"state": "damaged"}], "scanned · 5 records · 1 shard damaged"),
        ([{"state": "damaged", "count": 0}], "scanned · 0 records · 1 shard damaged"),
        (
            [{"state": "missing"}, {"state": "missing"}, {"state": "damaged"}],
            "scanned 3 of 3 shards · 15 records · 1 shard damaged · 2 shards missing",
        ),
        ([{"stale": True}], "scanned · 5 records · s-0.tar changed since the scan: scan again"),
        (
            [{}, {"stale": True}, {"stale": True}],
            "scanned 3 of 3 shards · 15 records · s-1.tar and 1 more changed since the scan: scan again",
        ),
        (
            [{"state": "unreachable", "faults": [Fault("W_X", "odd"), Fault("E_NETWORK", "no answer")]}],
            "scanned · 5 records · 1 shard unreachable · E_NETWORK: no answer",
        ),
        ([{"state": "unreachable"}], "scanned · 5 records · 1 shard unreachable"),
    ],
)  # fmt: skip
def test_a_line(shards: list[dict[str, Any]], line: str):
    assert line == status.sentence(rows_of(*shards))


def test_a_shard_as_a_page_lists_it():
    stat = Stat(URL("/x/s-0.tar"), 1000, "e", 0.0)
    rows = rows_of({"stat": stat, "scanned": 250, "state": "scanning", "faults": [Fault("W_X", "")]}, {"stat": stat, "scanned": 2000}, {})
    first, second, third = map(status.shard_message, rows.shards)

    assert {
        "number": 0,
        "name": "s-0.tar",
        "url": "/x/s-0.tar",
        "size": 1000,
        "count": 5,
        "state": "scanning",
        "compression": "",
        "faults": 1,
        "stale": False,
        "trouble": "",
        "share": 0.25,
    } == first
    assert (1, 1.0) == (second["number"], second["share"])
    assert (None, None) == (third["size"], third["share"])
    rows.shards[0].compression = "gzip"
    assert status.shard_message(rows.shards[0])["share"] is None


@pytest.mark.parametrize(
    ("state", "faults", "trouble"),
    [
        ("unreachable", [("W_X", "odd"), ("E_STORE", "no https://me:pw@host\x1b")], "E_STORE: no https://***@host\\x1b"),
        ("unreachable", [], ""),
        ("damaged", [("E_CRC", "bad")], ""),
    ],
)
def test_a_shard_that_was_given_up_says_why(state: str, faults: list[tuple[str, str]], trouble: str):
    rows = rows_of({"state": state, "faults": [Fault(*each) for each in faults]})

    assert trouble == status.shard_message(rows.shards[0])["trouble"]


def test_faults_are_told_errors_first_with_the_key_of_their_member():
    found = [
        Fault("W_ODD", "odd", key="k", offset=5),
        Fault("E_CRC", "bad " * 100, member="a/b.seg.png", offset=7),
        Fault("E_CRC", "none", member=".hidden"),
    ]
    rows = rows_of({"faults": found[:1]}, {"faults": found[1:]})
    told = status.faults(rows)

    assert [("E_CRC", 1, 7, "a/b"), ("E_CRC", 1, None, ""), ("W_ODD", 0, 5, "k")] == [
        (each["code"], each["shard"], each["offset"], each["key"]) for each in told
    ]
    assert 300 == len(told[0]["message"])
    assert 2 == len(status.faults(rows, 2))
    assert "own" == status.key_of(Fault("E", "", key="own", member="a/b.png"))


def test_a_summary_where_nothing_can_be_drawn():
    rows = rows_of({"stat": Stat(URL("x"), 1500, "e", 0.0), "faults": [Fault("E_CRC", "bad")] * 6}, {})
    fields = {f"f{at}": 1000 + at for at in range(13)}

    lines = status.summary("t.tar", rows, fields, ["k" * 61, "b"]).split("\n")
    assert ["tarviz browse t.tar", "scanned 2 of 2 shards · 10 records · 1.5 kB"] == [
        line.replace("1.50 kB", "1.5 kB") for line in lines[:2]
    ]
    assert ["fields: " + ", ".join(f"f{at} {1000 + at:,}" for at in range(12)), f"records: {'k' * 60}, b, …"] == lines[2:4]
    assert ["E_CRC s-0.tar: bad"] * 5 == lines[4:]
    assert 2 == len(status.summary("t", rows_of({}), {}, []).split("\n"))


def test_names_are_the_last_part_without_a_query():
    rows = Rows([URL("https://host/a/b.tar?X-Amz-Signature=1"), URL("-"), URL("/folder/x/")])

    assert ["b.tar", "stdin", "x"] == [status.name(shard) if shard.url != "-" else "stdin" for shard in rows.shards]
