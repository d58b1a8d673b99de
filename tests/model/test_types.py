"""Blocks, records and members: views on one run of bytes, whole records and nothing copied."""

from __future__ import annotations

from collections.abc import Callable, KeysView
from pathlib import Path

import pytest

from tarviz.model.types import Block, Feature, Schema, to_bytes, to_text
from tarviz.read import stream
from tarviz.read.stream import ReadOptions
from tests.read.tars import END, member, pax

SAME = b"".join(member(f"{name}.{ext}", f"{name}{ext}".encode()) for name in "abc" for ext in ("jpg", "cls"))
OTHER = member("a.jpg", b"1") + member("b.cls", b"2") + member("README", b"x") + member("b.jpg", b"3")


@pytest.fixture
def block(make: Callable[..., Path]) -> Callable[..., Block]:
    def made(data: bytes, **options: object) -> Block:
        (found,) = stream.blocks(str(make(data)), ReadOptions(**options))  # type: ignore[arg-type]
        return found

    return made


class TestBlock:
    def test_the_fields_that_all_records_have_are_told(self, block: Callable[..., Block]):
        assert ("jpg", "cls") == block(SAME + END).fields
        with pytest.warns(Warning, match="W_NO_KEY"):
            assert block(OTHER + END).fields is None

    def test_a_part_has_the_same_bytes_and_its_own_numbers(self, block: Callable[..., Block]):
        whole = block(SAME + END)
        part = whole.part(1, 3)

        assert part.data is whole.data
        assert [(1, "b", b"bcls"), (2, "c", b"ccls")] == [(record.index, record.key, bytes(record["cls"])) for record in part]
        assert ["b.jpg", "b.cls"] == [one.name for one in part[0].members]

    @pytest.mark.filterwarnings("ignore::tarviz.model.errors.TarvizWarning")
    def test_the_mark_goes_with_its_record(self, block: Callable[..., Block]):
        whole = block(SAME, strict=False)

        assert [False, False, True] == [record.pending for record in whole]
        assert (1, -1) == (whole.part(1, 3).pending, whole.part(0, 2).pending)
        assert [True] == [record.pending for record in whole[2].block()]

    @pytest.mark.filterwarnings("ignore::tarviz.model.errors.TarvizWarning")
    def test_spans_are_raw_tar_and_say_where_others_lie_between(self, block: Callable[..., Block]):
        found = block(OTHER + END)
        begin, end, whole = found.spans

        assert [True, False] == whole.tolist()
        assert member("a.jpg", b"1") == bytes(found.data[begin[0] : end[0]])

    def test_secrets_of_the_url_are_not_shown(self, block: Callable[..., Block]):
        found = block(SAME + END)
        found.shard = "https://u:planted@h/a.tar?sig=planted"

        assert "planted" not in repr(found) + repr(found[0])


class TestRecord:
    @pytest.mark.filterwarnings("ignore::tarviz.model.errors.TarvizWarning")
    @pytest.mark.parametrize("data", [SAME, OTHER], ids=["same fields", "others"])
    def test_it_is_a_mapping_of_views(self, block: Callable[..., Block], data: bytes):
        for record in block(data + END):
            assert len(list(record)) == len(record)
            assert all(record[ext].readonly and record[ext].obj is record[next(iter(record))].obj for ext in record)
            assert "nothing" not in record
            with pytest.raises(KeyError, match="nothing"):
                record["nothing"]

    @pytest.mark.filterwarnings("ignore::tarviz.model.errors.TarvizWarning")
    @pytest.mark.parametrize("data", [SAME, OTHER], ids=["same fields", "others"])
    def test_a_dict_of_it_has_its_fields_in_order_read_from_front_to_back_or_by_number(self, make: Callable[..., Path], data: bytes):
        path = str(make(data + END))
        found = stream.records(path)
        index = stream.index(path, cache=False)
        for number, record in enumerate(found):
            expected = [(ext, bytes(record[ext])) for ext in record]
            for one in (record, index[number]):
                assert expected == [(ext, bytes(data)) for ext, data in dict(one).items()]
                assert expected == [(ext, bytes(data)) for ext, data in one.items()]
                assert dict(expected).keys() == one.keys()
                assert isinstance(one.keys(), KeysView)

    @pytest.mark.filterwarnings("ignore::tarviz.model.errors.TarvizWarning")
    def test_names_of_any_bytes_read_back(self, block: Callable[..., Block]):
        (record,) = block(pax((b"path", b"\xff\xfe.jpg")) + member("x", b"1") + END)

        assert b"\xff\xfe" == to_bytes(record.key)
        assert record.key == to_text(b"\xff\xfe")
        assert (0, 1536) == (record.members[0].header_offset, record.members[0].data_offset)


def test_a_schema_reads_as_people_write_it():
    schema = Schema(jpg=Feature("uint8", (None, 32, 3)), cls=Feature("int64"))

    assert "jpg: uint8[?, 32, 3], cls: int64" == str(schema)
