"""`webdataset.pipeline`: sources and stages in a row, their passes and lengths."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

import tarviz.dialects.webdataset as wds


class TestPipeline:
    def test_the_order_of_a_pass_is_pinned_by_its_number(self) -> None:
        pipeline = wds.DataPipeline(range(30), wds.shuffle(10))
        first, second = list(pipeline), list(pipeline.iterator1())
        pipeline.set_epoch(0)

        assert [first, second] == [list(pipeline) for _ in range(2)]
        assert first != second
        assert list(pipeline.compose()) == list(pipeline)  # a copy goes on from the same pass

    def test_a_repetition_is_an_order_of_its_own(self) -> None:
        found = list(wds.DataPipeline(range(30), wds.shuffle(10)).repeat(2))

        assert found[:30] != found[30:]
        assert list(range(30)) == sorted(found[:30]) == sorted(found[30:])

    def test_what_yields_nothing_ends_at_once(self) -> None:
        assert [] == list(wds.DataPipeline(list).repeat()) == list(wds.DataPipeline().with_epoch(3))

    def test_limits_are_samples_or_batches(self) -> None:
        assert 7 == len(list(wds.DataPipeline(range(3)).with_epoch(nbatches=7)))
        assert 7 == len(list(wds.DataPipeline(range(3)).with_epoch(7, 2)))
        assert 5 == len(list(wds.DataPipeline(range(3)).repeat(nbatches=5)))
        assert 6 == len(list(wds.DataPipeline(range(3)).repeat(2, 9)))
        for endless in (wds.DataPipeline(range(3)).with_epoch(0, 0), wds.DataPipeline(range(3)).repeat(0, 0)):
            assert [0, 1, 2, 0] == list(itertools.islice(endless, 4))

    def test_the_stage_at_a_place_is_told(self) -> None:
        pipeline = wds.DataPipeline(range(3), text := wds.map(str))

        assert (range(3), text) == (pipeline.stage(0), pipeline.stage(1))

    def test_what_stands_before_the_last_splitter_is_in_one_order_everywhere(self, monkeypatch: pytest.MonkeyPatch) -> None:
        found: list[int] = []
        for rank in "01":
            for worker in "01":
                for name, value in (("RANK", rank), ("WORLD_SIZE", "2"), ("WORKER", worker), ("NUM_WORKERS", "2")):
                    monkeypatch.setenv(name, value)
                stages = wds.shuffle(50), wds.split_by_node, wds.shuffle(50), wds.split_by_worker, wds.shuffle(50)
                found += wds.DataPipeline(range(40), *stages)

        assert list(range(40)) == sorted(found)

    def test_it_closes_what_can_be_closed(self) -> None:
        class Source:
            closed = 0

            def __iter__(self) -> Iterator[int]:
                return iter([1])

            def close(self) -> None:
                self.closed += 1

        source = Source()
        with wds.DataPipeline(source, wds.map(str)) as pipeline:
            assert ["1"] == list(pipeline)

        assert 1 == source.closed

    def test_it_is_true_without_a_length(self) -> None:
        pipeline = wds.DataPipeline(range(1), None, [wds.map(str), wds.map(str)])

        assert pipeline
        assert 3 == len(pipeline.pipeline)
        with pytest.raises(TypeError, match=r"a DataPipeline knows no length; with_length\(n\) gives it one"):
            len(pipeline)
        with pytest.raises(TypeError, match="can only be iterated over"):
            pipeline[0]
        assert 9 == len(pipeline.with_length(9))

    def test_any_kind_of_source_and_stage_will_do(self) -> None:
        class Begun:
            def run(self) -> Any:
                return [1, 2]

        class Doubled:
            def run(self, source: Any) -> Any:
                return (2 * item for item in source)

        assert [2, 4] == list(wds.DataPipeline(Begun(), Doubled()))
        assert [1, 2] == list(wds.DataPipeline(lambda: [1, 2]))
        assert [7, 8] == list(wds.DataPipeline(range(1), (7, 8)))
