"""Requests reach allowed methods only; every answer is data, errors included; frames survive the way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarviz.model.errors import DataError, UsageError
from tarviz.widgets.host.rpc import Controller, answer, pack, rpc, unpack


class Echo(Controller):
    @rpc
    def echo(self, value=None):
        return {"value": value}, [b"buffer"]

    @rpc
    def fail(self, kind):
        raise {"ours": DataError("bad bytes", hint="read on"), "theirs": ValueError("https://host/a?token=abc")}[kind]

    def private(self):
        raise AssertionError("never called")


def test_an_answer_carries_id_result_and_buffers():
    message, buffers = answer(Echo(), {"k": "tvz:req", "id": "7", "name": "echo", "msg": {"value": [1]}})

    assert {"k": "tvz:res", "id": "7", "r": {"value": [1]}} == message
    assert [b"buffer"] == buffers


@pytest.mark.parametrize("name", ["private", "close", "__init__", "first", "nothing", "", None, 3, "echo.__class__", ["echo"]])
def test_only_marked_methods_may_be_called(name):
    message, buffers = answer(Echo(), {"id": 1, "name": name})

    assert "UsageError" == message["err"]["type"]
    assert [] == buffers


def test_errors_are_data_with_a_hint_and_without_secrets():
    ours = answer(Echo(), {"name": "fail", "msg": {"kind": "ours"}})[0]["err"]
    theirs = answer(Echo(), {"name": "fail", "msg": {"kind": "theirs"}})[0]["err"]

    assert {"type": "DataError", "msg": "bad bytes", "hint": "read on", "code": "E_CORRUPT"} == ours
    assert "abc" not in theirs["msg"]


@pytest.mark.parametrize("message", [[], "text", 3])
def test_a_message_that_is_no_object_is_refused(message):
    found = answer(Echo(), {"name": "echo", "msg": message or [1]})[0]

    assert "err" in found


def test_unknown_arguments_are_an_error_of_the_request():
    assert "TypeError" == answer(Echo(), {"name": "echo", "msg": {"other": 1}})[0]["err"]["type"]


@given(st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.text()), st.lists(st.binary(max_size=50), max_size=5))
def test_frames_round_trip(message, buffers):
    assert (message, buffers) == unpack(pack(message, buffers))


@given(st.binary(max_size=60))
def test_any_other_bytes_are_refused(frame):
    try:
        unpack(frame)
    except UsageError:
        return
    assert frame == pack(*unpack(frame)) or len(frame) > 8


def test_what_no_page_can_read_is_not_sent():
    with pytest.raises(ValueError, match="JSON"):
        pack({"a": float("nan")})


def test_a_frame_that_holds_no_object_is_refused():
    with pytest.raises(UsageError, match=r"not a request frame \(no object\)"):
        unpack(pack([1]))


def test_a_frame_that_is_cut_anywhere_is_refused():
    frame = pack({"id": 1, "name": "echo"}, [b"abc", b"", b"de"])

    assert ({"id": 1, "name": "echo"}, [b"abc", b"", b"de"]) == unpack(frame)
    for length in range(len(frame)):
        with pytest.raises(UsageError, match="not a request frame"):
            unpack(frame[:length])
