"""The contract of stores on real servers of SSH, WebDAV and FTP, and object names of every kind on each."""

from __future__ import annotations

import importlib
import itertools
import json
import os
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from tarviz import stores
from tarviz.model.errors import MissingPackageError, StoreError, UsageError
from tarviz.model.types import URL
from tarviz.stores._fsspec import AnyStore
from tarviz.testing.stores import DATA, StoreTests
from tests.servers import files
from tests.stores.conftest import sftp_root

fsspec = pytest.importorskip("fsspec", reason="fsspec brings more schemes: pip install fsspec")

_SECONDS = itertools.count(1_700_000_000)
NAMES = [
    *(
        "plain.tar",
        "a b.tar",
        "a+b.tar",
        "50%.tar",
        "50%25.tar",
        "part#2.tar",
        "v?1.tar",
        "ü.tar",
        "日本.tar",
        "😀.tar",
        "a;b.tar",
        "a&b=c.tar",
    ),
    *("a'b.tar", "[a].tar", "(a).tar", "a,b.tar", "a@b.tar", "a~b.tar", "a$b.tar", "a!b.tar", "a^b.tar", "e\u0301.tar", "UP.tar", "-x.tar"),
]


class _Places(StoreTests):
    """Any of the servers: `root` is a URL there that files can be made under."""

    scheme = ""
    names = NAMES
    place = "/"  # the folder on this machine that is the server's root

    @pytest.fixture
    def store(self):
        return AnyStore()

    @pytest.fixture
    def folder(self, root):
        return URL(f"{root}/{uuid4()}")

    def put(self, store, url, data):
        """Each write is of a later second: these protocols tell a file's time in seconds, and nothing else of its version."""
        super().put(store, url, data)
        path = Path(f"{self.place}/{str(url).split('/', 3)[3]}")
        second = next(_SECONDS)
        os.utime(path, (second, second))

    def test_any_name_is_written_read_and_listed(self, store, folder):
        for name in self.names:
            self.put(store, stores.join(folder, name), name.encode())

        assert {name: name.encode() for name in self.names} == {
            str(stat.url).removeprefix(f"{folder}/"): store.read(stat.url, 0, 99) for stat in store.list(folder)
        }

    @pytest.mark.matrix
    def test_much_comes_as_it_was_written(self, store, folder):
        data = DATA * 40
        url = stores.join(folder, "large.tar")
        self.put(store, url, data)

        assert (data, data[-1000:]) == (self.drain(store, url, 1 << 20), store.read(url, len(data) - 1000, 2000))


class _Sftp(_Places):
    scheme = "sftp"

    @pytest.fixture
    def root(self, server, tmp_path, monkeypatch):
        return sftp_root(server, tmp_path, monkeypatch)

    def test_a_key_that_is_not_let_in_is_said(self, store, root, folder, tmp_path, monkeypatch):
        (tmp_path / "other").mkdir()
        other = files.keys(tmp_path / "other")[1]
        monkeypatch.setenv("TARVIZ_STORAGE_OPTIONS", json.dumps({"key_filename": str(other), "allow_agent": False, "look_for_keys": False}))

        with pytest.raises(StoreError, match="access is refused") as caught:
            store.stat(URL(f"{folder}/a.tar"))
        assert "E_AUTH" == caught.value.code


class TestOpenSsh(_Sftp):
    """OpenSSH's own server."""

    @pytest.fixture
    def server(self, openssh):
        return openssh


class TestAsyncSsh(_Sftp):
    """Another server of the same protocol, with its own notion of the details."""

    @pytest.fixture(scope="class")
    @classmethod
    def server(cls, tmp_path_factory):
        pytest.importorskip("paramiko", reason="sftp:// needs paramiko: pip install paramiko")
        pytest.importorskip("asyncssh", reason="asyncssh is a server of sftp: pip install asyncssh")
        with files.asyncssh_server(tmp_path_factory.mktemp("ssh")) as found:
            yield found


class TestWebDav(_Places):
    """wsgidav."""

    scheme = "webdav+http"
    names = [name for name in NAMES if set("%#?;").isdisjoint(name)]

    def test_a_name_that_the_library_would_misread_is_refused(self, store, folder):
        with pytest.raises(UsageError, match="cannot name a file"):
            store.create(URL(f"{folder}/part#2.tar"))

    @pytest.fixture
    def root(self, dav):
        type(self).place, url = dav
        return url


class TestFtp(_Places):
    """pyftpdlib."""

    scheme = "ftp"

    @pytest.fixture
    def root(self, ftp):
        type(self).place, url = ftp
        return url

    def test_user_and_password_may_be_escaped(self, store, root, folder):
        self.put(store, URL(f"{folder}/a.tar"), DATA)
        escaped = URL(f"{folder}/a.tar".replace("me:secret", "%6de:s%65cret"))

        assert DATA[:9] == store.read(escaped, 0, 9)

    @pytest.mark.matrix
    def test_a_wrong_password_is_said_without_it(self, store, root):
        with pytest.raises(StoreError, match="access is refused") as caught:
            store.stat(URL(f"{root.replace('secret', 'hunter2')}/a.tar"))

        assert "E_AUTH" == caught.value.code
        assert "hunter2" not in str(caught.value)


def test_a_package_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "paramiko", None)
    monkeypatch.delitem(sys.modules, "fsspec.implementations.sftp", raising=False)
    monkeypatch.delitem(importlib.import_module("fsspec.registry")._registry, "sftp", raising=False)

    with pytest.raises(MissingPackageError, match="paramiko"):
        AnyStore().stat(URL("sftp://127.0.0.1/a.tar"))
