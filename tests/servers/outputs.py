"""What every output promises, on a slow disk, on a full one and when it is interrupted: the contract class `OutputTests`."""

from __future__ import annotations

import hashlib
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from tarviz.model.errors import StoreError
from tarviz.model.types import Buffer
from tarviz.stores import Sink, Stat
from tarviz.stores.file import FileStore

PIECE = 256 << 10  # bytes of most pieces that the tests give: a dozen is more than an output writes without its thread
NOISE = random.Random(0).randbytes(PIECE)  # takes as much room packed as not


class Disk(Sink):
    """A sink whose disk is slow, or has room for so many bytes only."""

    def __init__(self, sink: Sink, seconds: float = 0.0, room: float = float("inf")) -> None:
        self._sink, self._seconds, self._room = sink, seconds, room

    def _take(self, size: int) -> None:
        time.sleep(self._seconds)
        self._room -= size
        if self._room < 0:
            raise StoreError("cannot be written: the disk is full.", code="E_WRITE")

    def write(self, data: Buffer, /) -> None:
        self.writev((data,))

    def writev(self, pieces: Sequence[Buffer], /) -> None:
        self._take(sum(map(len, pieces)))
        self._sink.writev(pieces)

    def send(self, fd: int, offset: int, count: int, /) -> int:
        self._take(count)
        return self._sink.send(fd, offset, count)

    def commit(self) -> Stat:
        return self._sink.commit()

    def abort(self) -> None:
        self._sink.abort()


def use_disk(monkeypatch: pytest.MonkeyPatch, seconds: float = 0.0, room: float = float("inf")) -> None:
    """From now on, whatever this process writes to files goes to a disk like that."""
    create: Callable[..., Sink] = FileStore.create
    monkeypatch.setattr(FileStore, "create", lambda store, url, **how: Disk(create(store, url, **how), seconds, room))


class OutputTests:
    """What writes an output, written to by `put` in a `with` block, keeps to this.

    A subclass says how: `name` is that of the file, `begin(path)` is the context manager, `put(output, data)` gives it
    bytes, `content(path)` are the bytes given, read back from what was written. `settle(output)` waits until the memory
    given may be used again; nothing to do says that it may be at once.
    """

    name = "one.tar"

    def begin(self, path: Path) -> AbstractContextManager[Any]:
        raise NotImplementedError

    def put(self, output: Any, data: Buffer) -> None:
        raise NotImplementedError

    def content(self, path: Path) -> bytes:
        raise NotImplementedError

    def settle(self, output: Any) -> None:
        return

    @pytest.fixture
    def path(self, tmp_path: Path) -> Iterator[Path]:
        """Where to write; whatever a test does, nothing but the output is there in the end, and no thread is at work."""
        before = set(threading.enumerate())
        path = tmp_path / "out" / self.name
        yield path
        left = [thread for thread in threading.enumerate() if thread not in before]
        for thread in left:
            thread.join(60)
        assert [thread.name for thread in left if thread.is_alive()] == []
        if path.parent.is_dir():
            assert {path, Path(f"{path}.manifest.json")}.issuperset(path.parent.iterdir())

    def test_what_is_given_is_written(self, path: Path) -> None:
        pieces = [b"", b"x", b"\xff" * 511, b"y" * 512, b"z" * 100_000]
        with self.begin(path) as output:
            for piece in pieces:
                self.put(output, piece)

        assert b"".join(pieces) == self.content(path)

    def test_a_slow_disk_gets_the_same_bytes(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        use_disk(monkeypatch, seconds=0.01)
        with self.begin(path) as output:
            for at in range(12):
                self.put(output, bytes([at]) * PIECE)

        assert b"".join(bytes([at]) * PIECE for at in range(12)) == self.content(path)

    def test_memory_is_the_outputs_until_it_has_settled(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        use_disk(monkeypatch, seconds=0.01)
        memory = bytearray(PIECE)
        with self.begin(path) as output:
            for at in range(12):
                memory[:] = bytes([at]) * PIECE
                self.put(output, memory)
                self.settle(output)

        assert b"".join(bytes([at]) * PIECE for at in range(12)) == self.content(path)

    def test_nothing_has_the_name_before_the_end(self, path: Path) -> None:
        with self.begin(path) as output:
            for _ in range(12):
                self.put(output, NOISE)

            assert not path.exists()
        assert path.exists()

    @pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
    @pytest.mark.parametrize("pieces", [0, 1, 12])
    def test_an_exception_leaves_nothing(self, path: Path, monkeypatch: pytest.MonkeyPatch, error: Any, pieces: int) -> None:
        use_disk(monkeypatch, seconds=0.01)
        with pytest.raises(error), self.begin(path) as output:  # noqa: PT012  it is raised inside the output
            for _ in range(pieces):
                self.put(output, NOISE)
            raise error

        assert not path.exists()

    def test_an_exception_keeps_what_was_there(self, path: Path) -> None:
        path.parent.mkdir()
        path.write_bytes(b"before")
        with pytest.raises(ValueError, match="over"), self.begin(path) as output:  # noqa: PT012  it is raised inside the output
            for _ in range(12):
                self.put(output, NOISE)
            raise ValueError("over")

        assert path.read_bytes() == b"before"

    @pytest.mark.parametrize("room", [0, 100, 3 * PIECE, 9 * PIECE, 12 * PIECE])
    def test_a_full_disk_is_an_error_and_leaves_nothing(self, path: Path, monkeypatch: pytest.MonkeyPatch, room: int) -> None:
        use_disk(monkeypatch, seconds=0.005, room=room)
        with pytest.raises(StoreError, match="the disk is full"), self.begin(path) as output:  # noqa: PT012  it is raised inside the output
            for _ in range(12):
                self.put(output, NOISE)
            self.put(output, b"one more")

        assert not path.exists()

    @pytest.mark.slow
    def test_hundreds_of_megabytes_are_written_as_given(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        use_disk(monkeypatch, seconds=0.02)
        given, memory = hashlib.sha256(), bytearray(64 * PIECE)
        with self.begin(path) as output:
            for at in range(24):
                memory[:] = hashlib.sha256(bytes([at])).digest() * (len(memory) // 32)
                given.update(memory)
                self.put(output, memory)
                self.settle(output)

        assert given.hexdigest() == hashlib.sha256(self.content(path)).hexdigest()
