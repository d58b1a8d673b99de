"""What users write with `TarWriter` and `ShardWriter`, run with webdataset and with the dialect: the same members, byte for byte."""

from __future__ import annotations

import gc
import io
import pickle
import tarfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import tarviz.dialects.webdataset as wds

theirs: Any = pytest.importorskip("webdataset", reason="webdataset is what the dialect is held against: pip install webdataset")
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),  # webdataset leaves its files open
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

Writer = Callable[[Any, str], Any]
PIXELS = np.random.default_rng(0).integers(0, 256, (6, 8, 3), dtype=np.uint8)
FLOATS = (PIXELS / 255).astype(np.float32)
SAMPLE = {"__key__": "a", "txt": "x", "cls": 3}


def one(name: str = "a.tar", **options: Any) -> Callable[..., Writer]:
    """A writer of one tar with the samples given."""

    def samples(*given: Any) -> Writer:
        def run(w: Any, d: str) -> None:
            with w.TarWriter(f"{d}/{name}", **options) as sink:
                for sample in given:
                    sink.write(dict(sample) if isinstance(sample, dict) else sample)

        return run

    return samples


def shards(count: int = 10, pattern: str = "s-%04d.tar", each: int = 1, **options: Any) -> Writer:
    """A writer of shards with `count` samples of `each` bytes."""

    def run(w: Any, d: str) -> None:
        if w is theirs:
            options["verbose"] = 0
        with w.ShardWriter(f"{d}/{pattern}", **options) as sink:
            for number in range(count):
                sink.write({"__key__": f"{number:04d}", "bin": bytes(each)})

    return run


def by_hand(w: Any, d: str) -> None:
    sink = w.TarWriter(f"{d}/a.tar")
    sink.write(SAMPLE)
    sink.close()


def into_a_file(w: Any, d: str) -> None:
    with open(f"{d}/a.tar", "wb") as file, w.TarWriter(file) as sink:
        sink.write(SAMPLE)


def into_memory(w: Any, d: str) -> None:
    memory = io.BytesIO()
    with w.TarWriter(memory) as sink:
        sink.write(SAMPLE)
    Path(d, "a.tar").write_bytes(memory.getvalue())


def packed_into_a_file(w: Any, d: str) -> None:
    for name, compress in (("a.tar", True), ("b.tar", "bz2")):
        with open(f"{d}/{name}", "wb") as file, w.TarWriter(file, compress=compress) as sink:
            sink.write(SAMPLE)


def sizes(w: Any, d: str) -> None:
    with w.TarWriter(f"{d}/a.tar") as sink:
        Path(d, "sizes.txt").write_text(str([sink.write({"__key__": str(n), "txt": "x" * n, "cls": n}) for n in (1, 2, 300)]))


def posted(w: Any, d: str) -> None:
    """`post` gets each shard when it is complete."""
    told: list[str] = []
    with w.ShardWriter(f"{d}/s-%02d.tar", maxcount=3, post=told.append, **({"verbose": 0} if w is theirs else {})) as sink:
        for number in range(8):
            sink.write({"__key__": str(number), "txt": "x"})
    Path(d, "told.txt").write_text(str([Path(name).name for name in told]))


def opened(w: Any, d: str) -> None:
    """Outputs that are opened by a function."""
    options = {"verbose": 0} if w is theirs else {}
    with w.ShardWriter("s-%02d.tar", maxcount=3, opener=lambda name: open(f"{d}/{name}", "wb"), **options) as sink:
        for number in range(8):
            sink.write({"__key__": str(number), "txt": "x"})


def next_stream(w: Any, d: str) -> None:
    with w.ShardWriter(f"{d}/s-%02d.tar", **({"verbose": 0} if w is theirs else {})) as sink:
        sink.write({"__key__": "a", "txt": "x"})
        sink.next_stream()
        sink.write({"__key__": "b", "txt": "x"})


def copied(w: Any, d: str) -> None:
    """A shard read and written again, one field changed."""
    one()({"__key__": "a", "cls": 1}, {"__key__": "b", "cls": 2})(w, d)
    with w.TarWriter(f"{d}/b.tar") as sink:
        for sample in w.WebDataset(f"{d}/a.tar", shardshuffle=False).decode():
            sink.write({**sample, "cls": sample["cls"] + 1})


def torch_tensor(w: Any, d: str) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    one()({"__key__": "a", "npy": torch.arange(4).numpy()})(w, d)


ARRAY = {"__key__": "a", "npy": np.arange(6).reshape(2, 3)}
WRITERS: dict[str, Writer] = {
    "text and class": one()(SAMPLE),
    "bytes": one()({"__key__": "a", "bin": b"\0\1", "jpg": b"not decoded"}),
    "bytearray": one(encoder=False)({"__key__": "a", "bin": bytearray(b"xy")}),
    "memoryview": one(encoder=False)({"__key__": "a", "bin": memoryview(b"xy")}),
    "many samples": one()(*({"__key__": f"{n:03d}", "txt": str(n), "cls": n} for n in range(50))),
    "fields in order": one()({"__key__": "a", "z": b"1", "a": b"2", "m": b"3"}),
    "folders in keys": one()({"__key__": "x/y/a", "txt": "1"}),
    "unicode keys": one()({"__key__": "grün/ä", "txt": "ü"}),
    "a long extension": one()({"__key__": "a", "seg.txt": "x", "left.cls": 1}),
    "classes": one()({"__key__": "a", "cls": 1, "cls2": 2, "index": 3, "inx": 4, "id": 5, "count": 6, "class": 7}),
    "NumPy's numbers": one()({"__key__": "a", "cls": np.int64(5)}),
    "texts": one()({"__key__": "a", "txt": "ä", "text": "b", "transcript": "c", "html": "<p>", "htm": "<b>"}),
    "JSON": one()({"__key__": "a", "json": {"a": [1, 2.5, None, True]}, "jsn": [1]}),
    "JSON beyond ASCII": one()({"__key__": "a", "json": {"ü": ["日本", "\U0001f600", 1.5]}}),
    "JSON of a number": one()({"__key__": "a", "json": 5}),
    "npy": one()(ARRAY),
    "npy of floats": one()({"__key__": "a", "npy": np.linspace(0, 1, 5, dtype=np.float32)}),
    "npz": one()({"__key__": "a", "npz": {"x": np.arange(3), "y": np.eye(2)}}),
    "npz of no dict": one()({"__key__": "a", "npz": np.arange(3)}),
    "MessagePack": one()({"__key__": "a", "mp": {"a": 1, "b": [1, 2]}, "msgpack": [1], "msg": "x"}),
    "ten": one()({"__key__": "a", "ten": np.eye(3)}),
    "several ten": one()({"__key__": "a", "tb": [np.ones(1), np.ones(2, np.uint8)]}),
    "png of bytes": one()({"__key__": "a", "png": PIXELS}),
    "png of grey": one()({"__key__": "a", "png": PIXELS[:, :, 0]}),
    "png of PIL": one()({"__key__": "a", "png": Image.fromarray(PIXELS)}),
    "jpg of bytes": one()({"__key__": "a", "jpg": PIXELS}),
    "jpeg of PIL": one()({"__key__": "a", "jpeg": Image.fromarray(PIXELS)}),
    "ppm": one()({"__key__": "a", "ppm": PIXELS}),
    "floats out of range": one()({"__key__": "a", "png": FLOATS * 2}),
    "gz": one()({"__key__": "a", "txt.gz": "x" * 100}),
    "gz of JSON": one()({"__key__": "a", "json.gz": {"a": 1}}),
    "meta data left out": one()({"__key__": "a", "__url__": "x", "_note": "y", "txt": "z"}),
    "meta data kept": one(keep_meta=True)({"__key__": "a", "__note__": "y", "txt": "z"}),
    "no key": one()({"txt": "x"}),
    "a value without an encoder": one()({"__key__": "a", "xyz": [1]}),
    "no encoder": one(encoder=False)({"__key__": "a", "cls": 3}),
    "no encoder, bytes": one(encoder=False)({"__key__": "a", "cls": b"3"}),
    "an encoder of one's own": one(encoder=lambda sample: {**sample, "cls": b"%d" % sample["cls"]})({"__key__": "a", "cls": 3}),
    "a table of encoders": one(encoder={"cls": lambda cls: b"%d" % cls})({"__key__": "a", "cls": 3}),
    "pickles by a table": one(encoder={"pyd": pickle.dumps})({"__key__": "a", "pyd": {"x": 1}}),
    "a time": one(mtime=1_600_000_000)(SAMPLE),
    "a mode": one(mode=0o600)(SAMPLE),
    "tgz": one("a.tgz")(SAMPLE),
    "tar.gz": one("a.tar.gz")(SAMPLE),
    "compress": one(compress=True)(SAMPLE),
    "compress gz": one(compress="gz")(SAMPLE),
    "compress bz2": one(compress="bz2")(SAMPLE),
    "compress xz": one(compress="xz")(SAMPLE),
    "tar.bz2": one("a.tar.bz2")(SAMPLE),
    "tar.xz": one("a.tar.xz")(SAMPLE),
    "no compress": one(compress=False)(SAMPLE),
    "an empty tar": one()(),
    "closed by hand": by_hand,
    "into a file": into_a_file,
    "into memory": into_memory,
    "packed into a file": packed_into_a_file,
    "sizes": sizes,
    "shards": shards(maxcount=3),
    "shards, full": shards(9, maxcount=3),
    "shards from a number": shards(maxcount=4, start_shard=7),
    "shards without a limit": shards(),
    "shards, packed": shards(pattern="s-%02d.tar.gz", maxcount=4),
    "shards, packed with bzip2": shards(pattern="s-%02d.tar.bz2", maxcount=4),
    "shards, packed on request": shards(maxcount=4, compress="xz"),
    "posted": posted,
    "an opener": opened,
    "next_stream": next_stream,
    "copied": copied,
    "a tensor's array": torch_tensor,
}
# What the dialect writes otherwise, and is meant to (docs/dialects/webdataset.md).
DIFFERENT: dict[str, tuple[Writer, Any]] = {
    "pickles": (one()({"__key__": "a", "pyd": {"x": 1}}), ValueError),
    "a key twice": (one()(SAMPLE, SAMPLE), ValueError),
    "shards of nothing": (shards(0), {}),
}


def outcome(writer: Writer, module: Any, folder: Path) -> Any:
    """File → member → (payload, mode); the kind of the error where there is one."""
    folder.mkdir()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            writer(module, str(folder))
        except Exception as error:  # noqa: BLE001  compared with the other's
            return ValueError if isinstance(error, ValueError) else Exception
        finally:
            gc.collect()  # webdataset leaves files open: let them go here, where no warning is an error
    return {path.name: contents(path) for path in sorted(folder.iterdir())}


def contents(path: Path) -> Any:
    if path.suffix == ".txt":
        return path.read_text()
    with tarfile.open(path) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]


def plain(written: Any) -> Any:
    """Payloads that hold equal values as equal: npz files bear times."""
    if not isinstance(written, dict):
        return written
    return {
        name: {key: value(key, data) for key, data in file.items()} if isinstance(file, dict) else file for name, file in written.items()
    }


def value(name: str, data: bytes) -> Any:
    if name.endswith(".npz"):
        with np.load(io.BytesIO(data)) as arrays:
            return {key: arrays[key].tolist() for key in arrays}
    if name.endswith((".png", ".jpg", ".jpeg", ".ppm", ".pgm")) and data[:3] != b"not":
        return np.asarray(Image.open(io.BytesIO(data))).tolist()
    if name.endswith(".gz"):
        import gzip

        return gzip.decompress(data)
    return data


@pytest.mark.parametrize("name", WRITERS)
def test_a_writer_writes_what_it_writes_with_webdataset(tmp_path: Path, name: str) -> None:
    expected = outcome(WRITERS[name], theirs, tmp_path / "theirs")
    actual = outcome(WRITERS[name], wds, tmp_path / "ours")

    if expected is Exception:  # an assertion of webdataset's; here an error that says what
        assert isinstance(actual, type)
    else:
        assert plain(expected) == plain(actual)


@pytest.mark.parametrize("name", DIFFERENT)
def test_these_write_something_else_and_say_so(tmp_path: Path, name: str) -> None:
    writer, expected = DIFFERENT[name]

    assert expected == outcome(writer, wds, tmp_path / "ours")
    assert expected != outcome(writer, theirs, tmp_path / "theirs")


def test_the_list_of_what_differs_is_short() -> None:
    assert len(DIFFERENT) <= 10


class TestOneThatRaises:
    @pytest.mark.parametrize(("count", "each", "complete"), [(1000, 100, 10), (950, 100, 9), (300, 100_000, 3)])
    def test_shards_that_are_full_stay(self, tmp_path: Path, count: int, each: int, complete: int) -> None:
        told: list[str] = []

        def write() -> None:
            with wds.ShardWriter(str(tmp_path / "s-%03d.tar"), maxcount=100, post=told.append) as sink:
                for number in range(count):
                    sink.write({"__key__": f"{number:04d}", "bin": bytes(each)})
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            write()

        expected = [str(tmp_path / f"s-{number:03d}.tar") for number in range(complete)]
        assert expected == told == sorted(map(str, tmp_path.iterdir()))
        assert complete * 100 == len(list(wds.WebDataset(expected)))

    def test_a_shard_is_there_with_its_last_sample(self, tmp_path: Path) -> None:
        told: list[str] = []

        with wds.ShardWriter(str(tmp_path / "s-%d.tar"), maxcount=2, post=told.append) as sink:
            sink.write({"__key__": "a", "txt": "x"})
            assert told == []
            sink.write({"__key__": "b", "txt": "x"})
            assert [str(tmp_path / "s-0.tar")] == told
            assert [sample["__key__"] for sample in wds.WebDataset(told)] == ["a", "b"]
