"""The contract of stores fails for a store that does not keep it."""

from __future__ import annotations

import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tarviz.model.errors import NotFoundError
from tarviz.model.types import URL
from tarviz.stores.base import Stat
from tarviz.stores.memory import MemoryStore
from tarviz.testing import strategies
from tarviz.testing.stores import StoreTests


def stored(name: str, change: Any) -> MemoryStore:
    """A store one of whose operations is changed."""
    return type("Odd", (MemoryStore,), {name: change})()


class _Nameless(MemoryStore):
    """Its missing objects have no name."""

    def delete(self, url: URL) -> None:
        try:
            super().delete(url)
        except NotFoundError:
            raise NotFoundError("there is none.") from None


def _listed(self: MemoryStore, url: URL) -> Any:
    return (replace(stat, size=7) for stat in MemoryStore.list(self, url))


def _versioned(self: MemoryStore, url: URL) -> Any:
    return (replace(stat, etag=f"{stat.etag} or so") for stat in MemoryStore.list(self, url))


@pytest.mark.parametrize(
    ("store", "test"),
    [
        (stored("walk", lambda self, url: reversed([*MemoryStore.walk(self, url)])), "test_a_walk_takes_what_begins_so_by_name"),
        (stored("walk", lambda self, url: iter([Stat(url)])), "test_a_walk_takes_what_begins_so_by_name"),
        (stored("list", _listed), "test_a_folder_lists_its_objects_by_name"),
        (stored("list", _versioned), "test_a_folder_lists_its_objects_by_name"),
        (_Nameless(), "test_delete_removes"),
    ],
)
def test_a_store_that_breaks_a_promise_is_found(store: MemoryStore, test: str, tmp_path: Path):
    _try(MemoryStore(), test, URL(f"memory://{tmp_path.name}/right"))
    with pytest.raises(AssertionError):
        _try(store, test, URL(f"memory://{tmp_path.name}/wrong"))


def test_a_store_that_gives_members_in_another_order_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    contract, test = StoreTests(), "test_tar_lists_and_unpacks_the_members_that_are_read"
    getattr(contract, test)(MemoryStore(), URL(f"memory://{tmp_path.name}"), tarfile.GNU_FORMAT)
    monkeypatch.setattr(StoreTests, "drain", lambda *_: strategies.shard([("train/0", {"jpg": b"", "seg.png": b""})]))

    with pytest.raises(AssertionError):
        getattr(contract, test)(MemoryStore(), URL(f"memory://{tmp_path.name}"), tarfile.GNU_FORMAT)


def _try(store: MemoryStore, test: str, folder: URL) -> None:
    contract, url = StoreTests(), URL(f"{folder}/a.tar")
    if test == "test_delete_removes":
        contract.put(store, url, b"x")
        contract.test_delete_removes(store, url)
    else:
        getattr(contract, test)(store, folder)
