"""Chains run in threads beside the graph: the same tensors, in order, from one buffer a batch."""

from __future__ import annotations

import gc
import io
import itertools
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tarviz.model.errors import DataError, SchemaError
from tarviz.model.types import Feature, Schema
from tarviz.ops import Decode, Func, parse_chain
from tarviz.pipeline import Pipeline
from tarviz.read.stream import ReadReport
from tarviz.runners.batch_memory import ALIGNED, BatchMemory
from tarviz.samples import write_shard
from tests.conftest import wait_until

pytest.importorskip("tensorflow", reason="TensorFlow: pip install 'tarviz[tensorflow-cpu]'")

native = pytest.importorskip("tarviz.runners.tf.native")
source = pytest.importorskip("tarviz.runners.tf.source")
steps = pytest.importorskip("tarviz.runners.tf.steps")

PHOTOS = "decode(jpg)|resize(jpg, (64, 48))"


def photo(seed: int, size: tuple[int, int], **options: Any) -> bytes:
    stream = io.BytesIO()
    noise = np.random.default_rng(seed).integers(0, 256, (30, 40, 3), np.uint8)
    Image.fromarray(noise).resize(size).save(stream, "JPEG", **options)
    return stream.getvalue()


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Forty photos of three sizes, colour and grey, each above 16 kB."""
    path = tmp_path_factory.mktemp("photos") / "p.tar"
    sizes = ((500, 375), (375, 500), (401, 333))
    write_shard(path, ((f"{n:03d}", {"jpg": photo(n, sizes[n % 3], quality=96), "cls": b"%d" % n}) for n in range(40)))
    return str(path)


def values(dataset: Any) -> list[Any]:
    return [[part.numpy() for part in element] for element in dataset]


@pytest.mark.parametrize(
    ("num_workers", "drop_remainder", "batch"), list(itertools.product([0, 2, 5], [False, True], [None, 1, 7, 16, 100]))
)
@pytest.mark.matrix
def test_the_tensors_are_those_of_the_graph(photos: str, batch: int | None, drop_remainder: bool, num_workers: int) -> None:
    pipeline = Pipeline(photos, PHOTOS + "|flip(jpg)|decode(cls)", select=("jpg", "cls"))
    options = {"batch": batch, "drop_remainder": drop_remainder and batch is not None, "num_workers": num_workers}
    threads, graph = pipeline.tf(graph=False, **options), pipeline.tf(graph=True, **options)

    assert threads.element_spec == graph.element_spec
    for (image, label), (other, same) in zip(values(threads), values(graph), strict=True):
        assert np.abs(image.astype(int) - other.astype(int)).max() <= 1
        np.testing.assert_array_equal(label, same)


def test_photos_are_worked_on_in_threads_and_tiny_pictures_in_the_graph(photos: str) -> None:
    pytest.importorskip("simplejpeg", reason="simplejpeg: pip install 'tarviz[fast]'")
    pytest.importorskip("cykooz_resizer", reason="cykooz-resizer: pip install 'tarviz[fast]'")

    def pays(chain: str, **first: bytes) -> bool:
        schema = Schema({name: Feature("bytes") for name in first})
        return native.pays(parse_chain(chain), steps.schemas(parse_chain(chain), schema, dict), first)

    assert pays(PHOTOS, jpg=photo(0, (500, 375)))
    assert pays(PHOTOS + "|convert(jpg, float32)", jpg=photo(0, (500, 375)))
    assert not pays("decode(jpg)|convert(jpg, float32)|resize(jpg, (64, 48))", jpg=photo(0, (500, 375)))
    assert not pays(PHOTOS, jpg=photo(0, (28, 28)))
    assert not pays("decode(cls)", cls=b"1" * 100_000)
    assert isinstance(Pipeline(photos, PHOTOS, select="jpg").tf()._source.work, source.Threads)
    assert isinstance(Pipeline(photos, PHOTOS, select="jpg").tf(graph=True)._source.work, source.Columns)


def test_order_holds_when_threads_end_in_another(photos: str) -> None:
    def late(record: dict[str, Any]) -> dict[str, Any]:
        if int(record["__key__"]) % 16 == 0:
            turn.wait(5)
        else:
            turn.set()
        return record

    turn = threading.Event()
    pipeline = Pipeline(photos, [Decode("cls"), Func(late, output_types={"cls": "int64"})], select="cls")

    assert list(range(40)) == [int(n) for part in pipeline.tf(graph=False, num_workers=3, batch=9) for n in part.numpy()]


def test_pictures_of_different_sizes_do_not_make_a_batch(photos: str) -> None:
    pipeline = Pipeline(photos, "decode(jpg)", select="jpg")

    assert [(375, 500, 3), (500, 375, 3)] == [tuple(image.shape) for image in list(pipeline.tf(graph=False))[:2]]
    with pytest.raises(SchemaError, match=r"uint8\[500, 375, 3\].*does not fit into a batch.*Hint: resize") as caught:
        list(pipeline.tf(graph=False, batch=4))
    assert "001" == caught.value.key


@pytest.mark.parametrize("batch", [3, 4, 64])
def test_skipped_records_leave_no_gap_in_batches(tmp_path: Path, batch: int) -> None:
    bad = {0, 5, 6, 7, 30}
    fields = ((f"{n:02d}", {"jpg": b"?" if n in bad else photo(n, (60, 40)), "cls": b"%d" % n}) for n in range(31))
    write_shard(tmp_path / "a.tar", fields)
    dataset = Pipeline(tmp_path / "a.tar", PHOTOS + "|decode(cls)", select=("jpg", "cls"), on_error="skip").tf(graph=False, batch=batch)
    labels = [label.numpy().tolist() for _, label in dataset]

    assert [n for n in range(31) if n not in bad] == [n for part in labels for n in part]
    assert {batch} >= {len(part) for part in labels[:-1]}
    assert [f"{n:02d}" for n in sorted(bad)] == [fault.key for fault in dataset.report.skipped]


def test_batches_are_aligned_so_that_tensorflow_takes_them_over(photos: str) -> None:
    dataset = Pipeline(photos, PHOTOS, select="jpg").tf(graph=False, batch=8)
    [images] = dataset._source.take(dataset._source.start(8))

    assert (8, 64, 48, 3) == images.shape
    assert 0 == images.ctypes.data % ALIGNED


@pytest.mark.parametrize("batch", [None, 4])
def test_a_tuple_of_one_stays_a_tuple(photos: str, batch: int | None) -> None:
    dataset = Pipeline(photos, PHOTOS, select=("jpg",)).tf(graph=False, batch=batch)

    assert isinstance(dataset.element_spec, tuple)
    [images] = next(iter(dataset))
    assert (64, 48, 3) == images.shape[-3:]


def test_the_end_has_the_rank_of_what_came_before(photos: str) -> None:
    records = Pipeline(photos, PHOTOS, select="jpg").tf(graph=False, batch=8)._source
    handle = records.start(8)
    [images] = records.take(handle)
    while len(images):
        [images] = records.take(handle)

    assert (0, 64, 48, 3) == images.shape
    assert not records._runs


@pytest.mark.matrix
def test_tensors_that_are_held_keep_their_values_while_memory_is_used_again(photos: str) -> None:
    pipeline = Pipeline(photos, "decode(jpg)|resize(jpg, (400, 400))|convert(jpg, float32)|normalize(jpg, 0.5, 0.25)", select="jpg")
    expected = np.stack(list(pipeline.eager()))
    every = list(pipeline.tf(graph=False, batch=4))  # all of them held
    first = [np.array(images[0]) for images in pipeline.tf(graph=False, batch=4)]

    np.testing.assert_array_equal(expected, np.concatenate([images.numpy() for images in every]))
    np.testing.assert_array_equal(expected[::4], np.stack(first))


@pytest.mark.parametrize("runner", ["eager", "tf"])
def test_a_second_pass_begins_in_the_memory_of_the_first(photos: str, runner: str) -> None:
    pipeline = Pipeline(photos, "decode(jpg)|resize(jpg, (400, 400))|convert(jpg, float32)", select="jpg")
    dataset = pipeline.tf(graph=False, batch=4) if runner == "tf" else pipeline.eager(batch=4, num_workers=2)
    for _ in dataset:
        pass
    wait_until(lambda: dataset._memory._spare)  # TensorFlow lets go of them when it likes
    waiting = [raw.ctypes.data for raw in dataset._memory._spare]

    first = np.asarray(next(iter(dataset))).ctypes.data
    assert [at for at in waiting if 0 <= first - at < ALIGNED]


@pytest.mark.parametrize("runner", ["eager", "tf"])
def test_memory_goes_with_the_data_set(photos: str, runner: str) -> None:
    pipeline = Pipeline(photos, PHOTOS, select="jpg")
    dataset = pipeline.tf(graph=False, batch=4) if runner == "tf" else pipeline.eager(batch=4, num_workers=2)
    for _ in dataset:
        break
    memory = weakref.ref(dataset._memory)
    built = dataset.map(lambda images: images) if runner == "tf" else [dataset]
    del dataset
    gc.collect()
    assert memory() is not None
    del built

    wait_until(lambda: gc.collect() >= 0 and memory() is None)


def test_one_image_picked_twice_is_in_both_columns(photos: str) -> None:
    pipeline = Pipeline(photos, PHOTOS, select=("jpg", "jpg;png"))
    for once, again in pipeline.tf(graph=False, batch=4):
        np.testing.assert_array_equal(once, again)
    for once, again in pipeline.eager(batch=4, num_workers=2):
        np.testing.assert_array_equal(once, again)


def test_room_knows_dense_values_from_others() -> None:
    assert np.float32 == native.room(3, Feature("float32", (2, 2)), BatchMemory()).dtype
    assert (3, 2, 2) == native.room(3, Feature("float32", (2, 2)), BatchMemory()).shape
    assert object == native.room(3, Feature("uint8", (None, 2)), BatchMemory()).dtype
    assert object == native.room(3, Feature("str"), BatchMemory()).dtype
    assert (0, 2) == native.room(0, Feature("int64", (2,)), BatchMemory()).shape


def test_an_error_of_the_shard_comes_behind_the_batches_that_are_whole(photos: str, tmp_path: Path) -> None:
    data = Path(photos).read_bytes()
    (tmp_path / "cut.tar").write_bytes(data[: len(data) // 2])
    seen: list[int] = []
    dataset = Pipeline(tmp_path / "cut.tar", PHOTOS, select="jpg").tf(graph=False, batch=4)
    with pytest.raises(DataError):
        seen.extend(len(images) for images in dataset)

    assert seen
    assert {4} == set(seen)


def test_leaving_early_ends_the_threads(photos: str) -> None:
    def working() -> list[str]:
        return [thread.name for thread in threading.enumerate() if thread.name.startswith("tarviz-tf")]

    dataset = Pipeline(photos, PHOTOS, select="jpg").tf(graph=False, batch=4, repeat=None)
    iterator = iter(dataset)
    next(iterator)
    assert working()
    del iterator

    wait_until(lambda: [] == working())


def test_no_records_are_no_batches() -> None:
    chunks: Any = (chunk for chunk in ())
    step = native.GraphStep(parse_chain(""), slice(0, 0), True, Schema(), ())

    assert [] == list(native.batches(chunks, step, 4, 1, ReadReport(), BatchMemory(), None))


@pytest.mark.programs
def test_threads_of_tensorflow_import_nothing_of_ours(photos: str) -> None:
    """One could collect an iterator inside an import, and wait for that iterator's thread, which waits for the import."""
    code = """
import sys
from tarviz import Pipeline
dataset = Pipeline(sys.argv[1], "decode(jpg)|resize(jpg, 8)|decode(cls)", select=("jpg", "cls")).tf(graph=False, batch=9)
before = {*sys.modules}
assert 5 == len(list(dataset))
print(sorted(name for name in {*sys.modules} - before if name.startswith("tarviz")))
"""
    done = subprocess.run([sys.executable, "-c", code, str(photos)], capture_output=True, text=True, timeout=240, check=False)

    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr


def test_an_abandoned_iterator_may_be_collected_where_its_ops_wait_for(photos: str) -> None:
    """Python's collector runs in any thread, inside an import too: the end of an iterator may not be waited for there."""
    lock, inside = threading.Lock(), threading.Event()

    def wait(record: dict[str, Any]) -> dict[str, Any]:
        if int(record["__key__"]) < 20:
            return record
        inside.set()
        with lock:
            return record

    pipeline = Pipeline(photos, [Decode("cls"), Func(wait, output_types={"cls": "int64"})], select="cls")
    with lock:
        iterator = iter(pipeline.tf(graph=False, num_workers=2))
        found = [int(next(iterator)) for _ in range(19)]
        assert inside.wait(60)  # read ahead
        iterator.cycle = iterator
        del iterator
        collecting = threading.Thread(target=gc.collect)
        collecting.start()
        collecting.join(20)
        over = not collecting.is_alive()

    collecting.join(60)
    assert (list(range(19)), True) == (found, over)
