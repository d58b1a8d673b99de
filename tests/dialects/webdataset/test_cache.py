"""`cache_dir=`: shards from a server kept here, whole, of the right URL and version, within a size, shared by processes."""

from __future__ import annotations

import gzip
import io
import logging
import multiprocessing
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tarviz.dialects.webdataset as wds
from tarviz.dialects.webdataset.cache import FileCache, LRUCleanup, StreamingOpen, check_tar_format, pipe_cleaner, url_to_cache_name
from tarviz.model.errors import DataError, NotFoundError, UsageError
from tarviz.stores.cached import copies
from tarviz.testing.faults import ALWAYS, Fault, FaultServer
from tests.conftest import each_case


def shard(first: int, size: int = 1000) -> bytes:
    """A tar of three records from the number `first` on, with `size` bytes each."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for number in range(first, first + 3):
            member = tarfile.TarInfo(f"{number:04d}.bin")
            member.size = size
            tar.addfile(member, io.BytesIO(bytes(size)))
    return out.getvalue()


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer() as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "cache").mkdir()
    return tmp_path / "cache"


def keys(url: Any, folder: Path, **options: Any) -> list[str]:
    return [sample["__key__"] for sample in wds.WebDataset(url, shardshuffle=False, cache_dir=folder, **options)]


def fetched(server: FaultServer) -> list[str]:
    return [request.path for request in server.requests if request.method == "GET"]


def kept(folder: Path) -> list[Path]:
    return sorted(row.path for row in copies(folder / ".tarviz"))


def test_every_pass_but_the_first_reads_here(server: FaultServer, folder: Path) -> None:
    url = server.put("/a.tar", shard(0))
    dataset = wds.WebDataset(url, shardshuffle=False, cache_dir=folder)

    passes = [list(dataset) for _ in range(3)]
    assert passes[0] == passes[1] == passes[2] == list(wds.WebDataset(url, shardshuffle=False, cache_dir=folder))
    assert ["/a.tar"] == fetched(server)
    assert [(url, str(folder / "a.tar"))] * 3 == [(sample["__url__"], sample["__local_path__"]) for sample in passes[0]]
    assert shard(0) == (folder / "a.tar").read_bytes()


def test_a_pass_that_is_broken_off_has_kept_its_shard(server: FaultServer, folder: Path) -> None:
    dataset = wds.WebDataset(server.put("/a.tar", shard(0)), shardshuffle=False, cache_dir=folder)
    for _ in range(3):
        next(iter(dataset))

    assert ["/a.tar"] == fetched(server)


def test_a_shard_that_has_changed_is_fetched_again(server: FaultServer, folder: Path) -> None:
    url = server.put("/a.tar", shard(0))
    assert ["0000", "0001", "0002"] == keys(url, folder)
    server.put("/a.tar", shard(5))

    assert ["0005", "0006", "0007"] == keys(url, folder) == keys(url, folder)
    assert 2 == len(fetched(server))
    assert shard(5) == (folder / "a.tar").read_bytes()


def test_urls_that_end_alike_do_not_share_a_file(server: FaultServer, folder: Path) -> None:
    urls = [server.put("/one/a.tar", shard(0), etag='"1"'), server.put("/two/a.tar", shard(10), etag='"1"')]

    assert keys(urls, folder) == keys(urls, folder) == ["0000", "0001", "0002", "0010", "0011", "0012"]
    assert 2 == len(fetched(server))


def test_names_of_ones_own(server: FaultServer, folder: Path) -> None:
    url = server.put("/one/two/a.tar", shard(0))
    keys(url, folder, url_to_name=lambda url: "/".join(url.split("/")[-3:]))

    assert shard(0) == (folder / "one/two/a.tar").read_bytes()
    with pytest.raises(UsageError, match="is not a name for"):
        keys(url, folder, url_to_name=lambda _: "../a.tar")


def test_the_size_is_kept_to(server: FaultServer, folder: Path) -> None:
    urls = [server.put(f"/{name}.tar", shard(number)) for number, name in enumerate("abc")]
    size = len(shard(0))
    dataset = wds.WebDataset(urls, shardshuffle=False, cache_dir=folder, cache_size=2 * size)
    for _ in range(2):
        assert 9 == len(list(dataset))

        assert 2 * size == sum(path.stat().st_size for path in kept(folder))


def test_a_shard_that_is_larger_than_the_cache_is_read_from_afar(server: FaultServer, folder: Path) -> None:
    url = server.put("/a.tar", shard(0))
    samples = list(wds.WebDataset(url, shardshuffle=False, cache_dir=folder, cache_size=100))

    assert ["0000", "0001", "0002"] == [sample["__key__"] for sample in samples]
    assert all("__local_path__" not in sample for sample in samples)
    assert [] == list(folder.iterdir())


def test_a_damaged_file_is_fetched_anew(server: FaultServer, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    url = server.put("/a.tar", shard(0))
    keys(url, folder)
    place = (folder / "a.tar").resolve()
    place.write_bytes(b"?" + place.read_bytes()[1:])

    assert ["0000", "0001", "0002"] == keys(url, folder)
    assert "is damaged" in caplog.text
    assert 2 == len(fetched(server))


def test_what_is_not_a_tar_is_not_kept(server: FaultServer, folder: Path) -> None:
    url = server.put("/a.tar", b"<html>please log in</html>" * 100)
    with pytest.raises(DataError, match=r"not a tar archive; it begins with b'<html>please"):
        keys(url, folder)

    assert [] == kept(folder)
    assert not (folder / "a.tar").exists()


def test_a_transfer_that_breaks_off_is_taken_up(server: FaultServer, folder: Path) -> None:
    url = server.put("/a.tar", shard(0, 300_000), plan=[Fault(cut=100_000), Fault(cut=400_000, end="reset")])

    assert ["0000", "0001", "0002"] == keys(url, folder)
    assert shard(0, 300_000) == (folder / "a.tar").read_bytes()


def test_a_server_that_is_gone_leaves_what_is_here(folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: Any) -> None:
    monkeypatch.setenv("TARVIZ_RETRY_TIMEOUT", "0.1")
    with FaultServer() as server:
        urls = [server.put("/a.tar", shard(0)), server.put("/b.tar", shard(3))]
        other = server.put("/c.tar", shard(0))
        keys(urls, folder)
    with caplog.at_level(logging.WARNING):
        assert [f"000{number}" for number in range(6)] == keys(urls, folder)

    assert 1 == caplog.text.count("is used")
    with pytest.raises(OSError, match=r"c\.tar"):
        keys(other, folder)


def test_a_missing_shard_is_one_for_the_handler(server: FaultServer, folder: Path) -> None:
    urls = [server.put("/a.tar", shard(0)), server.put("/a.tar", shard(0)).replace("a.tar", "gone.tar")]

    assert 3 == len(keys(urls, folder, handler=wds.ignore_and_continue))
    with pytest.raises(NotFoundError):
        keys(urls, folder)


def test_a_file_that_somebody_put_there_is_taken(server: FaultServer, folder: Path) -> None:
    url = server.put("/a.tar", shard(0))
    (folder / "a.tar").write_bytes(shard(7))

    assert ["0007", "0008", "0009"] == keys(url, folder)
    assert [] == server.requests


@pytest.mark.matrix
def test_processes_share_it(server: FaultServer, folder: Path) -> None:
    urls = [server.put(f"/{number}/a.tar", shard(number), plan=[Fault(method="HEAD", delay=0.1, times=ALWAYS)]) for number in range(2)]
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=keys, args=(urls, folder)) for _ in range(3)]
    for child in children:
        child.start()
    for child in children:
        child.join()

    assert [0, 0, 0] == [child.exitcode for child in children]
    assert [len(shard(0))] * 2 == [path.stat().st_size for path in kept(folder)]
    asked = len(fetched(server))
    assert ["0000", "0001", "0002", "0001", "0002", "0003"] == keys(urls, folder)
    assert asked == len(fetched(server))


@pytest.mark.torch
def test_workers_of_a_loader_share_it(server: FaultServer, folder: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    urls = [server.put(f"/{number}.tar", shard(10 * number)) for number in range(4)]
    loader = wds.WebLoader(wds.WebDataset(urls, cache_dir=folder).to_tuple("__key__"), batch_size=None, num_workers=2)
    passes = [sorted(loader) for _ in range(2)]

    assert 12 == len(passes[0])
    assert passes[0] == passes[1]
    assert 4 == len(fetched(server)) == len(kept(folder))


def test_a_scheme_of_ones_own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str, int]] = []

    def opened(url: str, mode: str, bufsize: int) -> Any:
        asked.append((url, mode, bufsize))
        return io.BytesIO(shard(3))

    monkeypatch.setitem(wds.gopen_schemes, "mine", opened)

    assert ["0003", "0004", "0005"] == keys("mine://x/a.tar", folder) == keys("mine://x/a.tar", folder)
    assert [("mine://x/a.tar", "rb", 8192)] == asked
    assert [shard(3)] == [path.read_bytes() for path in kept(folder)]


def test_the_option_shard_cache_does_not_keep_it_twice(
    server: FaultServer, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TARVIZ_SHARD_CACHE", "10MB")
    monkeypatch.setenv("TARVIZ_CACHE_DIR", str(tmp_path / "engine"))
    keys(server.put("/a.tar", shard(0)), folder)

    assert 1 == len(kept(folder))
    assert not (tmp_path / "engine").exists()


class TestFileCache:
    def test_files_are_opened_by_turns(self, server: FaultServer, folder: Path) -> None:
        urls = [server.put("/a.tar", shard(0)), server.put("/b.tar", shard(1))]
        local = folder / "c.tar"
        local.write_bytes(shard(2))

        for number, found in enumerate(FileCache(folder)([*urls, {"url": str(local)}])):
            with found["stream"] as stream:
                assert shard(number) == stream.read()
            assert ["a.tar", "b.tar", "c.tar"][number] == os.path.basename(found["local_path"])

    def test_any_bytes_do_without_a_validator(self, server: FaultServer, folder: Path) -> None:
        path = FileCache(folder, validator=None).get_file(server.put("/a.txt", b"text"))

        assert b"text" == Path(path).read_bytes()


class TestNames:
    @each_case(
        ("url", "expected"),
        [
            ("https://h/a/b.tar?x=1", ["b.tar", "a/b.tar", "a/b.tar"]),
            ("/a/b/c.tar", ["c.tar", "b/c.tar", "a/b/c.tar"]),
            ("s3://bucket/c.tar", ["c.tar"] * 3),
            ("pipe:cat a b.tar", ["pipe%3Acat%20a%20b.tar"] * 3),
            ("pipe:" + "x" * 200, ["x" * 128] * 3),
        ],
    )
    def test_a_file_has_the_end_of_its_url(self, url: str, expected: list[str]) -> None:
        assert expected == [url_to_cache_name(url, folders) for folders in range(3)]

    def test_a_pipe_has_the_first_url_in_it(self) -> None:
        assert "s3://b/a" == pipe_cleaner("pipe:aws s3 cp s3://b/a https://h -")
        assert "pipe:cat a" == pipe_cleaner("pipe:cat a")
        assert "cat s3://b/a" == pipe_cleaner("cat s3://b/a")


class TestCleanup:
    @pytest.fixture
    def full(self, tmp_path: Path) -> Path:
        """Five files of 100 bytes in two folders, and a hidden one; names in the order of their use."""
        (tmp_path / "sub").mkdir()
        for name in ("sub/0", "1", "2", "3", "sub/4", ".hidden"):
            (tmp_path / name).write_bytes(bytes(100))
        return tmp_path

    def names(self, folder: Path) -> list[str]:
        return sorted(path.name for path in folder.rglob("*") if path.is_file())

    def cleanup(self, folder: Path, size: float, **options: Any) -> LRUCleanup:
        return LRUCleanup(folder, size, keyfn=lambda path: int(os.path.basename(path)), **options)

    def test_what_was_used_longest_ago_goes(self, full: Path) -> None:
        self.cleanup(full, 500).cleanup()
        assert 6 == len(self.names(full))
        self.cleanup(full, 299).cleanup()
        assert [".hidden", "3", "4"] == self.names(full)

    def test_the_file_at_work_stays(self, full: Path) -> None:
        self.cleanup(full, 250).cleanup(keep=str(full / "sub/0"))

        assert [".hidden", "0", "4"] == self.names(full)

    def test_it_looks_once_in_an_interval(self, full: Path) -> None:
        seldom, always = self.cleanup(full, 450, interval=1000), self.cleanup(full, 450, interval=None)
        counts = []
        for number, cleanup in enumerate((seldom, seldom, always, always), 5):
            cleanup.cleanup()
            counts.append(len(self.names(full)) - 1)
            (full / str(number)).write_bytes(bytes(100))

        assert [4, 5, 4, 4] == counts

    def test_no_folder_is_nothing_to_do(self, tmp_path: Path) -> None:
        for folder in (None, tmp_path / "none"):
            LRUCleanup(folder, 0).cleanup()

        assert [] == list(tmp_path.iterdir())


class TestOpened:
    def test_files_and_urls_are_opened_one_after_the_other(self, server: FaultServer, tmp_path: Path) -> None:
        (tmp_path / "a.tar").write_bytes(shard(0))
        url = server.put("/b.tar", shard(1))
        found = []
        for each in StreamingOpen()([str(tmp_path / "a.tar"), {"url": url}]):
            with each.pop("stream") as stream:
                found.append((each, stream.read()))

        place = {"url": str(tmp_path / "a.tar"), "local_path": str(tmp_path / "a.tar")}
        assert [(place, shard(0)), ({"url": url}, shard(1))] == found

    def test_a_missing_one_is_one_for_the_handler(self, tmp_path: Path) -> None:
        (tmp_path / "a.tar").write_bytes(shard(0))
        urls = [str(tmp_path / "none.tar"), str(tmp_path / "a.tar")]

        assert 1 == len([each["stream"].close() for each in StreamingOpen(handler=wds.ignore_and_continue)(urls)])
        assert [] == list(StreamingOpen(handler=wds.ignore_and_stop)(urls))
        with pytest.raises(NotFoundError):
            list(StreamingOpen()(urls))


def test_a_tar_is_told_by_its_head(tmp_path: Path) -> None:
    contents = {"plain": shard(0), "packed": gzip.compress(shard(0)), "text": b"x" * 600, "short": shard(0)[:511], "damaged": b"\x1f\x8bxx"}
    for name, data in contents.items():
        (tmp_path / name).write_bytes(data)

    assert ["plain", "packed"] == [name for name in contents if check_tar_format(str(tmp_path / name))]


def test_the_environment_says_where_and_how_much(
    server: FaultServer, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = server.put("/a.tar", shard(0))
    monkeypatch.setenv("WDS_CACHE", str(folder))
    monkeypatch.setenv("WDS_CACHE_SIZE", "0")
    assert 3 == len(list(wds.WebDataset(url)))
    assert [] == list(folder.iterdir())
    monkeypatch.setenv("WDS_CACHE_SIZE", "100000")
    assert 3 == len(list(wds.WebDataset(url)))
    assert 1 == len(kept(folder))
    with pytest.raises(UsageError, match="none for cached shards does not exist"):
        wds.WebDataset(url, cache_dir=tmp_path / "none")
    assert 3 == len(keys(url, tmp_path / "none", cache_size=0))
