"""How a URL becomes a request, and credentials that are kept until shortly before they end."""

from __future__ import annotations

import threading

import pytest

from tarviz.model.types import URL
from tarviz.stores._remote import access
from tarviz.stores._remote.access import Access, Bearer, CredentialCache
from tests.conftest import each_case


def test_a_token_is_not_shown():
    assert "secret" not in repr(Bearer("secret", 1.0, {"Authorization": "Bearer secret"}))


class TestPlain:
    def test_a_url_is_its_own_address_and_nothing_is_added(self):
        plain = Access()

        assert "https://host/a.tar?sig=x" == plain.address(URL("https://host/a.tar?sig=x"), {})
        assert {} == plain.headers("GET", "https://host/a.tar", {"Range": "bytes=0-1"}, b"")
        assert not plain.renew(URL("https://host/a.tar"), 401, {}, "")

    def test_what_proves_who_asks_goes_to_no_other_origin(self):
        assert Access().follows("https://host", "https://host")
        for other in ("http://host", "https://host:444", "https://other"):
            assert not Access().follows("https://host", other)

    @each_case(("status", "hint"), [(404, "Check the URL"), (410, "Check the URL"), (403, "Sign the URL again"), (401, "set credentials")])
    def test_a_refusal_has_a_next_step(self, status, hint):
        assert hint in Access().hint(status)


class TestKept:
    def test_it_is_looked_for_again_when_the_environment_changes(self, monkeypatch):
        found = []
        kept = CredentialCache(lambda: found.append(1) or Bearer("t", 4e9), ["AWS_PROFILE"])

        assert kept() is kept()
        assert 1 == len(found)
        monkeypatch.setenv("AWS_PROFILE", "other")
        kept()
        assert 2 == len(found)
        assert (True, 2) == (kept.forget(), len(found))
        kept()
        assert 3 == len(found)

    @pytest.mark.parametrize(
        ("expires", "later", "again"),
        [
            (1000.0, 879, False),
            (1000.0, 881, True),
            (None, 59, False),
            (None, 61, True),
            (50_000.0, 3599, False),
            (50_000.0, 3601, True),
            (10.0, 2, True),
        ],
    )
    def test_it_is_looked_for_again_two_minutes_before_it_ends_and_once_an_hour(self, monkeypatch, expires, later, again):
        now = [5_000_000.0]
        monkeypatch.setattr(access.time, "time", lambda: now[0])
        found = []
        end = None if expires is None else now[0] + expires
        kept = CredentialCache(lambda: found.append(1) or (None if end is None else Bearer("t", end)), [])
        kept()
        now[0] += later
        kept()

        assert (2 if again else 1) == len(found)

    def test_threads_that_come_at_once_look_once(self):
        found, ready = [], threading.Barrier(8)
        kept = CredentialCache(lambda: found.append(1) or Bearer("t", 4e9), [])
        threads = [threading.Thread(target=lambda: (ready.wait(), kept())) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert [1] == found

    def test_there_is_nothing_to_forget_where_none_was_found(self):
        kept = CredentialCache(lambda: None, [])
        kept()

        assert not kept.forget()
