"""The stand-alone page: token, host and origin checked, nothing loaded from elsewhere, media with ranges."""

from __future__ import annotations

import contextlib
import http.client
import re
import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tarviz.model.errors import UsageError
from tarviz.widgets.host import assets
from tarviz.widgets.host.page import ControllerPage
from tarviz.widgets.host.rpc import Controller, Media, pack, rpc, unpack


class Fake(Controller):
    script = "browse"
    closed = False

    @rpc
    def double(self, number):
        return {"number": number * 2}, [b"\0\1"]

    def first(self, session=""):
        return {"hello": session}, [b"picture"]

    def media(self, path):
        kinds = {"film": "video/mp4", "page": "text/html"}
        return Media(kinds[path], 1000, lambda offset, length: (bytes(range(250)) * 4)[offset : offset + length]) if path in kinds else None

    def remember(self, state, session=""):
        self.state = session, state

    def close(self):
        self.closed = True


@pytest.fixture
def page():
    with ControllerPage(Fake(), title="<b>shards & more</b>") as page:
        yield page.start()


def ask(page, path, *, method="GET", body=None, headers=None, cookie=True, host=None):
    connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=100)
    sent = {"Cookie": f"{page.cookie}={page.token}"} if cookie else {}
    sent |= {"Host": host} if host else {}
    with contextlib.closing(connection):
        connection.request(method, path, body, {**sent, **(headers or {})})
        response = connection.getresponse()
        return response, response.read()


def test_the_address_with_its_token_answers_and_sets_a_cookie(page):
    parts = urlsplit(page.url)
    response, data = ask(page, f"{parts.path}?{parts.query}", cookie=False)

    assert 200 == response.status
    assert "127.0.0.1" == parts.hostname
    assert "HttpOnly; SameSite=Strict" in response.headers["Set-Cookie"]
    assert b"&lt;b&gt;shards &amp; more&lt;/b&gt;" in data


@pytest.mark.parametrize("path", ["/", "/?token=wrong", "/state", "/widget.mjs", "/m/film"])
def test_without_the_token_nothing_is_told(page, path):
    response, data = ask(page, path, cookie=False)

    assert 403 == response.status
    assert page.token.encode() not in data
    assert "Set-Cookie" not in response.headers


@pytest.mark.parametrize(
    "line", ["GET http://[::1 HTTP/1.1", f"GET /{'9' * 5000}/ HTTP/1.1", f"POST /rpc HTTP/1.1\r\nContent-Length: {'9' * 5000}"]
)
def test_what_is_no_address_and_no_length_is_refused_without_a_line_in_the_log(page, line, caplog):
    head = f"{line}\r\nHost: 127.0.0.1:{page.port}\r\nOrigin: http://[::1\r\nConnection: close\r\n\r\n"
    with socket.create_connection(("127.0.0.1", page.port), timeout=100) as connection, connection.makefile("rwb") as file:
        file.write(head.encode())
        file.flush()

        assert file.read().startswith(b"HTTP/1.1 403 ")
    assert [] == caplog.records


def test_another_host_name_is_refused(page):
    assert 403 == ask(page, "/", host="evil.example")[0].status
    assert 200 == ask(page, "/", host=f"localhost:{page.port}")[0].status


def test_another_origin_is_refused(page):
    assert 403 == ask(page, "/state", headers={"Origin": "http://evil.example"})[0].status


@pytest.mark.parametrize("named", ["Host: evil.example", "Host: 127.0.0.1:{port}\r\nOrigin: http://evil.example"])
def test_who_is_refused_gets_no_answer_behind_the_refusal(page, named):
    head = f"GET / HTTP/1.1\r\n{named.format(port=page.port)}\r\nCookie: {page.cookie}={page.token}\r\nConnection: close\r\n\r\n"
    with socket.create_connection(("127.0.0.1", page.port), timeout=100) as connection, connection.makefile("rwb") as file:
        file.write(head.encode())
        file.flush()
        told = file.read()

    assert told.startswith(b"HTTP/1.1 403 ")
    assert 1 == told.count(b"HTTP/1.")
    assert b"shards &amp; more" not in told


def test_nothing_from_elsewhere_may_be_loaded(page):
    response, _ = ask(page, "/")
    policy = response.headers["Content-Security-Policy"]

    assert policy.startswith("default-src 'none'; script-src 'self'")
    assert "unsafe" not in policy
    assert "http" not in policy.replace("'self'", "")
    assert "nosniff" == response.headers["X-Content-Type-Options"]
    assert "no-referrer" == response.headers["Referrer-Policy"]


def test_no_other_page_may_show_or_read_it(page):
    for path in ("/", "/state", "/none"):
        response, _ = ask(page, path)

        assert "frame-ancestors 'none'" in response.headers["Content-Security-Policy"]
        assert "same-origin" == response.headers["Cross-Origin-Resource-Policy"]
        assert "same-origin" == response.headers["Cross-Origin-Opener-Policy"]


def test_the_module_is_whole_and_imports_nothing(page):
    response, data = ask(page, "/widget.mjs")

    assert response.headers["Content-Type"].startswith("text/javascript")
    assert not re.search(rb"^\s*import\s", data, re.MULTILINE)
    assert b"export default" in data
    assert b"innerHTML" not in data


@pytest.mark.parametrize("name", sorted(path.stem for path in Path(assets.__file__).parents[1].rglob("*.mjs")))
def test_our_javascript_never_writes_markup_and_loads_nothing(name):
    text = assets.read(f"{name}.mjs")

    assert text.startswith("// @ts-check\n")
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
        assert word not in text
    text = re.sub(r"/\*\*.*?\*/", "", text, flags=re.DOTALL)  # types of JSDoc are named by import("…")
    assert text.count("import(") == text.count("import(URL.createObjectURL(")  # a deck's modules, which it carries itself
    assert not re.search(r"(?<!xmlns=\")https?://", text)  # a namespace is a name


def test_requests_travel_as_frames(page):
    body = pack({"k": "tvz:req", "id": "1", "name": "double", "msg": {"number": 21}})
    response, data = ask(page, "/rpc", method="POST", body=body, headers={"X-Tarviz": "1"})

    assert 200 == response.status
    assert ({"k": "tvz:res", "id": "1", "r": {"number": 42}}, [b"\0\1"]) == unpack(data)


def test_requests_need_the_header_that_other_sites_cannot_send(page):
    assert 403 == ask(page, "/rpc", method="POST", body=pack({}))[0].status


def test_requests_need_the_cookie_too(page):
    response, data = ask(page, "/rpc?token=" + page.token, method="POST", body=b"no frame", headers={"X-Tarviz": "1"}, cookie=False)

    assert (403, True) == (response.status, b"token" in data)


def test_long_and_broken_requests_are_refused(page):
    assert 400 == ask(page, "/rpc", method="POST", body=b"no frame", headers={"X-Tarviz": "1"})[0].status
    assert 413 == ask(page, "/rpc", method="POST", body=b"", headers={"X-Tarviz": "1", "Content-Length": str(1 << 30)})[0].status
    assert 413 == ask(page, "/rpc", method="POST", body=b"", headers={"X-Tarviz": "1", "Content-Length": "9" * 5000})[0].status


def test_state_is_that_of_the_page_that_sent_it(page):
    ask(page, "/rpc", method="POST", body=pack({"k": "tvz:state", "session": "a", "state": {"px": 96}}), headers={"X-Tarviz": "1"})
    _, data = ask(page, "/state?session=b")

    assert ({"_first": {"hello": "b"}, "_state": {}}, [b"picture"]) == unpack(data)
    assert ("a", {"px": 96}) == page.controller.state


@pytest.mark.parametrize(
    ("wanted", "status", "content", "length"),
    [
        (None, 200, None, 1000),
        ("bytes=0-9", 206, "bytes 0-9/1000", 10),
        ("bytes=990-", 206, "bytes 990-999/1000", 10),
        ("bytes=-5", 206, "bytes 995-999/1000", 5),
        ("bytes=990-5000", 206, "bytes 990-999/1000", 10),
        ("bytes=1000-", 416, "bytes */1000", 0),
        ("bytes=0-1,5-6", 200, None, 1000),
        ("lines=1-2", 200, None, 1000),
    ],
)
def test_media_come_in_ranges(page, wanted, status, content, length):
    response, data = ask(page, "/m/film", headers={"Range": wanted} if wanted else {})

    assert status == response.status
    assert content == response.headers["Content-Range"]
    assert length == len(data)
    assert "bytes" == response.headers["Accept-Ranges"] or status == 416


def test_what_is_no_sound_and_no_film_is_only_saved(page):
    response, _ = ask(page, "/m/page")

    assert "application/octet-stream" == response.headers["Content-Type"]
    assert "attachment" == response.headers["Content-Disposition"]


def test_head_tells_the_length_and_sends_nothing(page):
    response, data = ask(page, "/m/film", method="HEAD")

    assert "1000" == response.headers["Content-Length"]
    assert b"" == data


def test_what_is_not_there_is_404(page):
    assert 404 == ask(page, "/m/other")[0].status
    assert 404 == ask(page, "/etc/passwd")[0].status
    assert 404 == ask(page, "/../../etc/passwd")[0].status


def test_a_page_ends_when_idle():
    page = ControllerPage(Fake(), idle_exit=0.2)
    page.serve()
    page.close()

    assert page.controller.closed


def test_a_port_in_use_is_said():
    from tarviz.model.errors import UsageError

    with ControllerPage(Fake()) as first:
        first.start()
        with pytest.raises(UsageError, match=str(first.port)):
            ControllerPage(Fake(), port=first.port)


def test_its_port_is_free_as_soon_as_it_is_closed():
    with ControllerPage(Fake()) as page:
        page.start()
        connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=100)
        for path in ("/state", "/page.mjs"):  # one connection serves both
            connection.request("GET", path, headers={"Cookie": f"{page.cookie}={page.token}"})
            connection.getresponse().read()
    assert b"" == connection.sock.recv(1), "a connection that a browser keeps is ended"
    with ControllerPage(Fake(), port=page.port) as again:
        assert page.port == again.port
    connection.close()


def test_a_cookie_that_is_none_is_refused(page):
    assert 403 == ask(page, "/", cookie=False, headers={"Cookie": "a/b=1"})[0].status


class Cut(Fake):
    def __init__(self, error):
        self.error = error

    def media(self, path):
        def read(offset, length):
            if offset and self.error is not None:
                raise self.error
            return bytes(0 if offset else 10)

        return Media("video/mp4", 1000, read)


@pytest.mark.parametrize(
    ("error", "logged"), [(None, 0), (RuntimeError("a wheel came off"), 1), (ConnectionResetError(), 0), (TimeoutError(), 0)]
)
def test_an_answer_that_is_cut_short_ends_the_connection_and_is_logged_unless_somebody_went_away(error, logged, caplog):
    with ControllerPage(Cut(error)) as page:
        page.start()
        with pytest.raises(http.client.IncompleteRead) as caught:
            ask(page, "/m/film")

    assert (10, logged) == (len(caught.value.partial), sum(line.message == "a request to the page failed" for line in caplog.records))


class Failing(Controller):
    script = "browse"

    def first(self, session=""):
        raise UsageError("json.klass cannot be read.", hint="Write json.label.")


class Broken(Failing):
    def first(self, session=""):
        raise RuntimeError("a wheel came off")


@pytest.mark.parametrize(
    ("controller", "said"),
    [(Failing(), "E_USAGE: json.klass cannot be read. Write json.label."), (Broken(), "E_INTERNAL: a wheel came off")],
)
def test_what_goes_wrong_is_a_sentence_for_the_page_and_a_line_in_the_log(controller, said, caplog):
    with ControllerPage(controller) as page:
        page.start()
        response, data = ask(page, "/state")

    assert (500, said) == (response.status, data.decode())
    assert said in caplog.text


class Opening(Fake):
    def beside(self, urls):
        return Named(urls)


class Named(Fake):
    def __init__(self, name):
        self.name = name

    def first(self, session=""):
        return {"hello": self.name}, []

    @rpc
    def double(self, number):
        return {"number": f"{self.name} {number}"}


class TestBeside:
    def test_other_shards_have_an_address_of_their_own(self):
        with ControllerPage(first := Opening()) as page:
            page.start()
            address = first.opener("b.tar")
            body = pack({"k": "tvz:req", "id": "1", "name": "double", "msg": {"number": 4}})
            _, data = ask(page, f"{address}rpc", method="POST", body=body, headers={"X-Tarviz": "1"})

            assert "/1/" == address
            assert {"number": "b.tar 4"} == unpack(data)[0]["r"]
            assert {"hello": "b.tar"} == unpack(ask(page, f"{address}state?session=x")[1])[0]["_first"]
            assert {"hello": "x"} == unpack(ask(page, "/state?session=x")[1])[0]["_first"]
            assert 200 == ask(page, address)[0].status
            assert 403 == ask(page, address, cookie=False)[0].status
            assert 404 == ask(page, "/2/")[0].status
        assert [True, True] == [controller.closed for controller in page.controllers]

    def test_a_page_that_is_open_to_the_network_opens_nothing(self):
        with ControllerPage(Opening(), host="0.0.0.0") as page:
            assert page.controller.opener is None
