"""Servers of files on this machine that other protocols than HTTP's object stores reach: SSH, WebDAV, FTP."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.servers.daemons import Daemon, free_port

_ASYNCSSH = """
import asyncio, sys, asyncssh
async def serve(port, keys, users):
    await asyncssh.listen("127.0.0.1", port, server_host_keys=[keys], authorized_client_keys=users, sftp_factory=True)
    await asyncio.Event().wait()
asyncio.run(serve(int(sys.argv[1]), sys.argv[2], sys.argv[3]))
"""


def _serving(argv: Sequence[str], port: int) -> Daemon:
    return Daemon(argv, f"tcp://127.0.0.1:{port}")


def keys(folder: Path) -> tuple[Path, Path, Path]:
    """A host's key, a user's key, and the file of users that are let in."""
    import asyncssh

    made = []
    for name in ("host", "user"):
        key = asyncssh.generate_private_key("ssh-ed25519")
        key.write_private_key(str(folder / name))
        os.chmod(folder / name, 0o600)
        made.append(key)
    (folder / "users").write_bytes(made[1].export_public_key())
    return folder / "host", folder / "user", folder / "users"


def sshd_command() -> str | None:
    """OpenSSH's server, or None."""
    return shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


@contextlib.contextmanager
def openssh(folder: Path) -> Iterator[tuple[int, Path]]:
    """The port of OpenSSH's sftp, and the key that it lets in."""
    host, user, users = keys(folder)
    port = free_port()
    lines = [f"Port {port}", "ListenAddress 127.0.0.1", f"HostKey {host}", f"AuthorizedKeysFile {users}", "StrictModes no", "UsePAM no"]
    lines += ["PasswordAuthentication no", "Subsystem sftp internal-sftp", f"PidFile {folder / 'pid'}", "MaxStartups 100"]
    (folder / "sshd_config").write_text("\n".join(lines) + "\n")
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # where it shuts its unprivileged half in
    with _serving([str(sshd_command()), "-D", "-e", "-f", str(folder / "sshd_config")], port):
        yield port, user


@contextlib.contextmanager
def asyncssh_server(folder: Path) -> Iterator[tuple[int, Path]]:
    """The port of asyncssh's sftp, and the key that it lets in."""
    host, user, users = keys(folder)
    port = free_port()
    with _serving([sys.executable, "-c", _ASYNCSSH, str(port), str(host), str(users)], port):
        yield port, user


@contextlib.contextmanager
def dav_server(folder: Path) -> Iterator[int]:
    """The port of a WebDAV server (wsgidav) over a folder."""
    port = free_port()
    argv = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "wsgidav.server.server_cli",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--root",
        str(folder),
    ]
    with _serving([*argv, "--auth", "anonymous", "--server", "cheroot", "-q"], port):
        yield port


@contextlib.contextmanager
def ftp_server(folder: Path) -> Iterator[int]:
    """The port of an FTP server (pyftpdlib) over a folder, where `me` writes with the password `secret`."""
    port = free_port()
    argv = [sys.executable, "-W", "ignore", "-m", "pyftpdlib", "-i", "127.0.0.1", "-p", str(port), "-d", str(folder), "-w"]
    with _serving([*argv, "-u", "me", "-P", "secret"], port):
        yield port
