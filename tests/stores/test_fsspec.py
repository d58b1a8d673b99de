"""Schemes that fsspec brings: its own filesystem for local files, under a scheme that no store of ours has."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

fsspec = pytest.importorskip("fsspec", reason="fsspec brings more schemes: pip install fsspec")

from tarviz import stores  # noqa: E402
from tarviz.model.errors import ChangedError, MissingPackageError, NotFoundError, StoreError, UsageError  # noqa: E402
from tarviz.model.types import URL  # noqa: E402
from tarviz.stores._fsspec import AnyStore, knows  # noqa: E402
from tarviz.stores.cached import CachedStore  # noqa: E402
from tarviz.testing.stores import DATA, StoreTests  # noqa: E402


class TestAnyStore(StoreTests):
    """The contract of all stores."""

    @pytest.fixture
    def store(self):
        return AnyStore()

    @pytest.fixture
    def folder(self, tmp_path):
        return URL(f"local://{tmp_path}")


class _Breaks:
    """A file that breaks after some bytes, now and then."""

    def __init__(self, file, after):
        self._file, self._left = file, after

    def read(self, count):
        if not self._left:
            raise OSError("the line went dead")
        data = self._file.read(min(count, self._left))
        self._left -= len(data)
        return data

    def __getattr__(self, name):
        return getattr(self._file, name)


@pytest.fixture
def broken(monkeypatch):
    """Every file gives 50 000 bytes and breaks."""
    local = fsspec.get_filesystem_class("local")
    usual = local.open
    monkeypatch.setattr(local, "open", lambda self, path, mode="rb", **options: _Breaks(usual(self, path, mode, **options), 50_000))


class TestFaults:
    def test_a_read_goes_on_where_it_broke(self, tmp_path, broken):
        (tmp_path / "a.tar").write_bytes(DATA)

        assert DATA == AnyStore().read(URL(f"local://{tmp_path}/a.tar"), 0, len(DATA))

    def test_another_version_is_not_read_on(self, tmp_path, broken):
        (tmp_path / "a.tar").write_bytes(DATA)
        with AnyStore().open(URL(f"local://{tmp_path}/a.tar")) as stream:
            stores.fill(stream, memoryview(bytearray(50_000)))
            (tmp_path / "a.tar").write_bytes(DATA[::-1])
            with pytest.raises(ChangedError, match="was replaced"):
                stores.fill(stream, memoryview(bytearray(50_000)))

    def test_what_is_missing_is_said(self, tmp_path, monkeypatch):
        with pytest.raises(NotFoundError):
            stores.of("local:///none/a.tar").stat(URL("local:///none/a.tar"))
        with pytest.raises(NotFoundError, match="is a folder"):
            AnyStore().stat(URL(f"local://{tmp_path}"))


class TestOf:
    def test_a_scheme_of_fsspec_has_a_store(self):
        assert AnyStore() == stores.of("local:///a.tar")
        with pytest.raises(UsageError, match="no store for nothing://"):
            stores.of("nothing://a.tar")

    def test_what_it_reads_is_kept_where_that_is_asked_for(self, monkeypatch, tmp_path):
        monkeypatch.setenv("TARVIZ_SHARD_CACHE", "1MB")
        monkeypatch.setenv("TARVIZ_CACHE_DIR", str(tmp_path))

        assert isinstance(stores.of("local:///a.tar"), CachedStore)

    def test_our_own_stores_need_no_fsspec(self):
        code = "from tarviz import stores; import sys; stores.of('s3://b/a'), stores.of('memory://x'); assert 'fsspec' not in sys.modules"

        assert 0 == subprocess.run([sys.executable, "-c", code], check=False).returncode


class TestListing:
    def test_a_walk_goes_into_folders_and_takes_what_begins_so(self, tmp_path):
        for name in ("t/a-1.tar", "t/a/x/2.tar", "t/b.tar", "a-0.tar"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(b"x" * len(name))
        base, store = f"local://{tmp_path}", AnyStore()

        assert [(f"{base}/t/a-1.tar", 9), (f"{base}/t/a/x/2.tar", 11)] == [(stat.url, stat.size) for stat in store.walk(URL(f"{base}/t/a"))]
        assert [f"{base}/t/a-1.tar", f"{base}/t/b.tar"] == [stat.url for stat in store.list(URL(f"{base}/t/"))]
        assert [f"{base}/t/a-1.tar", f"{base}/t/b.tar"] == stores.expand(f"{base}/t/*.tar")

    def test_what_is_there_now_counts_and_not_what_was_listed_before(self, tmp_path, monkeypatch):
        forgot, local = [], fsspec.get_filesystem_class("local")
        monkeypatch.setattr(local, "invalidate_cache", lambda self, path=None: forgot.append(path))
        (tmp_path / "a.tar").write_bytes(b"x")
        base, store, counts = f"local://{tmp_path}", AnyStore(), []
        for ask in (store.stat, lambda _: store.list(URL(f"{base}/")), store.walk):
            ask(URL(f"{base}/a.tar"))
            counts.append(len(forgot))

        assert [1, 2, 3] == counts

    def test_an_object_is_no_folder(self, tmp_path):
        (tmp_path / "a.tar").write_bytes(b"x")
        with pytest.raises(NotFoundError, match="no such object"):
            AnyStore().list(URL(f"local://{tmp_path}/a.tar"))


class TestWords:
    @pytest.fixture
    def info(self, monkeypatch):
        """What `info` of the filesystem raises, one after the other, before it answers."""
        local, left = fsspec.get_filesystem_class("local"), []
        usual = local.info

        def look(self, path, **options):
            if left:
                raise left.pop(0)
            return usual(self, path, **options)

        monkeypatch.setattr(local, "info", look)
        return left

    def test_what_fails_once_is_asked_again_over_another_connection(self, tmp_path, info):
        (tmp_path / "a.tar").write_bytes(b"abc")
        info.append(ValueError("odd"))
        kept = fsspec.filesystem("local")

        assert 3 == AnyStore().stat(URL(f"local://{tmp_path}/a.tar")).size
        assert kept is not fsspec.filesystem("local")

    @pytest.mark.parametrize(
        ("error", "kind", "said"),
        [
            (ValueError("odd\n words"), StoreError, "E_NETWORK.*the filesystem says: odd words"),
            (ValueError(), StoreError, "the filesystem says: ValueError"),
            (PermissionError("no"), StoreError, "E_AUTH.*access is refused: no.*TARVIZ_STORAGE_OPTIONS"),
            (ImportError("pip install x"), MissingPackageError, "local:// URLs need a package: pip install x"),
        ],
    )
    def test_any_error_of_a_library_is_one_of_ours(self, tmp_path, info, error, kind, said):
        (tmp_path / "a.tar").write_bytes(b"abc")
        info += [error, error]

        with pytest.raises(kind, match=said):
            AnyStore().stat(URL(f"local://{tmp_path}/a.tar"))
        assert len(info) == (0 if "filesystem" in said else 1)  # what is final is asked once

    def test_a_file_that_ends_early_is_read_on_and_given_up_in_the_end(self, tmp_path, monkeypatch):
        (tmp_path / "a.tar").write_bytes(DATA)
        local, most = fsspec.get_filesystem_class("local"), [50_000]
        usual = local.open
        monkeypatch.setattr(local, "open", lambda self, path, mode="rb", **options: _Ends(usual(self, path, mode, **options), most[0]))
        url = URL(f"local://{tmp_path}/a.tar")

        assert DATA == AnyStore().read(url, 0, len(DATA))
        most[0] = 0
        monkeypatch.setattr("tarviz.stores._fsspec._TIMEOUT", 0.3)
        with pytest.raises(StoreError, match=f"at byte 7 it ended {len(DATA) - 7} bytes early"):
            AnyStore().read(url, 7, 10)

    def test_without_fsspec_no_scheme_is_known(self, monkeypatch):
        assert knows("local")
        assert not knows("nothing")
        monkeypatch.setitem(sys.modules, "fsspec", None)
        assert not knows("local")


class _Ends(_Breaks):
    """A file that has no more than some bytes."""

    def read(self, count):
        return super().read(count) if self._left else b""


def test_a_child_goes_on_with_a_connection_of_its_own(tmp_path):
    (tmp_path / "a.tar").write_bytes(DATA)
    stream = AnyStore().open(URL(f"local://{tmp_path}/a.tar"))
    data = bytearray(len(DATA))
    stores.fill(stream, memoryview(data)[:1000])
    with stream._lock:  # as a thread of the parent that reads just then
        child = os.fork()
        if not child:
            os._exit(0 if stores.fill(stream, memoryview(data)[1000:]) == len(DATA) - 1000 and data == DATA else 1)

    assert 0 == os.waitpid(child, 0)[1]
    stores.fill(stream, memoryview(data)[1000:])
    assert DATA == data
