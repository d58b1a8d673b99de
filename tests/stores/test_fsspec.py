"""Schemes that fsspec brings: its own filesystem for local files, under a scheme that no store of ours has."""

from __future__ import annotations

import subprocess
import sys

import pytest

fsspec = pytest.importorskip("fsspec", reason="fsspec brings more schemes: pip install fsspec")

from tarviz import stores  # noqa: E402
from tarviz.model.errors import ChangedError, NotFoundError, UsageError  # noqa: E402
from tarviz.model.types import URL  # noqa: E402
from tarviz.stores._fsspec import AnyStore  # noqa: E402
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

    def test_our_own_stores_need_no_fsspec(self):
        code = "from tarviz import stores; import sys; stores.of('s3://b/a'), stores.of('memory://x'); assert 'fsspec' not in sys.modules"

        assert 0 == subprocess.run([sys.executable, "-c", code], check=False).returncode
