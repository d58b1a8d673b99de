"""The server that fails as it is told, servers of other protocols, and the clock that nobody waits for."""

from __future__ import annotations

import getpass
import json
from uuid import uuid4

import pytest

from tarviz.model.types import URL
from tarviz.stores.s3 import S3Store
from tarviz.testing.faults import FaultServer
from tests.servers import files
from tests.servers.clock import FakeClock
from tests.servers.swift import Swift, is_installed


@pytest.fixture
def server():
    with FaultServer() as server:
        yield server


@pytest.fixture
def clock():
    return FakeClock()


def s3_bucket(monkeypatch, address, keys):
    """A new bucket of the server there, which the settings of the environment name from now on."""
    for name, value in zip(("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), (address, *keys), strict=True):
        monkeypatch.setenv(name, value)
    bucket = f"test-{uuid4()}"
    S3Store().wire.send("PUT", URL(f"s3://{bucket}/"), {}, 30.0).close()
    return bucket


@pytest.fixture(scope="module")
def swift():
    if not is_installed():
        pytest.skip("swift is not installed: make oracles, or pip install swift pyeclib")
    with Swift() as swift:
        yield swift


@pytest.fixture(scope="module")
def openssh(tmp_path_factory):
    """Port and user's key of OpenSSH's own server."""
    pytest.importorskip("paramiko", reason="sftp:// needs paramiko: pip install paramiko")
    pytest.importorskip("asyncssh", reason="asyncssh makes the keys: pip install asyncssh")
    if files.sshd_command() is None:
        pytest.skip("sshd is not installed: make oracles, or apt-get install openssh-server")
    with files.openssh(tmp_path_factory.mktemp("ssh")) as found:
        yield found


def sftp_root(server, folder, monkeypatch):
    """The URL of a folder of this machine over such a server."""
    port, key = server
    monkeypatch.setenv("TARVIZ_STORAGE_OPTIONS", json.dumps({"key_filename": str(key), "allow_agent": False}))
    return f"sftp://{getpass.getuser()}@127.0.0.1:{port}{folder}"


@pytest.fixture(scope="module")
def dav(tmp_path_factory):
    """A folder of this machine, and its URL over wsgidav."""
    fsspec = pytest.importorskip("fsspec", reason="fsspec brings more schemes: pip install fsspec")
    pytest.importorskip("webdav4", reason="webdav:// needs webdav4: pip install 'webdav4[fsspec]'")
    pytest.importorskip("wsgidav", reason="wsgidav is a server of WebDAV: pip install wsgidav cheroot")
    folder = tmp_path_factory.mktemp("dav")
    with files.dav_server(folder) as port:
        yield folder, f"webdav+http://127.0.0.1:{port}"
        kept = fsspec.get_filesystem_class("webdav")._cache  # a client for each thread; the server waits for them
        for each in kept.values():
            each.client.http.close()
        kept.clear()


@pytest.fixture(scope="module")
def ftp(tmp_path_factory):
    """A folder of this machine, and its URL over pyftpdlib."""
    pytest.importorskip("fsspec", reason="fsspec brings more schemes: pip install fsspec")
    pytest.importorskip("pyftpdlib", reason="pyftpdlib is a server of FTP: pip install pyftpdlib")
    folder = tmp_path_factory.mktemp("ftp")
    with files.ftp_server(folder) as port:
        yield folder, f"ftp://me:secret@127.0.0.1:{port}"
