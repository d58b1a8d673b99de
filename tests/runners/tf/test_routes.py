"""Which way a pipeline takes into tf.data, and what its elements are."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tarviz import engines
from tarviz.model.errors import SchemaError
from tarviz.ops import Chain, Func
from tarviz.pipeline import Pipeline
from tarviz.runners.elsewhere import Elsewhere
from tarviz.samples import write_shard

tf = pytest.importorskip("tensorflow", reason="TensorFlow: pip install 'tarviz[tensorflow-cpu]'")

from tarviz.runners.tf import routes  # noqa: E402
from tarviz.runners.tf.routes import Graph, InThreads, OnEngine, Raw, ShapeOptions  # noqa: E402


@pytest.fixture(scope="module")
def shard(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Seven records: a picture of 16 kB and more, a tiny one, a class."""
    path = tmp_path_factory.mktemp("routes") / "a.tar"

    def jpeg(side: int, seed: int) -> bytes:
        stream = io.BytesIO()
        noise = np.random.default_rng(seed).integers(0, 256, (side, side, 3), np.uint8)
        Image.fromarray(noise).save(stream, "JPEG", quality=95)
        return stream.getvalue()

    write_shard(path, [(f"k{at}", {"jpg": jpeg(200, at), "tiny.jpg": jpeg(9, at), "cls": b"%d" % at}) for at in range(7)])
    return str(path)


def chosen(pipeline: Pipeline, graph: bool | None = None, place: Any = None, **asked: Any) -> routes.Route:
    return routes.choose(pipeline, graph, place, ShapeOptions(**asked))


class TestChosen:
    def test_without_ops_fields_go_in_as_they_are(self, shard: str) -> None:
        for graph in (None, True, False):
            route = chosen(Pipeline(shard, select=("jpg", "cls")), graph)

            assert isinstance(route, Raw)
            assert route.record_bytes > 16_000
            assert (False, True) == (route.all_fields, route.batches_later)
        assert chosen(Pipeline(shard)).all_fields
        assert not chosen(Pipeline(shard), types={"cls": "int32"}).batches_later

    def test_ops_run_in_the_graph_or_in_threads_as_it_is_said(self, shard: str) -> None:
        pipeline = Pipeline(shard, "decode(jpg)|decode(cls)", select=("jpg", "cls"))

        assert [Graph, InThreads] == [type(chosen(pipeline, graph)) for graph in (True, False)]

    def test_large_pictures_take_threads_and_tiny_ones_the_graph(self, shard: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tarviz.ops.decode.decodes_fast", lambda: True)
        kinds = [type(chosen(Pipeline(shard, f"decode({ext})", select=ext))) for ext in ("jpg", "tiny.jpg")]

        assert [InThreads, Graph] == kinds
        monkeypatch.setattr("tarviz.ops.decode.decodes_fast", lambda: False)
        assert isinstance(chosen(Pipeline(shard, "decode(jpg)", select="jpg")), Graph)

    def test_an_engine_does_all(self, shard: str) -> None:
        place = Elsewhere("ray", count=3)
        for chain in ("decode(cls)", ""):
            route = chosen(Pipeline(shard, chain, select="cls"), None, place)

            assert isinstance(route, OnEngine)
            assert place is route.place
            assert route.work.place is place  # type: ignore[union-attr]


def both(pipeline: Pipeline, **options: Any) -> list[list[Any]]:
    """The elements by the graph and by threads."""
    return [list(pipeline.tf(graph=graph, **options).as_numpy_iterator()) for graph in (True, False)]


class TestElements:
    @pytest.mark.parametrize(
        ("batch", "drop", "sizes"), [(3, False, [3, 3, 1]), (3, True, [3, 3]), (7, True, [7]), (8, True, []), (8, False, [7])]
    )
    def test_batches_have_their_size(self, shard: str, batch: int, drop: bool, sizes: list[int]) -> None:
        pipeline = Pipeline(shard, "decode(cls)", select="cls")
        for found in both(pipeline, batch=batch, drop_remainder=drop):
            assert sizes == [len(each) for each in found]
            assert [*range(sum(sizes))] == [number for each in found for number in each.tolist()]
        raw = [each.tolist() for each in Pipeline(shard, select="cls").tf(batch=batch, drop_remainder=drop).as_numpy_iterator()]
        assert sizes == [len(each) for each in raw]
        for graph in (True, False):
            spec = pipeline.tf(graph=graph, batch=batch, drop_remainder=drop).element_spec
            assert [batch if drop else None] == spec.shape.as_list()

    def test_types_and_shapes_are_those_asked_for(self, shard: str) -> None:
        chain = [*Chain.of("decode(cls)"), Func(lambda record: {**record, "v": np.ones((2, 1))})]
        pipeline = Pipeline(shard, chain, select=("cls", "v"))
        options = {"output_types": (tf.float32, None), "output_shapes": (None, (2, None))}
        for found in both(pipeline, batch=4, **options):
            assert [(4,), (3,)] == [label.shape for label, _ in found]
            assert {np.dtype(np.float32)} == {label.dtype for label, _ in found}
            assert [(4, 2, 1), (3, 2, 1)] == [value.shape for _, value in found]

    def test_a_selection_may_be_one_value_or_a_tuple_of_one(self, shard: str) -> None:
        for select, expected in (("cls", [0, 1]), (("cls",), [(0,), (1,)]), ({"n": "cls"}, [{"n": 0}, {"n": 1}])):
            for found in both(Pipeline(shard, "decode(cls)", select=select)):
                assert expected == found[:2]

    def test_large_raw_records_are_put_together_before_they_are_tensors(self, shard: str, monkeypatch: pytest.MonkeyPatch) -> None:
        pipeline = Pipeline(shard, select=("jpg", "cls"))
        expected = list(pipeline.eager())
        for large in (1, 1 << 30):
            monkeypatch.setattr(routes, "_LARGE", large)
            found = list(pipeline.tf(batch=4).as_numpy_iterator())

            assert [4, 3] == [len(labels) for _, labels in found]
            assert expected == [pair for pictures, labels in found for pair in zip(pictures.tolist(), labels.tolist(), strict=True)]


class TestEngine:
    """An engine that does its tasks in this process, one after the other."""

    @pytest.fixture(autouse=True)
    def here(self, monkeypatch: pytest.MonkeyPatch) -> None:
        @contextmanager
        def stream(_name: str, job: engines.Yielding, _plan: engines.EnginePlan) -> Iterator[SimpleNamespace]:
            yield SimpleNamespace(run=lambda tasks, ordered: (part for task in tasks for part in job(task)))

        monkeypatch.setattr(engines, "stream", stream)

    @pytest.mark.parametrize("select", [("cls", {"k": "__key__", "picture": "tiny.jpg"}), "cls", None], ids=["several", "one", "all"])
    @pytest.mark.parametrize("options", [{}, {"batch": 3}, {"batch": 3, "drop_remainder": True}, {"batch": 2, "shuffle": 5}], ids=str)
    def test_tensors_are_those_of_threads(self, shard: str, select: Any, options: dict[str, Any]) -> None:
        pipeline = Pipeline(shard, "decode(cls)|decode(tiny.jpg)", select=select)
        here, away = pipeline.tf(graph=False, **options), pipeline.tf(engine=Elsewhere("ray"), **options)

        assert here.element_spec == away.element_spec
        tf.nest.map_structure(np.testing.assert_array_equal, list(here.as_numpy_iterator()), list(away.as_numpy_iterator()))
        assert here.report.records == away.report.records == 7

    @pytest.mark.parametrize("shuffle", [0, 4])
    def test_a_state_goes_on_behind_any_batch(self, shard: str, shuffle: int) -> None:
        def dataset() -> Any:
            return Pipeline(shard, "decode(cls)", select="cls").tf(engine=Elsewhere("ray"), batch=2, shuffle=shuffle)

        expected = [batch.numpy().tolist() for batch in dataset()]
        for taken in range(1, 4):
            run, again = dataset(), dataset()
            values = iter(run)
            first = [next(values).numpy().tolist() for _ in range(taken)]
            again.load_state_dict(run.state_dict())

            assert expected == first + [batch.numpy().tolist() for batch in again]

    def test_what_does_not_fit_names_its_record(self, shard: str) -> None:
        def odd(record: dict[str, Any]) -> dict[str, Any]:
            return {"n": "text" if record["__key__"] == "k5" else 1}

        place = Elsewhere("ray")
        with pytest.raises(SchemaError, match="the field 'n' is str") as caught:
            list(Pipeline(shard, [Func(odd)], select="n").tf(engine=place, batch=2))
        assert ("k5", shard) == (caught.value.key, caught.value.shard)
