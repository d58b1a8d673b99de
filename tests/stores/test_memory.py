"""The memory store keeps the contract of all stores."""

from uuid import uuid4

import pytest

from tarviz import stores
from tarviz.model.errors import NotFoundError
from tarviz.model.types import URL
from tarviz.stores import memory
from tarviz.testing.stores import StoreTests


class TestMemoryStore(StoreTests):
    @pytest.fixture
    def store(self):
        return memory.store()

    @pytest.fixture
    def folder(self):
        return URL(f"memory://{uuid4()}")

    def test_a_template_takes_the_names_as_they_are(self, folder):
        assert [f"{folder}/a-0.tar", f"{folder}/a-1.tar"] == stores.expand(f"{folder}/a-{{0..1}}.tar")

    def test_a_folder_is_its_shards(self, store, folder):
        for name in ("t-10.tar", "t-9.tar", "note.txt"):
            self.put(store, stores.join(folder, name), b"")

        assert [f"{folder}/t-9.tar", f"{folder}/t-10.tar"] == stores.expand(f"{folder}/")

    def test_what_is_missing_names_what_is_there(self, store, folder, monkeypatch):
        monkeypatch.setattr(memory, "_objects", {})
        with pytest.raises(NotFoundError, match="There are none yet"):
            store.stat(folder)
        for number in range(7):
            self.put(store, URL(f"memory://{number}"), b"")
        with pytest.raises(NotFoundError, match=r"There are: memory://0, memory://1, memory://2, memory://3, memory://4\.$"):
            store.delete(folder)
