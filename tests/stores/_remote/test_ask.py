"""Small questions to token services: answers as they are, no redirects, errors without secrets."""

from __future__ import annotations

import pytest

from tarviz.model.errors import StoreError
from tarviz.stores._remote.ask import ask, token
from tarviz.testing.faults import ALWAYS, Fault, FaultServer
from tests.servers.daemons import free_port
from tests.servers.local import token_server


@pytest.fixture
def server():
    with FaultServer() as found:
        yield found


def test_the_body_is_sent_and_the_answer_comes():
    with token_server(access_token="t") as (url, asked):
        assert {"access_token": "t"} == token("the service", url, method="POST", body=b"grant=x")

    assert [b"grant=x"] == asked


def test_secrets_follow_no_redirect(server):
    other = server.put("/other", b'{"access_token": "t"}')
    url = server.put("/t", b"", plan=[Fault(status=307, headers={"Location": other}, times=ALWAYS)])
    with pytest.raises(StoreError, match="the service was refused: 307"):
        token("the service", url)

    assert [] == [request for request in server.requests if request.path == "/other"]


def test_a_refusal_is_told_without_the_secrets_in_it(server):
    url = server.put("/t", b"", plan=[Fault(status=403, body=b"client_secret=planted-secret is wrong", times=ALWAYS)])
    with pytest.raises(StoreError, match="the service was refused: 403") as caught:
        token("the service", url)

    assert "E_AUTH" == caught.value.code
    assert "planted-secret" not in str(caught.value)


@pytest.mark.parametrize(("body", "words"), [(b"[1]", "cannot be read"), (b"<html>", "got no answer"), (b"", "got no answer")])
def test_an_answer_that_is_none_is_said(server, body, words):
    with pytest.raises(StoreError, match=words):
        token("the service", server.put("/t", body))


def test_nobody_there_is_an_os_error():
    with pytest.raises(OSError, match="refused"):
        ask(f"http://127.0.0.1:{free_port()}", near=True)


def test_a_service_of_this_machine_is_asked_without_a_proxy(server, monkeypatch):
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port()}")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)

    assert b"x" == ask(server.put("/t", b"x"), near=True)
