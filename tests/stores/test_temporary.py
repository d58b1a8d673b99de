"""Temporary files: held by their writer, taken away when it is gone."""

from __future__ import annotations

import os

import pytest

from tarviz.stores import _temporary
from tarviz.stores._temporary import make_temporary, remove_stale

pytest.importorskip("fcntl", reason="Windows has no such locks")


def test_a_file_stays_as_long_as_its_writer(tmp_path):
    fd, path = make_temporary(lambda: str(tmp_path / "a.tmp"), 0o600)
    remove_stale(path)
    assert ["a.tmp"] == os.listdir(tmp_path)
    os.close(fd)
    remove_stale(path)

    assert [] == os.listdir(tmp_path)


def test_one_that_is_taken_away_before_it_is_locked_is_made_again(tmp_path, monkeypatch):
    names = iter([str(tmp_path / "a.tmp"), str(tmp_path / "b.tmp")])
    lock, took = _temporary._lock, []

    def late(fd, *, wait):
        if not took:
            took.append(os.unlink(tmp_path / "a.tmp"))
        return lock(fd, wait=wait)

    monkeypatch.setattr(_temporary, "_lock", late)
    fd, path = make_temporary(lambda: next(names), 0o600)
    os.close(fd)

    assert (str(tmp_path / "b.tmp"), ["b.tmp"]) == (path, os.listdir(tmp_path))


def test_what_is_no_file_is_left_alone(tmp_path):
    (tmp_path / "link.tmp").symlink_to(tmp_path / "a")
    (tmp_path / "folder.tmp").mkdir()
    for name in ("link.tmp", "folder.tmp", "none.tmp"):
        remove_stale(str(tmp_path / name))

    assert ["folder.tmp", "link.tmp"] == sorted(os.listdir(tmp_path))
