"""Storage options: which are in force for a URL."""

from __future__ import annotations

import pytest

from tarviz.commands.config import config
from tarviz.model.errors import UsageError
from tarviz.model.types import URL
from tarviz.stores._storage_options import storage_options, taken


def test_the_longest_beginning_of_a_url_wins(monkeypatch):
    monkeypatch.setenv("TARVIZ_STORAGE_OPTIONS", '{"a": 1, "b": 1, "s3://x/": {"a": 2}, "s3://x/y": {"a": 3}}')

    assert {"a": 1, "b": 1} == storage_options(URL("s3://z/y"))
    assert {"a": 2, "b": 1} == storage_options(URL("s3://x/z"))
    assert {"a": 3, "b": 1} == storage_options(URL("s3://x/y.tar"))


def test_a_store_names_what_it_does_not_take(monkeypatch):
    monkeypatch.setenv("TARVIZ_STORAGE_OPTIONS", '{"requester_pay": true}')

    with pytest.raises(UsageError, match=r"no storage option 'requester_pay'.*There are: requester_pays"):
        taken(URL("s3://x/y"), "requester_pays")


def test_they_are_not_shown(monkeypatch):
    monkeypatch.setenv("TARVIZ_STORAGE_OPTIONS", '{"password": "planted-secret"}')

    assert "planted" not in str(config()) + str(config().to_dict())
