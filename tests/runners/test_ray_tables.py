"""What tasks of Ray Data read, asked here without a cluster: the rows of the tables are the records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tarviz
from tarviz.model.errors import DataError, SchemaError
from tarviz.ops import Func
from tarviz.pipeline import Pipeline
from tarviz.runners import ray_data
from tarviz.samples import write_shard
from tarviz.testing import strategies

pa = pytest.importorskip("pyarrow", reason="Arrow tables: pip install pyarrow")

pytestmark = pytest.mark.filterwarnings("ignore")


def rows(tables: Iterable[Any]) -> list[dict[str, Any]]:
    return [row for table in tables for row in table.to_pylist()]


def held(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: bytes(value) for name, value in record.items()}


class TestTableOf:
    @pytest.mark.parametrize(
        "content",
        [
            [("a", {"jpg": b"1", "cls": b""}), ("b/ü", {"jpg": bytes(700), "cls": b"2"})],
            [("a", {"jpg": b"1"}), ("b", {"cls": b"2", "seg.png": b"3"}), ("c", {"seg.png": b"", "jpg": b"4"}), ("d", {"jpg": b"5"})],
            [(f"{n:02d}", {"txt": b"t" * n} if n % 3 else {"txt": b"t", "cls": b"%d" % n}) for n in range(20)],
        ],
        ids=["same fields", "others", "some"],
    )
    def test_a_row_is_a_record_and_null_is_what_it_lacks(self, make: Callable[..., Path], content: strategies.Records) -> None:
        for block in tarviz.blocks(str(make(content))):
            table = ray_data.table_of(block)
            lacking = dict.fromkeys(block.exts[code] for code in block.ext.tolist())
            assert [{"__key__": each.key, **lacking, **held(each)} for each in block] == rows([table])
            assert table.validate(full=True) is None

    def test_a_key_that_is_no_text_is_written_so_that_it_can_be_read(self, make: Callable[..., Path]) -> None:
        (block,) = tarviz.blocks(str(make([("a\udcff", {"cls": b"1"})])))

        assert [{"__key__": r"a\xff", "cls": b"1"}] == rows([ray_data.table_of(block)])

    def test_more_than_two_gigabytes_have_wider_offsets(self, make: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ray_data, "_WIDE", 5)
        (block,) = tarviz.blocks(str(make([("a", {"txt": b"12345", "bin": b"123456"})])))
        table = ray_data.table_of(block)

        assert [pa.binary(), pa.large_binary()] == [table.schema.field(name).type for name in ("txt", "bin")]
        assert [{"__key__": "a", "txt": b"12345", "bin": b"123456"}] == rows([table])


@pytest.mark.ray
class TestTasks:
    @pytest.fixture
    def urls(self, tmp_path: Path) -> str:
        """Two shards of 50 and 30 records; a text is missing in one."""
        pytest.importorskip("ray.data", reason="read_ray needs ray and its extra data")
        for at, (first, end) in enumerate(((0, 50), (50, 80))):
            fields = ((n, {"txt": b"t" * (n % 7), "cls": b"%d" % n}) for n in range(first, end))
            write_shard(tmp_path / f"{at}.tar", [(f"r{n:02d}", each if n != 61 else {"cls": b"61"}) for n, each in fields])
        return str(tmp_path / "{0..1}.tar")

    def tasks(self, pipeline: Pipeline, blocks: int | None = None, processors: int = 2) -> list[list[Any]]:
        """The tables of each task."""
        shards, count = ray_data.source(pipeline, 0, blocks, processors)
        found = [list(task()) for task in shards.get_read_tasks(1)]
        assert count == (blocks or len(found))
        return found

    def test_shards_are_cut_and_joined_as_it_was_asked(self, urls: str) -> None:
        expected = [{"__key__": each.key, "txt": None, **held(each)} for each in tarviz.records(urls)]
        for blocks, counts in ((None, [50, 30]), (1, [80]), (2, [50, 30]), (3, [26, 27, 27]), (200, [1] * 80)):
            found = self.tasks(Pipeline(urls), blocks)

            assert counts == [sum(map(len, tables)) for tables in found]
            assert expected == [{"txt": None, **row} for tables in found for row in rows(tables)]

    def test_large_shards_are_cut_where_they_are_indexed_and_nobody_said_how(self, urls: str, monkeypatch: pytest.MonkeyPatch) -> None:
        size = sum(path.stat().st_size for path in Path(urls).parent.glob("*.tar"))
        monkeypatch.setattr(ray_data, "_TASK", (size // 4, size))
        assert [50, 30] == [sum(map(len, tables)) for tables in self.tasks(Pipeline(urls))]
        tarviz.index(urls)

        assert [20] * 4 == [sum(map(len, tables)) for tables in self.tasks(Pipeline(urls))]
        assert [50, 30] == [sum(map(len, tables)) for tables in self.tasks(Pipeline(urls), processors=1)]
        monkeypatch.setattr(ray_data, "_TASK", (size + 1, 2 * size))
        assert [50, 30] == [sum(map(len, tables)) for tables in self.tasks(Pipeline(urls))]

    def test_they_say_what_they_are(self, urls: str) -> None:
        shards, _ = ray_data.source(Pipeline(urls), 0, None, 2)
        paths = [Path(urls).with_name(f"{at}.tar") for at in range(2)]
        tasks = shards.get_read_tasks(1, per_task_row_limit=7)

        assert ("Tarviz", sum(path.stat().st_size for path in paths)) == (shards.get_name(), shards.estimate_inmemory_data_size())
        assert [[str(path)] for path in paths] == [list(task.metadata.input_files) for task in tasks]
        assert [7, 7] == [task.per_task_row_limit for task in tasks]

    def test_a_chain_is_run_and_each_kind_of_value_kept(self, urls: str) -> None:
        def made(record: dict[str, Any]) -> dict[str, Any]:
            number = record["cls"]
            arrays = {"same": np.full((2, 3), number), "ragged": np.full(number % 3, number, np.float32)}
            return {"cls": number, "word": str(number), "tree": {"n": [number, None]}, "mixed": number if number % 2 else "even", **arrays}

        chain = [*Pipeline(urls, "decode(cls)").chain, Func(made)]
        (first, second) = self.tasks(Pipeline(urls, chain))
        tables = [*first, *second]

        assert pa.string() == tables[0].schema.field("word").type
        for name in ("cls", "same", "ragged", "tree", "mixed"):
            found = [value for table in tables for chunk in table[name].chunks for value in chunk.to_numpy(zero_copy_only=False)]
            assert all(np.array_equal(made({"cls": n})[name], value) for n, value in enumerate(found)), name
            assert 80 == len(found)

    def test_tables_that_do_not_fit_together_stay_apart(self, urls: str) -> None:
        def other(record: dict[str, Any]) -> dict[str, Any]:
            return {"x": 1 if int(record["__key__"][1:]) < 1 else b"bytes"}

        ((one, *more), _) = self.tasks(Pipeline(urls, [Func(other)]))

        assert (1, 49) == (len(one), sum(map(len, more)))

    def test_few_large_tables_are_given(self, urls: str, monkeypatch: pytest.MonkeyPatch) -> None:
        pipeline = Pipeline(urls, "rename(n=cls)")
        assert [1, 1] == [len(tables) for tables in self.tasks(pipeline)]
        monkeypatch.setattr(ray_data, "_TABLE", 1)

        assert [[1, 49], [1, 29]] == [[len(table) for table in tables] for tables in self.tasks(pipeline)]

    def test_damage_is_raised_or_passed_over(self, urls: str) -> None:
        path = Path(urls).with_name("1.tar")
        path.write_bytes(path.read_bytes()[:20_000])

        for chain in (None, "rename(n=cls)"):
            with pytest.raises(DataError, match="E_TRUNCATED"):
                self.tasks(Pipeline(urls, chain))
            whole, cut = self.tasks(Pipeline(urls, chain, on_error="skip"))
            assert 50 == sum(map(len, whole))
            assert 1 < sum(map(len, cut)) < 30

    def test_a_record_an_op_refuses_is_too(self, urls: str) -> None:
        with pytest.raises(SchemaError):
            self.tasks(Pipeline(urls, "decode(txt)"))
        assert [50, 29] == [sum(map(len, tables)) for tables in self.tasks(Pipeline(urls, "decode(txt)", on_error="skip"))]
