"""What every test finds: an environment of its own, sample shards, the corpus of damaged files."""

from __future__ import annotations

import atexit
import fcntl
import functools
import gc
import importlib.util
import inspect
import json
import lzma
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import settings

# The same examples at every run, however slow the machine: what fails here fails on the next machine too.
# `make test` tries the first 30 of each, and this many cases of each test that has more; `make test-matrix` all of them.
CASES = 3
settings.register_profile("tarviz", deadline=None, derandomize=True)
settings.register_profile("quick", deadline=None, derandomize=True, max_examples=30)
settings.load_profile("tarviz")

# Before anything imports TensorFlow: no start-up talk, no accelerator.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

# Where `make oracles` puts Microsoft's Azure server for tests.
if (_azurite := Path(sys.prefix, ".stamps", "azurite", "node_modules", ".bin", "azurite-blob")).is_file():
    os.environ.setdefault("AZURITE", str(_azurite))

# A shell that starts the tests in the background has them ignore Ctrl-C, and their children too: tests that send it need it back.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

DATA = Path(__file__).parent / "data"


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Doctests are in the product. Of a test file that cannot be imported pytest's doctests would say "skipped", and no more be said."""
    return [each for each in (yield) if not isinstance(each, DoctestModule)]


def left_out(text: str, marks: str) -> bool:
    """Whether `-m MARKS` leaves out all of a module with this text: `not (torch or …)`, and it says `pytestmark = pytest.mark.torch`."""
    excluded = re.fullmatch(r"(?:\([\w ]+\) and )?(?:(?:not )?\w+ and )*not \(([\w ]+)\)", marks)
    whole = re.search(r"^pytestmark = (\[\n(?:    .*\n)*|.*)", text, re.MULTILINE)
    return bool(excluded and whole) and not set(excluded[1].split(" or ")).isdisjoint(re.findall(r"pytest\.mark\.(\w+)", whole[1]))


collect_ignore = [
    "docs/loop_model.py",
    "dialects/webdataset/peer_program.py",
    "runners/rank_program.py",
]  # what tests start: torch, Keras


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A module that is left out as a whole is not imported either: torch and Ray alone take seconds, in each process that tests."""
    if not (collection_path.name.startswith("test_") and collection_path.suffix == ".py"):
        return None
    return left_out(collection_path.read_text("utf-8"), config.getoption("markexpr")) or None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--few-skips", action="store_true", help="a skip that tests/skips.txt does not know fails the run")
    parser.addoption("--minutes", type=float, help="begin no test after this many minutes; the order is drawn from --seed")
    parser.addoption("--seed", type=int, help="what --minutes draws the order from: today's date, unless given")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--few-skips") and not hasattr(config, "workerinput"):  # xdist: the controller sees every report
        from tests.skips import LIST, FewSkips, allowed

        config.pluginmanager.register(FewSkips(allowed(LIST.read_text("utf-8"))), "few-skips")
    if (minutes := config.getoption("--minutes")) is not None:
        from tests.bounded import Bounded

        config.pluginmanager.register(Bounded(minutes, config.getoption("--seed")), "bounded")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a test with more than `CASES` cases `make test` runs so many, evenly spread, and `make test-matrix` the others."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        if not item.get_closest_marker("matrix"):
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in tests.values():
        for at in set(range(len(cases))) - spread(len(cases), CASES):
            cases[at].add_marker(pytest.mark.matrix)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Ten thousand tests and TensorFlow are a million objects that stay to the end: no collection of garbage looks at them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_unconfigure() -> None:
    gc.unfreeze()  # or else native packages tell at exit of all that they believe lost


@pytest.fixture(autouse=True, scope="session")
def _own_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test sees the user's options and credentials, or writes into the user's cache; what a module starts for its tests neither."""
    clouds = ("AWS_", "AZURE_", "GOOGLE_", "HF_", "STORAGE_EMULATOR_")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("TARVIZ_", *clouds))]:
            patch.delenv(name)
        home = tmp_path_factory.getbasetemp()
        patch.setenv("TARVIZ_CONFIG", str(home / "no-config.toml"))
        (home / "no-config.toml").touch()
        patch.setenv("XDG_CACHE_HOME", str(home / "cache"))
        patch.setenv("XDG_DATA_HOME", str(home / "data"))
        yield


def wait_until(true: Callable[[], object], seconds: float = 60.0) -> None:
    """Return as soon as `true()` is; fail when it never becomes so. The limit is for a machine that hangs, not for a slow one."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"not so within {seconds:.0f} s"
        time.sleep(0.005)


def own_threads() -> set[threading.Thread]:
    """The threads of tarviz that end with what they work for; those that serve all of `tf.data` stay."""
    stay = ("tarviz-load", "tarviz-left")
    return {each for each in threading.enumerate() if each.name.startswith("tarviz") and not each.name.startswith(stay)}


@pytest.fixture
def threads_end() -> Callable[[], None]:
    """Waits until the threads of tarviz that began in this test have ended; those that other tests left are theirs."""
    before = own_threads()
    return lambda: wait_until(lambda: not own_threads() - before)


def spread(length: int, count: int) -> set[int]:
    """`count` places in a list of that length, evenly spread, the first and the last among them."""
    return {round(at * (length - 1) / max(count - 1, 1)) for at in range(count)} if length else set()


def sampled(cases: Iterable[Any], count: int) -> list[Any]:
    """Cases as pytest parameters, all but `count` of them, evenly spread, marked `matrix`, where `CASES` of them take too long.

    A case is a value, a tuple of several, or what `pytest.param` gave.
    """
    cases = list(cases)
    quick = spread(len(cases), count)
    found = []
    for at, case in enumerate(cases):
        values, marks, name = (
            (case.values, case.marks, case.id) if hasattr(case, "marks") else (case if isinstance(case, tuple) else (case,), (), None)
        )
        found.append(pytest.param(*values, marks=[*marks, *([] if at in quick else [pytest.mark.matrix])], id=name))
    return found


def each_case(names: str | tuple[str, ...], cases: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """As `pytest.mark.parametrize`, all in one test: for cases that take a moment each, so that `make test` leaves none of them out."""
    words = (names,) if isinstance(names, str) else names
    listed = [(case,) if isinstance(names, str) else case for case in cases]

    def decorated(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(*args: Any, **fixtures: Any) -> None:
            for case in listed:
                try:
                    test(*args, **fixtures, **dict(zip(words, case, strict=True)))
                except BaseException as error:  # pytest's own, too
                    error.add_note(f"The case is {dict(zip(words, case, strict=True))}.")
                    raise

        found = inspect.signature(test)
        left = [each for name, each in found.parameters.items() if name not in words]
        run.__signature__ = found.replace(parameters=left)  # type: ignore[attr-defined]
        return run

    return decorated


def corpus(folder: str) -> list[Any]:
    """`(path, entry)` of every damaged or odd file here, as pytest parameters: `from tests.conftest import corpus`.

    `folder` is `generated` (tars) or `tfrecord`; an entry's `tarviz_expected` says how it behaves.
    """
    entries = json.loads((DATA / "corpora" / "MANIFEST.json").read_text("utf-8"))["files"]
    paths = [(DATA / "corpora" / each["file"], each) for each in entries if each["file"].startswith(f"{folder}/")]
    return [pytest.param(path, each, id=path.name.split(".")[0]) for path, each in paths if path.is_file()]


@functools.cache
def unpacked() -> Path:
    """A folder with the large tars of the corpus, which lie packed in `data/corpora/packed`; it goes when the tests are over."""
    folder = Path(tempfile.mkdtemp(prefix="tarviz-corpus-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for path in sorted((DATA / "corpora" / "packed").glob("*.xz")):
        (folder / path.stem).write_bytes(lzma.decompress(path.read_bytes()))
    return folder


def needs(package: str, reason: str) -> None:
    """Skip the test where a package is not installed. Where it is, it is not imported: that takes seconds for some."""
    if importlib.util.find_spec(package) is None:
        pytest.skip(reason)


def made_once(tmp_path_factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """The folder `name` with what `make` puts into it: made by the first that asks, for all processes that run these tests."""
    own = tmp_path_factory.getbasetemp()
    root = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    folder, unfinished = root / name, root / f"{name}.part"
    with (root / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            unfinished.mkdir()
            make(unfinished)
            unfinished.rename(folder)
    return folder


@pytest.fixture(scope="session")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sample digits: `train-0000.tar` … `train-0003.tar`, `test-0000.tar`."""
    needs("sklearn", "scikit-learn brings the pictures: pip install 'tarviz[demo]'")
    from tarviz import samples

    return made_once(tmp_path_factory, "digits", samples.digits)


@pytest.fixture(scope="session")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with 24 sample photos in `photos-0000.tar` and `photos-0001.tar`."""
    needs("sklearn", "scikit-learn brings the pictures: pip install 'tarviz[demo]'")
    from tarviz import samples

    return made_once(tmp_path_factory, "photos", lambda folder: samples.photos(folder, count=24, shards=2))


@pytest.fixture(scope="session")
def s3_address() -> Iterator[str]:
    """The address of an S3 server of this machine (moto), the same for all tests: to start it takes seconds."""
    needs("moto", "moto serves S3: pip install 'moto[server,s3]'")
    from tests.servers.local import s3_server

    with s3_server() as url:
        yield url


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Path]:
    """`make(records, "a.tar")` writes a shard into the test's folder."""

    from tarviz.testing.strategies import shard

    def write(content: Any, name: str = "a.tar", **options: Any) -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else shard(content, **options))
        return path

    return write
