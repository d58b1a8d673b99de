"""Replies to what a page asks for, without a server: every place, every range, every frame."""

from __future__ import annotations

import pytest

from tarviz.model.errors import NotFoundError, TarvizError
from tarviz.widgets.host import assets
from tarviz.widgets.host.replies import Reply, answer_get, answer_post
from tarviz.widgets.host.rpc import MAX_FRAME, Controller, Media, pack, rpc, unpack

BLOB = bytes(range(250)) * 4
FILM = {"Accept-Ranges": "bytes"}


class Fake(Controller):
    script = "browse"
    state: object = None

    @rpc
    def double(self, number):
        return {"number": number * 2}, [b"\0\1"]

    def first(self, session=""):
        return {"session": session}, [b"picture"]

    def media(self, path):
        if path == "gone":
            raise NotFoundError("the shard is gone.", shard="a.tar")
        kinds = {"film": "video/mp4", "sound": "audio/x-wav", "page": "text/html", "odd": "video/mp4; x=y"}
        return Media(kinds[path], 1000, lambda at, length: BLOB[at : at + min(length, 300)]) if path in kinds else None

    def remember(self, state, session=""):
        self.state = state, session


def asked(place, **options) -> Reply:
    return answer_get(Fake(), place, title="<b>a & b</b>", **options)


def body(reply: Reply) -> bytes:
    data = b"".join(map(bytes, reply.pieces))
    assert len(data) == reply.length
    return data


@pytest.mark.parametrize(
    ("place", "mime"),
    [
        ("", "text/html; charset=utf-8"),
        ("page.mjs", "text/javascript; charset=utf-8"),
        ("host.mjs", "text/javascript; charset=utf-8"),
        ("widget.mjs", "text/javascript; charset=utf-8"),
        ("widget.css", "text/css; charset=utf-8"),
        ("state", "application/octet-stream"),
    ],
)
def test_a_page_and_its_parts(place, mime):
    reply = asked(place)

    assert (200, mime, {}) == (reply.status, reply.mime, dict(reply.headers))
    assert body(reply)


def test_the_scripts_are_those_of_the_controller():
    assert assets.module("browse").encode() == body(asked("widget.mjs"))
    assert assets.style("browse").encode() == body(asked("widget.css"))
    assert assets.read("host.mjs").encode() == body(asked("host.mjs"))
    assert b"<title>&lt;b&gt;a &amp; b&lt;/b&gt;</title>" in body(asked(""))


def test_the_first_picture_is_that_of_the_page_that_asks():
    assert ({"_first": {"session": "s" * 64}, "_state": {}}, [b"picture"]) == unpack(body(asked("state", session="s" * 70)))


@pytest.mark.parametrize("place", ["other", "m", "page.mjs/", "State"])
def test_nothing_else_is_there(place):
    reply = asked(place)

    assert (404, "text/plain; charset=utf-8", b"There is nothing here.") == (reply.status, reply.mime, body(reply))


@pytest.mark.parametrize(
    ("span", "status", "begin", "end", "told"),
    [
        ("", 200, 0, 1000, None),
        ("bytes=-", 200, 0, 1000, None),
        ("pages=1-2", 200, 0, 1000, None),
        ("bytes=0-0", 206, 0, 1, "bytes 0-0/1000"),
        (" bytes=10-19 ", 206, 10, 20, "bytes 10-19/1000"),
        ("bytes=998-999", 206, 998, 1000, "bytes 998-999/1000"),
        ("bytes=998-1000", 206, 998, 1000, "bytes 998-999/1000"),
        ("bytes=900-", 206, 900, 1000, "bytes 900-999/1000"),
        ("bytes=-1", 206, 999, 1000, "bytes 999-999/1000"),
        ("bytes=-5000", 206, 0, 1000, "bytes 0-999/1000"),
        ("bytes=1000-", 416, 0, 0, "bytes */1000"),
        ("bytes=5-4", 416, 0, 0, "bytes */1000"),
        ("bytes=-0", 416, 0, 0, "bytes */1000"),
    ],
)
def test_a_payload_comes_whole_or_as_the_one_range_that_was_asked_for(span, status, begin, end, told):
    reply = asked("m/film", span=span)

    assert (status, BLOB[begin:end]) == (reply.status, body(reply))
    assert told == reply.headers.get("Content-Range")


@pytest.mark.parametrize(
    ("place", "mime", "headers"),
    [
        ("m/film", "video/mp4", FILM),
        ("m/sound", "audio/x-wav", FILM),
        ("m/page", "application/octet-stream", FILM | {"Content-Disposition": "attachment"}),
        ("m/odd", "application/octet-stream", FILM | {"Content-Disposition": "attachment"}),
    ],
)
def test_what_is_no_sound_and_no_film_is_only_saved(place, mime, headers):
    assert (mime, headers) == (asked(place).mime, dict(asked(place).headers))


@pytest.mark.parametrize(("place", "said"), [("m/other", "There is no such field."), ("m/gone", "E_NOT_FOUND a.tar: the shard is gone.")])
def test_a_payload_that_is_not_there_is_404(place, said):
    assert (404, said) == (asked(place).status, body(asked(place)).decode())


def test_a_shard_that_shrank_ends_the_payload_early():
    class Shrunk(Fake):
        def media(self, path):
            return Media("video/mp4", 1000, lambda at, length: BLOB[at : min(at + length, 600)])

    reply = answer_get(Shrunk(), "m/film", title="")

    assert (1000, BLOB[:600]) == (reply.length, b"".join(map(bytes, reply.pieces)))


@pytest.mark.parametrize(
    ("error", "said", "traced"),
    [
        (TarvizError("It went wrong.", code="E_READ"), "E_READ: It went wrong.", False),
        (TarvizError("It went wrong.", hint="Try again.", code="E_READ"), "E_READ: It went wrong. Try again.", False),
        (RuntimeError("a wheel came off"), "E_INTERNAL: a wheel came off", True),
    ],
)
def test_what_goes_wrong_is_said_and_logged_with_its_trace_where_nobody_foresaw_it(error, said, traced, caplog):
    class Failing(Fake):
        def first(self, session=""):
            raise error

    reply = answer_get(Failing(), "state", title="")

    assert (500, said) == (reply.status, body(reply).decode())
    assert [(said, traced)] == [(line.getMessage(), bool(line.exc_info)) for line in caplog.records if line.levelname == "ERROR"]


def test_a_request_is_answered_with_its_buffers():
    frame = pack({"k": "tvz:req", "id": "7", "name": "double", "msg": {"number": 21}})

    reply = answer_post(Fake(), frame)

    assert (200, "application/octet-stream") == (reply.status, reply.mime)
    assert ({"k": "tvz:res", "id": "7", "r": {"number": 42}}, [b"\0\1"]) == unpack(body(reply))


def test_a_state_is_remembered_for_its_page_and_nothing_that_only_looks_like_one():
    fake = Fake()
    frame = pack({"k": "tvz:state", "state": {"px": 96}, "session": "one"})

    assert ({"k": "tvz:ok"}, []) == unpack(body(answer_post(fake, frame)))
    assert ({"px": 96}, "one") == fake.state
    for other in ({"k": "tvz:state", "state": "none"}, {"k": "tvz:req", "state": {"px": 160}}):
        assert "err" in unpack(body(answer_post(fake, pack(other))))[0]
    assert ({"px": 96}, "one") == fake.state


def test_what_is_too_long_or_no_frame_is_refused():
    assert (400, 413) == (answer_post(Fake(), b"\0" * MAX_FRAME).status, answer_post(Fake(), b"\0" * (MAX_FRAME + 1)).status)
    assert b"Too long." == body(answer_post(Fake(), b"\0" * (MAX_FRAME + 1)))
    assert body(answer_post(Fake(), b"")).startswith(b"This is not a request frame (")
