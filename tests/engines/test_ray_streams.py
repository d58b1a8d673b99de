"""Loops fed by workers of a real Ray on loopback: values and order of the local runners, whatever happens to the workers."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import tarfile
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import tarviz
from tarviz.engines.ray.streams import AHEAD
from tarviz.model.errors import DataError, SchemaError, TarvizError, TarvizWarning, UsageError
from tarviz.ops import Func
from tarviz.pipeline import Pipeline
from tarviz.read.stream import ReadReport
from tarviz.runners.elsewhere import Elsewhere
from tarviz.runners.plans import ReaderPlan
from tarviz.runners.shares import ShareReader
from tarviz.runners.walk import work
from tests.conftest import wait_until

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(300), pytest.mark.filterwarnings("ignore")]

CHAIN = "decode(jpg)|random_crop(jpg, (24, 24))|flip(jpg)|decode(cls)"


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Three shards of 90, 7 and 40 small pictures; `cls` counts from 0."""
    return pictured(tmp_path_factory.mktemp("pictures"))


def pictured(folder):
    from PIL import Image

    number = 0
    for at, count in enumerate((90, 7, 40)):
        with tarfile.open(folder / f"p-{at}.tar", "w") as tar:
            for _ in range(count):
                stream = io.BytesIO()
                Image.fromarray(np.random.default_rng(number).integers(0, 256, (32, 40, 3), np.uint8)).save(stream, "JPEG")
                for ext, data in (("jpg", stream.getvalue()), ("cls", b"%d" % number)):
                    info = tarfile.TarInfo(f"r{number:04d}.{ext}")
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))
                number += 1
    return str(folder / "p-{0..2}.tar")


def pipeline(urls, chain=CHAIN, **options):
    return Pipeline(urls, chain, select=("jpg", "cls"), seed=3, **options)


def same(expected, found):
    assert len(expected) == len(found)
    for (image, label), (other, number) in zip(expected, found, strict=True):
        np.testing.assert_array_equal(image, other)
        assert np.asarray(image).dtype == np.asarray(other).dtype
        np.testing.assert_array_equal(label, number)


def roomy(record):
    record["jpg"] = np.zeros(1 << 20, np.uint8)
    return record


def mixture(urls):
    return pipeline(tarviz.mix({urls.replace("{0..2}", "0"): 0.6, urls.replace("{0..2}", "{1..2}"): 0.4}, stop="longest"))


def labels(found):
    return [int(label) for _, label in found]


class TestEager:
    @pytest.mark.parametrize("workers", [1, 2])
    @pytest.mark.parametrize(
        "options", [{}, {"shuffle": 30}, {"batch": 16, "repeat": 2, "shuffle": 9}], ids=["plain", "shuffle", "batches"]
    )
    def test_values_and_order_are_those_of_this_process(self, cluster, pictures, workers, options):
        here = pipeline(pictures).eager(**options)
        expected = list(here)

        run = pipeline(pictures).eager(engine="ray", num_workers=workers, **options)
        found = list(run)

        same(expected, found)
        assert here.report.records == run.report.records
        assert here.report.shards == run.report.shards

    def test_shards_without_an_index_and_chosen_records_come_too(self, cluster, pictures, tmp_path):
        import gzip

        packed = tmp_path / "p.tar.gz"
        packed.write_bytes(gzip.compress(Path(pictures.replace("{0..2}", "0")).read_bytes()))
        for urls, options in ((str(packed), {}), (pictures, {"keys": ["r0003", "r0091"]}), (pictures, {"group": "shard"})):
            given = pipeline(urls, **options)

            same(list(given), list(given.eager(engine="ray")))

    @pytest.mark.parametrize("shuffle", [None, 25])
    @pytest.mark.parametrize("taken", [1, 40, 95, 137])
    def test_a_state_goes_on_on_either_side(self, cluster, pictures, shuffle, taken):
        expected = list(pipeline(pictures).eager(shuffle=shuffle))
        run = pipeline(pictures).eager(engine="ray", shuffle=shuffle)
        values = iter(run)
        first = [next(values) for _ in range(taken)]
        state = run.state_dict()
        values.close()

        again = pipeline(pictures).eager(engine="ray", shuffle=shuffle)
        again.load_state_dict(state)
        here = pipeline(pictures).eager(shuffle=shuffle)
        here.load_state_dict(state)

        same(expected, first + list(again))
        same(expected, first + list(here))

    def test_a_loop_within_a_loop_is_fed_too(self, cluster, pictures):
        """The outer one holds both processors until it goes on."""
        outer, found = [], []
        given = Pipeline(pictures, [Func(roomy)], select=("jpg", "cls"))
        for _, label in given.eager(engine="ray", send_functions=True):
            outer.append(int(label))
            if len(outer) == 3:
                found += labels(pipeline(pictures).eager(engine="ray"))

        assert list(range(137)) == outer == found

    def test_epochs_draw_anew(self, cluster, pictures):
        here, away = pipeline(pictures).eager(), pipeline(pictures).eager(engine="ray")
        for _ in range(2):
            same(list(here), list(away))

    def test_ranks_share_the_records(self, cluster, pictures):
        found = [label for rank in range(2) for label in labels(pipeline(pictures).eager(engine="ray", rank=rank, world_size=2))]

        assert list(range(137)) == sorted(found)

    @pytest.mark.parametrize("options", [{}, {"shuffle": 5}, {"batch": 4}], ids=str)
    def test_large_arrays_may_be_written_to(self, cluster, tmp_path, options):
        """Also those that no batch is made of, as their shapes differ."""
        from tarviz.samples import write_shard

        path = tmp_path / "large.tar"
        write_shard(path, [(f"r{at}", {"npy": npy(np.full((10_000 + at, 3), at, np.uint8))}) for at in range(8)])
        found = list(Pipeline(path, "decode(npy)", select="npy").eager(engine="ray", **options))
        arrays = [array for part in found for array in part] if "batch" in options else found

        assert 8 == len(arrays)
        for array in arrays:
            array += 1


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


class TestMix:
    @pytest.mark.parametrize("runner", ["eager", "torch", "tf"])
    @pytest.mark.parametrize("shuffle", [None, 25])
    def test_every_runner_gives_the_records_of_this_process(self, cluster, pictures, runner, shuffle):
        if runner != "eager":
            pytest.importorskip({"torch": "torch", "tf": "tensorflow"}[runner], reason=f"{runner} is not installed")
        found = mixture(pictures).run(runner, engine="ray", shuffle=shuffle)

        same(list(mixture(pictures).eager(shuffle=shuffle)), list(found))

    def test_a_state_goes_on_on_either_side(self, cluster, pictures):
        expected = list(mixture(pictures).eager(shuffle=9))
        run = mixture(pictures).eager(engine="ray", shuffle=9)
        values = iter(run)
        first = [next(values) for _ in range(50)]
        state = run.state_dict()
        values.close()
        for engine in ("ray", None):
            again = mixture(pictures).eager(engine=engine, shuffle=9)
            again.load_state_dict(state)

            same(expected, first + list(again))


class TestTorch:
    @pytest.mark.parametrize("workers", [1, 2])
    @pytest.mark.parametrize("shuffle", [None, 30])
    def test_batches_are_those_of_this_process(self, cluster, pictures, workers, shuffle):
        data = pytest.importorskip("torch.utils.data", reason="needs torch")
        options = {"batch_size": 8}
        expected = list(data.DataLoader(pipeline(pictures).torch(shuffle=shuffle), **options))

        found = list(data.DataLoader(pipeline(pictures).torch(shuffle=shuffle, engine="ray", num_workers=workers), **options))

        same(expected, found)

    def test_a_loader_goes_on_after_any_batch(self, cluster, pictures):
        pytest.importorskip("torch", reason="needs torch")
        expected = list(pipeline(pictures).torch(shuffle=20).loader(8))
        loader = pipeline(pictures).torch(shuffle=20, engine="ray").loader(8)
        values = iter(loader)
        first = [next(values) for _ in range(5)]
        state = loader.state_dict()

        again = pipeline(pictures).torch(shuffle=20, engine="ray").loader(8)
        again.load_state_dict(state)

        same(expected, first + list(again))

    def test_workers_of_a_loader_are_refused(self, cluster, pictures):
        data = pytest.importorskip("torch.utils.data", reason="needs torch")
        loader = data.DataLoader(pipeline(pictures).torch(engine="ray"), num_workers=1)

        with pytest.raises(UsageError, match="the cluster does the work"):
            list(loader)
        with pytest.raises(UsageError, match="without an engine"):
            pipeline(pictures).torch(num_workers=2)


class TestTf:
    @pytest.mark.parametrize("workers", [1, 2])
    @pytest.mark.parametrize(
        "options", [{}, {"batch": 16}, {"batch": 16, "shuffle": 9, "repeat": 2}, {"batch": 50, "drop_remainder": True}]
    )
    def test_tensors_are_those_of_this_process(self, cluster, pictures, workers, options):
        pytest.importorskip("tensorflow", reason="needs tensorflow")
        here = pipeline(pictures).tf(graph=False, **options)

        away = pipeline(pictures).tf(engine="ray", num_workers=workers, **options)

        assert here.element_spec == away.element_spec
        same(list(here.as_numpy_iterator()), list(away.as_numpy_iterator()))

    def test_records_as_they_are(self, cluster, pictures):
        pytest.importorskip("tensorflow", reason="needs tensorflow")
        raw = Pipeline(pictures)

        expected, found = [list(raw.tf(batch=30, **more).as_numpy_iterator()) for more in ({}, {"engine": "ray"})]

        assert [{name: part.tolist() for name, part in batch.items()} for batch in expected] == [
            {name: part.tolist() for name, part in batch.items()} for batch in found
        ]

    def test_as_they_come_all_records_come_once(self, cluster, pictures):
        pytest.importorskip("tensorflow", reason="needs tensorflow")
        found = pipeline(pictures).tf(engine="ray", batch=10, deterministic=False)

        assert list(range(137)) == sorted(label for _, batch in found.as_numpy_iterator() for label in batch.tolist())

    def test_graph_is_refused(self, cluster, pictures):
        pytest.importorskip("tensorflow", reason="needs tensorflow")
        with pytest.raises(UsageError, match="graph=True"):
            pipeline(pictures).tf(engine="ray", graph=True)

    def test_pictures_that_make_no_batch_say_which(self, cluster, tmp_path):
        pytest.importorskip("tensorflow", reason="needs tensorflow")
        from PIL import Image

        from tarviz.samples import write_shard

        def png(side):
            stream = io.BytesIO()
            Image.new("RGB", (side, side)).save(stream, "PNG")
            return stream.getvalue()

        path = tmp_path / "odd.tar"
        write_shard(path, [(f"k{at}", {"png": png(9 if at == 5 else 8)}) for at in range(8)])

        with pytest.raises(SchemaError, match="does not fit into a batch") as caught:
            list(Pipeline(path, "decode(png)", select="png").tf(engine="ray", batch=8))

        assert "k5" == caught.value.key


class TestRemoteExec:
    def test_tensors_are_those_of_this_process(self, cluster, pictures):
        pytest.importorskip("tensorflow", reason="needs tensorflow")
        from tarviz.dialects.tar2tf import Dataset

        folder, name = os.path.split(pictures)
        dataset = Dataset(folder, None, "decode(jpg)|resize(jpg, (16, 16))", ["jpg", "cls"])
        expected = list(dataset.load(name, remote_exec=False).as_numpy_iterator())
        for remote in (True, None):
            found = dataset.load(name, remote_exec=remote)

            assert "ray" == found._source.work.place.engine
            for (image, label), (other, number) in zip(expected, found.as_numpy_iterator(), strict=True):
                assert np.abs(image.astype(int) - other.astype(int)).max() <= 1  # the graph rounds otherwise
                assert label == number

    def test_a_function_stays_here_unless_it_is_told_to_go(self, cluster, pictures):
        pytest.importorskip("tensorflow", reason="needs tensorflow")
        from tarviz.dialects.tar2tf import Dataset

        folder, name = os.path.split(pictures)
        dataset = Dataset(folder, None, [Func(lambda record: record)], ["jpg", "cls"])

        assert not hasattr(dataset.load(name)._source.work, "place")
        with pytest.raises(UsageError, match="holds a function"):
            dataset.load(name, remote_exec=True)


class TestLostWorkers:
    @pytest.mark.parametrize("ordered", [True, False])
    def test_a_killed_worker_loses_and_doubles_nothing(self, cluster, pictures, tmp_path, ordered):
        mark = str(tmp_path / "killed")

        def fatal(record):
            if record["cls"] == b"60" and not os.path.exists(mark):
                open(mark, "w").close()
                time.sleep(0.5)  # what was given is on its way
                os.kill(os.getpid(), signal.SIGKILL)

        given = Pipeline(pictures, [Func(fatal)], select=("jpg", "cls"))
        away = Elsewhere("ray", None, 2, ordered)
        found, lost = [], []
        with away.start(given, work, stops=True) as workers:
            pieces = ReaderPlan(given, ShareReader()).pieces(0, 0)
            found += [int(row.value[1]) for _, row in workers.rows(pieces, 0, ReadReport())]
            lost.append(workers.lost)

        assert list(range(137)) == (found if ordered else sorted(found))
        assert [1] == lost

    def test_a_kill_from_outside_is_survived_by_every_runner(self, cluster, pictures, tmp_path):
        def slow(record):
            (tmp_path / f"pid-{os.getpid()}").touch()
            time.sleep(0.005)

        run = Pipeline(pictures, [Func(slow)], select=("jpg", "cls")).eager(engine="ray", num_workers=2, send_functions=True, shuffle=10)
        expected = labels(Pipeline(pictures, select=("jpg", "cls")).eager(shuffle=10))
        found = []
        for at, (_, label) in enumerate(run):
            found.append(int(label))
            if at == 20:
                for path in tmp_path.glob("pid-*"):
                    os.kill(int(path.name[4:]), signal.SIGKILL)

        assert expected == found

    def test_a_record_that_kills_every_worker_is_an_error_after_those_before_it(self, cluster, pictures):
        def fatal(record):
            if record["cls"] == b"5":
                os.kill(os.getpid(), signal.SIGKILL)

        run = Pipeline(pictures, [Func(fatal)], select=("jpg", "cls")).eager(engine="ray", send_functions=True)
        found = []
        with pytest.raises(TarvizError, match="E_WORKER: the worker was lost 3 times"):
            found += (int(label) for _, label in run)

        assert found == list(range(len(found)))
        assert len(found) <= 5


class TestErrors:
    @pytest.fixture
    def damaged(self, pictures, tmp_path):
        """The shards, the second cut off, and the third with a picture that is none."""
        for at in range(3):
            data = Path(pictures.replace("{0..2}", str(at))).read_bytes()
            (tmp_path / f"p-{at}.tar").write_bytes(data[: len(data) // 2] if at == 1 else data)
        last = tmp_path / "p-2.tar"
        with tarfile.open(last) as tar:
            member = tar.getmember("r0100.jpg")
        data = bytearray(last.read_bytes())
        data[member.offset_data : member.offset_data + member.size] = b"x" * member.size
        last.write_bytes(data)
        return str(tmp_path / "p-{0..2}.tar")

    @pytest.mark.parametrize("shuffle", [None, 20])
    def test_skipped_records_are_those_of_this_process(self, cluster, damaged, shuffle):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TarvizWarning)
            here = pipeline(damaged, on_error="skip").eager(shuffle=shuffle)
            expected = list(here)
            away = pipeline(damaged, on_error="skip").eager(shuffle=shuffle, engine="ray")
            found = list(away)

        same(expected, found)
        assert here.report.counts() == away.report.counts()
        assert [fault.key for fault in here.report.skipped] == [fault.key for fault in away.report.skipped]

    def test_the_first_error_is_raised_in_its_place(self, cluster, damaged):
        def until(run):
            found = []
            with pytest.raises(DataError) as caught:
                found += map(int, (label for _, label in run))  # what came before stays
            return found, caught.value.shard, caught.value.key, caught.value.code

        for urls in (damaged, damaged.replace("{0..2}", "2")):
            assert until(pipeline(urls).eager()) == until(pipeline(urls).eager(engine="ray"))

    def test_an_error_of_tf_is_the_same(self, cluster, damaged):
        pytest.importorskip("tensorflow", reason="needs tensorflow")
        urls = damaged.replace("{0..2}", "2")
        caught = []
        for more in ({"graph": False}, {"engine": "ray"}):
            with pytest.raises(DataError) as error:
                list(pipeline(urls).tf(batch=4, **more))
            caught.append((error.value.key, error.value.code, error.value.shard))

        assert caught[0] == caught[1]

    def test_an_error_of_a_function_says_where_it_was(self, cluster, pictures):
        def wrong(record):
            raise KeyboardInterrupt if record is None else ZeroDivisionError("nothing")

        with pytest.raises(TarvizError, match="nothing"):
            list(Pipeline(pictures, [Func(wrong)]).eager(engine="ray", send_functions=True))


class TestEnding:
    @pytest.mark.parametrize("runner", ["eager", "tf"])
    def test_leaving_early_ends_the_workers(self, cluster, pictures, tmp_path, runner):
        def slow(record):
            time.sleep(0.02)
            with open(tmp_path / str(os.getpid()), "a") as file:
                file.write("x")

        if runner == "tf":
            pytest.importorskip("tensorflow", reason="needs tensorflow")
        given = Pipeline(pictures, [Func(slow)], select=("jpg", "cls"))
        values = iter(given.run(runner, engine="ray", send_functions=True))
        next(values)
        del values

        assert settled(tmp_path)

    def test_who_takes_nothing_is_waited_for(self, cluster, pictures, tmp_path):
        def big(record):
            record["big"] = np.zeros(4 << 20, np.uint8)
            (tmp_path / record["__key__"]).touch()

        values = iter(Pipeline(pictures, [Func(big)], select="big").eager(engine="ray", send_functions=True, num_workers=1))
        next(values)
        settled(tmp_path)
        made = len(list(tmp_path.iterdir()))
        values.close()

        assert made <= AHEAD + 3


def settled(folder):
    """Whether nothing is written into a folder any more, within a minute."""
    limit, before = time.monotonic() + 60, None
    while time.monotonic() < limit:
        now = sorted((path.name, path.stat().st_size) for path in folder.iterdir())
        if now == before:
            return True
        before = now
        time.sleep(1.5)
    return False


INTERRUPTED = """
import os, sys, time
from tarviz.ops import Func
from tarviz.pipeline import Pipeline

urls, address, folder, seconds = sys.argv[1:]

def slow(record):
    open(os.path.join(folder, f"pid-{os.getpid()}"), "w").close()
    time.sleep(float(seconds))

for _ in Pipeline(urls, [Func(slow)], select="cls").eager(engine="ray", address=address, num_workers=2, send_functions=True):
    print("taken", flush=True)
"""


class TestInterrupt:
    @pytest.mark.parametrize("waiting", [False, True])
    def test_ctrl_c_ends_the_loop_and_its_workers(self, cluster, pictures, tmp_path, waiting):
        """In the body of the loop, and while it waits for a first value."""
        line = [sys.executable, "-c", INTERRUPTED, pictures, cluster, str(tmp_path), "600" if waiting else "0.05"]
        process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            if waiting:
                wait_until(lambda: list(tmp_path.glob("pid-*")))
            else:
                assert "taken" == process.stdout.readline().strip()
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=120)
        finally:
            process.kill()

        assert -signal.SIGINT == process.returncode
        assert said.rstrip().endswith("KeyboardInterrupt")
        wait_until(lambda: not any(alive(int(path.name[4:])) for path in tmp_path.glob("pid-*")))


def alive(number):
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return True
