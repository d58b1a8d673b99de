"""Loops fed by a real tf.data service on loopback: a dispatcher and two workers, each a process, ended by their own ids."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tarviz.model.errors import DataError, SchemaError, TarvizError, TarvizWarning, UsageError
from tarviz.ops import Func
from tarviz.pipeline import Pipeline
from tarviz.samples import write_shard
from tests.servers.daemons import free_port

pytest.importorskip("tensorflow", reason="TensorFlow: pip install 'tarviz[tensorflow-cpu]'")
service = pytest.importorskip("tarviz.runners.tf.service")

CHAIN = "decode(jpg)|random_crop(jpg, (24, 24))|flip(jpg)|decode(cls)"

SERVER = """
import sys
import tensorflow as tf
service = tf.data.experimental.service
kind, port, dispatcher = sys.argv[1:]
if kind == "dispatcher":
    server = service.DispatchServer(service.DispatcherConfig(port=int(port)))
else:
    server = service.WorkerServer(service.WorkerConfig(dispatcher_address=dispatcher, worker_address=f"localhost:{port}", port=int(port)))
print("ready", flush=True)
sys.stdin.read()
"""


class Servers:
    """A dispatcher and two workers."""

    def __init__(self) -> None:
        ports = [free_port() for _ in range(3)]
        self.address = f"grpc://localhost:{ports[0]}"
        self.processes = [self._begin("dispatcher", ports[0])]
        self._ready(self.processes[0])
        self.processes += [self._begin("worker", port) for port in ports[1:]]
        for worker in self.processes[1:]:
            self._ready(worker)

    def _begin(self, kind: str, port: int) -> subprocess.Popen[str]:
        argv = [sys.executable, "-c", SERVER, kind, str(port), self.address.removeprefix("grpc://")]
        return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    @staticmethod
    def _ready(process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        assert "ready" == process.stdout.readline().strip()

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.communicate()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    servers = Servers()
    yield servers.address
    servers.end()


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Three shards of 90, 7 and 140 pictures of 40×32; `cls` counts from 0."""
    folder, number = tmp_path_factory.mktemp("pictures"), 0
    for at, count in enumerate((90, 7, 140)):
        write_shard(folder / f"p-{at}.tar", [(f"r{n:04d}", {"jpg": picture(n), "cls": b"%d" % n}) for n in range(number, number + count)])
        number += count
    return str(folder / "p-{0..2}.tar")


def picture(seed: int, size: tuple[int, int] = (40, 32), mode: str = "RGB", kind: str = "JPEG") -> bytes:
    stream = io.BytesIO()
    noise = np.random.default_rng(seed).integers(0, 256, (*size[::-1], len(mode)), np.uint8)
    Image.fromarray(noise, mode=mode).save(stream, kind)
    return stream.getvalue()


def pipeline(urls: Any, chain: Any = CHAIN, **options: Any) -> Pipeline:
    return Pipeline(urls, chain, select=("jpg", "cls"), seed=3, **options)


def served(given: Pipeline, address: str, **options: Any) -> Any:
    return given.tf(engine="tf-service", address=address, on_loss="error", **options)


def same(here: Any, away: Any) -> None:
    assert here.element_spec == away.element_spec
    expected, found = list(here.as_numpy_iterator()), list(away.as_numpy_iterator())
    assert len(expected) == len(found)
    for one, other in zip(expected, found, strict=True):
        for value, again in zip(one, other, strict=True):
            np.testing.assert_array_equal(value, again)


@pytest.fixture(scope="module")
def near() -> Iterator[str]:
    """A service in this process, with one worker: begun in no time."""
    import tensorflow as tf

    of = tf.data.experimental.service
    dispatcher = of.DispatchServer()
    address = dispatcher.target.removeprefix("grpc://")
    worker = of.WorkerServer(of.WorkerConfig(dispatcher_address=address, heartbeat_interval_ms=50))  # its end waits for beats: of 30 s
    yield dispatcher.target
    worker._stop()
    dispatcher._stop()


class TestNear:
    @pytest.mark.parametrize("options", [{}, {"batch": 50, "repeat": 2}, {"rank": 1, "world_size": 2, "num_workers": 1}], ids=str)
    def test_tensors_and_their_order_are_those_of_the_graph_here(self, pictures: str, near: str, options: dict[str, Any]) -> None:
        away = served(pipeline(pictures), near, **options)

        same(pipeline(pictures).tf(graph=True, **options), away)
        if not options:
            assert (3, 237) == (away.report.shards, away.report.records)

    def test_as_they_come_all_records_come_once(self, pictures: str, near: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(service, "PATIENCE", 0.01)  # they take longer than that to begin
        found = [int(label) for _, label in served(pipeline(pictures), near, deterministic=False)]

        assert list(range(237)) == sorted(found)

    def test_records_that_cannot_be_are_errors_in_their_turn_or_left_out(self, tmp_path: Path, near: str) -> None:
        path = tmp_path / "bad.tar"
        fields = [{"jpg": b"none" if at == 2 else picture(at), "cls": b"%d" % at} for at in range(6)]
        del fields[4]["cls"]
        write_shard(path, [(f"k{at}", each) for at, each in enumerate(fields)])
        labels: list[int] = []
        with pytest.raises(DataError, match="k2"):
            labels += (int(label) for _, label in served(pipeline(path), near))

        left = served(pipeline(path, on_error="skip"), near)
        assert [0, 1] == labels
        assert [0, 1, 3, 5] == [int(label) for _, label in left]
        assert ["k2", "k4"] == sorted(fault.key for fault in left.report.skipped)

    def test_a_shard_that_workers_do_not_see_is_an_error(self, pictures: str, near: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tarviz.runners.tf.served.local_path", lambda url: f"{url}.of-another-machine")

        with pytest.raises(TarvizError, match=r"E_WORKER: a worker of the tf\.data service failed: .*of-another-machine"):
            next(iter(served(pipeline(pictures), near)))


@pytest.mark.slow
@pytest.mark.timeout(300)
class TestService:
    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"batch": 16},
            {"batch": 50, "drop_remainder": True},
            {"batch": 16, "repeat": 2, "num_workers": 1},
            {"rank": 1, "world_size": 2},
        ],
        ids=str,
    )
    def test_tensors_and_their_order_are_those_of_the_graph_here(self, pictures: str, address: str, options: dict[str, Any]) -> None:
        same(pipeline(pictures).tf(graph=True, **options), served(pipeline(pictures), address, **options))

    def test_epochs_draw_anew_and_shuffled_ones_come_whole(self, pictures: str, address: str) -> None:
        here, away = pipeline(pictures).tf(graph=True), served(pipeline(pictures), address)
        for _ in range(2):
            same(here, away)
        expected = [int(label) for _, label in pipeline(pictures).eager(shuffle=30)]

        found = [int(label) for _, label in served(pipeline(pictures), address, shuffle=30)]

        assert expected == found

    def test_pictures_of_many_sizes_and_fields_as_they_are(self, tmp_path: Path, address: str) -> None:
        path = tmp_path / "many.tar"
        write_shard(path, [(f"k{at}", {"jpg": picture(at, (30 + at, 20)), "txt": b"t" * at}) for at in range(9)])

        same(Pipeline(path, "decode(jpg)", select=("jpg", "txt", "__key__", "__shard__", "__index__")).tf(graph=True),
             served(Pipeline(path, "decode(jpg)", select=("jpg", "txt", "__key__", "__shard__", "__index__")), address))  # fmt: skip
        raw = served(Pipeline(path), address, batch=4)
        assert [list(part["txt"].numpy()) for part in Pipeline(path).tf(batch=4)] == [list(part["txt"].numpy()) for part in raw]

    def test_as_they_come_all_records_come_once(self, pictures: str, address: str) -> None:
        found = served(pipeline(pictures), address, deterministic=False, batch=10)

        assert list(range(237)) == sorted(label for _, labels in found.as_numpy_iterator() for label in labels.tolist())

    def test_a_picture_that_is_none_is_the_same_error_or_skipped(self, tmp_path: Path, address: str) -> None:
        path = tmp_path / "bad.tar"
        write_shard(path, [(f"k{at}", {"jpg": b"none" if at == 5 else picture(at), "cls": b"%d" % at}) for at in range(9)])
        caught = []
        for run in (pipeline(path).tf(graph=True), served(pipeline(path), address)):
            labels: list[int] = []
            with pytest.raises(DataError) as error:
                labels += (int(label) for _, label in run)
            caught.append((labels, error.value.code, error.value.key, error.value.member, error.value.offset))

        skipped = served(pipeline(path, on_error="skip"), address)
        left = [int(label) for _, label in skipped]

        assert caught[0][1:] == caught[1][1:]
        assert [0, 1, 2, 3, 4] == caught[1][0]
        assert [0, 1, 2, 3, 4, 6, 7, 8] == left
        assert ["k5"] == [fault.key for fault in skipped.report.skipped]

    def test_a_record_that_lacks_a_field_comes_in_its_turn(self, tmp_path: Path, address: str) -> None:
        path = tmp_path / "lacks.tar"
        write_shard(path, [(f"k{at}", {"jpg": picture(at)} | ({} if at == 3 else {"cls": b"%d" % at})) for at in range(6)])
        labels: list[int] = []

        with pytest.raises(SchemaError, match="k3"):
            labels += (int(label) for _, label in served(pipeline(path), address))

        assert [0, 1, 2] == labels
        assert [0, 1, 2, 4, 5] == [int(label) for _, label in served(pipeline(path, on_error="skip"), address)]

    def test_what_the_graph_leaves_to_python_is_done_here_and_said(self, tmp_path: Path, address: str) -> None:
        path = tmp_path / "bmp.tar"
        write_shard(path, [(f"k{at}", {"jpg": picture(at, kind="BMP" if at == 2 else "JPEG"), "cls": b"%d" % at}) for at in range(5)])
        expected = [image.numpy() for image, _ in pipeline(path).tf(graph=True)]

        with pytest.warns(TarvizWarning, match=r"W_LOCAL.*k2"):
            found = [image.numpy() for image, _ in served(pipeline(path), address)]

        np.testing.assert_array_equal(expected, found)

    def test_a_shard_that_workers_do_not_see_is_an_error(self, pictures: str, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tarviz.runners.tf.served.local_path", lambda url: f"{url}.of-another-machine")

        with pytest.raises(TarvizError, match=r"E_WORKER: a worker of the tf\.data service failed: .*of-another-machine"):
            next(iter(served(pipeline(pictures), address)))

    def test_leaving_early_leaves_the_service_to_others(self, pictures: str, address: str) -> None:
        values = iter(served(pipeline(pictures), address))
        next(values)
        del values

        same(pipeline(pictures).tf(graph=True), served(pipeline(pictures), address))


def killing(run: Any, processes: list[subprocess.Popen[str]]) -> Iterator[Any]:
    """The values of a run, in whose middle processes are killed."""
    for at, value in enumerate(run):
        yield value
        if at == 100:
            for process in processes:
                process.send_signal(signal.SIGKILL)
                process.wait()


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("which", ["worker", "dispatcher"])
def test_the_loss_of_a_process_is_an_error_that_says_so(tmp_path: Path, which: str) -> None:
    path = tmp_path / "long.tar"
    write_shard(path, [(f"k{at:05d}", {"jpg": picture(at, (200, 200))}) for at in range(3000)])
    servers = Servers()
    try:
        run = served(Pipeline(path, "decode(jpg)", select=("jpg", "__index__")), servers.address, num_workers=1)
        found: list[int] = []
        with pytest.raises(TarvizError, match=rf"E_WORKER: the tf.data service lost up to .* of the 3000 records.*its {which} at") as error:
            found += (int(index) for _, index in killing(run, servers.processes[1:2] if which == "worker" else servers.processes))
    finally:
        servers.end()

    assert found == list(range(len(found)))
    assert "engine='ray'" in str(error.value)


class TestRefused:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        write_shard(tmp_path / "a.tar", [("k", {"jpg": picture(0), "cls": b"1"})])
        return tmp_path / "a.tar"

    @pytest.mark.parametrize("on_loss", [None, "retry", "ignore"])
    def test_losses_are_to_be_errors(self, path: Path, on_loss: str | None) -> None:
        with pytest.raises(UsageError, match=r"loses what a worker had taken when it dies.*engine='ray' loses nothing"):
            pipeline(path).tf(engine="tf-service", address="grpc://localhost:1", on_loss=on_loss)

    def test_an_engine_that_loses_nothing_is_not_asked_for_it(self, path: Path) -> None:
        with pytest.raises(UsageError, match="is for engine='tf-service'"):
            pipeline(path).tf(on_loss="error")

    def test_python_does_not_run_there(self, path: Path) -> None:
        with pytest.raises(UsageError, match="runs in Python"):
            served(Pipeline(path, [Func(dict)], select="jpg"), "grpc://localhost:1")
        with pytest.raises(UsageError, match="graph=False"):
            served(pipeline(path), "grpc://localhost:1", graph=False)

    def test_an_address_where_nobody_answers(self, path: Path) -> None:
        with pytest.raises(UsageError, match=r"there is no tf\.data service at"):
            served(pipeline(path), f"grpc://localhost:{free_port()}")
        with pytest.raises(UsageError, match="is not the 'grpc://host:port'"):
            served(pipeline(path), "localhost:5000")
