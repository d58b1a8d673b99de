"""A block encodes as its records do one by one, in columns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarviz.formats import example, example_block
from tarviz.model.errors import DataError, LimitError, SchemaError
from tarviz.model.types import Block, Members
from tests.conftest import each_case

Records = list[tuple[bytes, dict[str, bytes]]]


def block_of(records: Records, *, gap: int = 7) -> Block:
    """A block holding these payloads, as reading a tar would give it."""
    data, rows, offset, size, ext = bytearray(), [0], [], [], []
    exts: dict[str, int] = {}
    for _, fields in records:
        for name, payload in fields.items():
            data += b"#" * gap
            offset.append(len(data))
            size.append(len(payload))
            ext.append(exts.setdefault(name, len(exts)))
            data += payload
        rows.append(len(offset))
    columns = np.array(offset, np.int64), np.array(size, np.int64)
    nothing = np.zeros(len(offset), np.int64)
    members = Members(nothing.astype("S1"), nothing.astype(np.uint8), nothing, nothing, columns[1], nothing)
    return Block(
        "train-0000.tar",
        memoryview(bytes(data)),
        0,
        100,
        [key for key, _ in records],
        np.array(rows, np.int64),
        *columns,
        np.array(ext, np.int32),
        tuple(exts),
        members,
    )


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=12)
FLOATS = st.floats(width=32, allow_nan=False)
INTEGERS = st.integers(-(2**63), 2**63 - 1)
PAYLOADS = st.binary(max_size=300) | st.sampled_from([b"a" * 127, b"b" * 128, b"c" * 16384, b"\0" * 20000])
FIELDS = st.dictionaries(st.sampled_from(["png", "jpg", "cls2", "txt", "seg.png"]), PAYLOADS)


class TestEncodeBlock:
    """Every block encodes as its records do one by one."""

    @staticmethod
    def check(records: Records, types: dict[str, str] | None = None, *, key: bool = True) -> None:
        block = block_of(records)
        expected = [example.encode(record, types, key=key) for record in block]

        made = example.encode_block(block, types, key=key)

        assert expected == list(made)
        assert [len(data) for data in expected] == made.size.tolist()
        assert list(range(len(records))) == made.rows.tolist()

    @given(st.lists(st.tuples(st.binary(max_size=140), PAYLOADS, st.integers(-300, 10**19 // 2)), max_size=30), st.booleans())
    @settings(deadline=None)
    def test_records_with_the_same_fields(self, rows, key):
        self.check([(name, {"png": payload, "cls": b"%d" % number}) for name, payload, number in rows], key=key)

    @given(st.lists(st.tuples(st.binary(max_size=9), FIELDS), max_size=30))
    @settings(deadline=None)
    def test_records_that_differ_in_fields(self, rows):
        self.check([(name, {**fields, **({"cls2": b"%d" % len(name)} if "cls2" in fields else {})}) for name, fields in rows])

    def test_many_records_of_few_layouts_in_turn(self):
        rng = np.random.default_rng(0)
        records = []
        for at in range(400):
            fields = {"jpg": bytes(rng.integers(100, 200)), "cls": b"%d" % rng.integers(0, 300)}
            if at % 3 == 0:
                fields = dict(reversed(fields.items()))
            if at % 5 == 0:
                fields["json"] = b"{}" * at
            records.append((b"k%d" % at, fields))

        self.check(records)

    @each_case("size", [0, 1, 31, 32, 33, 127, 128, 16383, 16384, 2_097_151, 2_097_152])
    def test_every_width_of_the_length_numbers(self, size):
        count = 8 if size < 100_000 else 2
        self.check([(b"k%d" % at, {"jpg": bytes(size + at % 2), "cls": b"1"}) for at in range(count)])

    def test_long_payloads_are_not_copied(self):
        block = block_of([(b"k%d" % at, {"jpg": bytes(70_000), "cls": b"1"}) for at in range(8)])

        made = example.encode_block(block)

        assert made.whole is None
        assert any(isinstance(piece, memoryview) and piece.obj is block.data.obj for piece in made.pieces[0])

    @each_case("text", [b"7", b"7\n", b" 7 ", b"-7", b"+7", b"007", b"9223372036854775807", b"-9223372036854775808", b"7\r\n"])
    def test_every_way_to_write_an_integer(self, text):
        self.check([(b"k%d" % at, {"cls": text if at % 2 else b"12", "x": b""}) for at in range(10)])

    def test_floats_and_many_fields(self):
        fields = {f"f{at}": b"%d" % at for at in range(40)}
        types = {f"f{at}": ("float", "int64", "bytes")[at % 3] for at in range(40)}
        self.check([(b"k%d" % at, fields) for at in range(9)], types)

    def test_records_without_fields(self):
        self.check([(b"k%d" % at, {}) for at in range(9)])
        self.check([(b"k%d" % at, {}) for at in range(9)], key=False)
        self.check([])

    def test_only_the_fields_asked_for(self):
        block = block_of([(b"k%d" % at, {"jpg": b"x" * 50, "cls": b"1", "txt": b"t"}) for at in range(9)])

        made = example.encode_block(block, fields=["cls", "txt"])

        assert {"__key__": [b"k3"], "cls": [1], "txt": [b"t"]} == example.decode(list(made)[3])

    def test_a_record_that_lacks_a_field_asked_for_is_an_error(self):
        block = block_of([(b"k%d" % at, {"jpg": b"x", **({"cls": b"1"} if at != 2 else {})}) for at in range(9)])

        with pytest.raises(SchemaError, match="lacks the field 'cls'; it has jpg") as caught:
            example.encode_block(block, fields=["cls", "jpg"])
        made = example.encode_block(block, fields=["cls", "jpg"], on_error="skip")

        assert "k2" == caught.value.key
        assert [0, 1, *range(3, 9)] == made.rows.tolist()

    @pytest.mark.parametrize("count", [3, 20])
    def test_the_first_bad_integer_is_an_error_with_its_place(self, count):
        records = [(b"k%d" % at, {"txt": b"x", "cls": b"cat" if at in (1, 2) else b"1"}) for at in range(count)]

        with pytest.raises(DataError, match="'cls' holds 'cat'") as caught:
            example.encode_block(block_of(records))

        assert ("E_DECODE", "train-0000.tar", "k1", 101) == (
            caught.value.code,
            caught.value.shard,
            caught.value.key,
            caught.value.records_before,
        )

    @each_case("count", [3, 20])
    @each_case("size", [1, 70_000])
    @each_case("kind", ["int64", "float"])
    def test_skip_leaves_bad_records_out_and_lists_them(self, count, size, kind):
        records = [(b"k%d" % at, {"txt": b"x" * size, "cls": b"cat" if at in (1, 2) else b"1"}) for at in range(count)]

        made = example.encode_block(block_of(records), {"cls": kind}, on_error="skip")

        rest = [at for at in range(count) if at not in (1, 2)]
        assert rest == made.rows.tolist()
        assert [b"k%d" % at for at in rest] == [example.decode(data)["__key__"][0] for data in made]
        assert ["k1", "k2"] == [fault.key for fault in made.faults]

    def test_a_field_named_like_the_key_is_refused_unless_the_key_is_left_out(self):
        block = block_of([(b"k", {"__key__": b"x"})])

        with pytest.raises(SchemaError, match="key=False"):
            example.encode_block(block)

    def test_an_example_beyond_2_gib_is_refused(self, monkeypatch):
        monkeypatch.setattr(example_block, "LARGEST", 1000)

        with pytest.raises(LimitError) as caught:
            example.encode_block(block_of([(b"k%d" % at, {"x": b"0" * 970}) for at in range(8)]))

        assert "k0" == caught.value.key
