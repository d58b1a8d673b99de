"""A transformed shard on its way: rows there and back, early ends, damage, and what else may come."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pytest

from tarviz.dialects.tar2tf._transformed import pack, unpack
from tarviz.formats import example, tfrecord
from tarviz.model.errors import DataError, Fault, SchemaError, StoreError, TarvizError
from tarviz.read.stream import ReadReport
from tarviz.runners.elsewhere import MadeRow


def sent(rows: list[MadeRow], wanted: frozenset[str] | None = None, report: ReadReport | None = None) -> bytes:
    """The file that a transformer sends."""
    return b"".join(pack(rows, wanted, report or ReadReport()))


def test_each_record_is_an_example_that_any_program_reads() -> None:
    value = {
        "b": b"x",
        "t": "é",
        "a": np.zeros((2, 1), np.uint8),
        "n": np.float32(0.5),
        "w": np.int32(-7),
        "i": 3,
        "j": [1],
        "__shard__": "s",
    }
    error = DataError("bad picture", code="E_DECODE", key="l", member="l.jpg", offset=512, hint="Look.")
    (one, two, end) = map(example.features, tfrecord.read(sent([MadeRow("k", 7, value), MadeRow("l", 8, error)])))

    said = json.loads(bytes(one.pop("__head__")[1][0]))
    fields = [["b", ["bytes"]], ["t", ["text"]], ["a", ["array", "|u1", [2, 1]]], ["n", ["number", "<f4", []]]]
    assert {"key": "k", "behind": 7, "fields": [*fields, ["w", ["number", "<i4", []]], ["i", ["int"]], ["j", ["json"]]]} == said
    assert {
        "__key__": ("bytes", [b"k"]),
        "a": ("bytes", [b"\0\0"]),
        "b": ("bytes", [b"x"]),
        "i": ("int64", [3]),
        "j": ("bytes", [b"[1]"]),
        "n": ("float", [0.5]),
        "t": ("bytes", ["é".encode()]),
        "w": ("int64", [-7]),
    } == {name: (kind, list(values)) for name, (kind, values) in one.items()}
    told = json.loads(bytes(two["__head__"][1][0]))
    assert ("l", 8, ["__head__", "__key__"]) == (told["key"], told["behind"], sorted(two))
    assert ("DataError", "E_DECODE", "bad picture", "Look.") == tuple(told["error"][name] for name in ("kind", "code", "message", "hint"))
    last = json.loads(bytes(end["__head__"][1][0]))
    assert {"rows": 2, "shards": 0, "bytes": 0, "records": 0, "warnings": [], "skipped": []} == last


@pytest.mark.parametrize(
    ("error", "kind"), [(SchemaError("a."), SchemaError), (DataError("a."), DataError), (StoreError("a."), TarvizError)]
)
def test_an_error_comes_as_what_it_is(error: TarvizError, kind: type[TarvizError]) -> None:
    error.at(key="k", member="k.jpg", offset=512, hint="Look.")
    (row,) = unpack(io.BytesIO(sent([MadeRow("k", 3, error)])), ReadReport())

    assert (kind, "k", 3) == (type(row.value), row.key, row.behind)
    assert (error.message, error.code, "Look.") == (row.value.message, row.value.code, row.value.hint)
    assert ("k", "k.jpg", 512) == (row.value.key, row.value.member, row.value.offset)


def test_a_record_may_be_larger_than_what_is_read_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TARVIZ_MAX_MEMBER_BYTES", "1000")
    (row,) = unpack(io.BytesIO(sent([MadeRow("k", 1, {"x": bytes(2000)})])), ReadReport())

    assert {"x": bytes(2000)} == row.value


def test_whole_numbers_are_such_up_to_64_bits() -> None:
    numbers = [2**63 - 1, 2**63, -(2**63), -(2**63) - 1]
    data = sent([MadeRow("k", 1, {str(at): number for at, number in enumerate(numbers)})])
    head = json.loads(bytes(example.features(next(iter(tfrecord.read(data))))["__head__"][1][0]))

    assert ["int", "json", "int", "json"] == [what for _, (what,) in head["fields"]]
    assert numbers == list(next(unpack(io.BytesIO(data), ReadReport())).value.values())


class TestTransport:
    def test_values_go_there_and_back(self) -> None:
        value = {
            "b": b"\0x",
            "none": b"",
            "t": "é\udcff",
            "a": np.arange(6, dtype=">i2").reshape(2, 3),
            "empty": np.zeros((0, 3), np.float32),
            "point": np.array(2.5, np.float32),
            "n": np.float32(0.1),
            "d": np.float64(0.1),
            "u": np.uint64(2**64 - 1),
            "i4": np.int32(-7),
            "yes": np.bool_(True),
            "j": {"x": [1, None]},
            "i": 3,
            "big": 2**70,
            "true": True,
        }

        (row,) = unpack(io.BytesIO(b"".join(pack([MadeRow("k\udcff", 7, value)], None, ReadReport()))), ReadReport())

        assert ("k\udcff", 7, list(value)) == (row.key, row.behind, list(row.value))
        for name, there in row.value.items():
            assert type(value[name]) is type(there)
            assert getattr(value[name], "dtype", None) == getattr(there, "dtype", None)
            np.testing.assert_array_equal(value[name], there)

    def test_fields_that_nobody_wants_stay_there_and_what_was_met_comes(self) -> None:
        report = ReadReport(records=1, bytes=9, shards=1)
        report.add(Fault("W_X", "odd"))
        found = ReadReport()

        (row,) = unpack(io.BytesIO(b"".join(pack([MadeRow("k", 1, {"x": 1, "y": 2})], frozenset("y"), report))), found)

        assert {"y": 2} == row.value
        assert report.to_dict() == found.to_dict()

    def test_every_early_end_is_noticed(self) -> None:
        whole = b"".join(pack([MadeRow(f"k{at}", at + 1, {"x": b"y" * at}) for at in range(3)], None, ReadReport()))
        for size in range(0, len(whole), 7):
            with pytest.raises(StoreError, match="E_LENGTH"):
                list(unpack(io.BytesIO(whole[:size]), ReadReport()))

    def test_something_else_is_an_error(self) -> None:
        for data in (b"".join(tfrecord.frame([example.encode({"x": 1})]).buffers()), b"<html>" * 100):
            with pytest.raises(TarvizError, match=r"E_FORMAT|E_LENGTH"):
                list(unpack(io.BytesIO(data), ReadReport()))

    def test_what_does_not_travel_is_the_error_of_its_record(self) -> None:
        rows = [MadeRow("k", 1, {"x": object()}), MadeRow("l", 2, {"x": 1})]

        bad, good = unpack(io.BytesIO(b"".join(pack(rows, None, ReadReport()))), ReadReport())

        assert isinstance(bad.value, SchemaError)
        assert {"x": 1} == good.value


def test_a_record_that_was_spoilt_on_its_way_is_asked_for_again() -> None:
    data = bytearray(b"".join(pack([MadeRow("k", 1, {"x": b"y" * 99})], None, ReadReport())))
    data[60] ^= 1

    with pytest.raises(StoreError, match="comes damaged"):
        list(unpack(io.BytesIO(data), ReadReport()))


def test_what_reading_skipped_there_is_told_here() -> None:
    report, found = ReadReport(records=1, bytes=9, shards=1), ReadReport()
    report.add(Fault("W_X", "odd", key="k"), skipped=True)
    assert [] == list(unpack(io.BytesIO(b"".join(pack([], None, report))), found))

    assert report.to_dict() == found.to_dict()
    assert [Fault("W_X", "odd", key="k")] == found.skipped


def test_an_end_that_counts_otherwise_is_an_early_one() -> None:
    ends = [b"".join(pack([MadeRow("k", at, {}) for at in range(count)], None, ReadReport())) for count in (0, 1)]
    size = len(b"".join(tfrecord.frame([bytes(next(iter(tfrecord.read(ends[1]))))]).buffers()))

    for data in (ends[1][:size] + ends[0], ends[1][size:]):
        with pytest.raises(StoreError, match=r"ends early, after [01] records"):
            list(unpack(io.BytesIO(data), ReadReport()))


def test_a_connection_that_breaks_is_one_that_ends_early() -> None:
    class Broken(io.BytesIO):
        def readinto(self, buffer: Any) -> int:
            raise OSError("reset")

        def read(self, size: int | None = -1) -> bytes:
            raise OSError("reset")

    with pytest.raises(StoreError, match="ends early, after 0 records"):
        list(unpack(Broken(), ReadReport()))
