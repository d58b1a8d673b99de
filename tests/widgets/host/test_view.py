"""The widget in a notebook: requests over a comm, its static form, what Python may observe, and what is missing."""

from __future__ import annotations

import base64
import json
import sys
import threading
import time

import pytest

pytest.importorskip("anywidget", reason="anywidget is in the extra `lab`")

import tarviz
from tarviz.model.errors import MissingPackageError
from tarviz.widgets.browse.rows import row_id
from tarviz.widgets.host.rpc import STANDS_FOR, VIEW, Controller, rpc
from tarviz.widgets.host.view import View


@pytest.fixture
def view(shards):
    view = tarviz.browse(shards, cache=False)
    view.sent = []
    view.send = lambda content, buffers=None: view.sent.append((content, buffers))
    view.controller.wait(60, 60)
    yield view
    view.close()


def answered(view, count=1, seconds=60.0):
    until = time.monotonic() + seconds
    while len(view.sent) < count and time.monotonic() < until:
        time.sleep(0.01)
    return view.sent


def test_a_request_is_answered_from_a_thread_of_its_own(view):
    view._on_request(view, {"k": "tvz:req", "id": "a", "name": "record", "msg": {"row": row_id(1, 1)}}, [])
    message, buffers = answered(view)[0]

    assert ("tvz:res", "a", "set/n000021") == (message["k"], message["id"], message["r"]["key"])
    assert buffers[0].startswith(b"\x89PNG")
    json.dumps(message, allow_nan=False)


def test_a_request_that_waits_for_its_turn_can_be_cancelled(view, monkeypatch):
    begun, free = threading.Semaphore(0), threading.Event()
    monkeypatch.setattr(view.controller.session, "poll", lambda: begun.release() or free.wait(60))
    for one in ("a", "b", "c", "d", "e", "f"):  # four are answered at once
        view._on_request(view, {"k": "tvz:req", "id": one, "name": "poll"}, [])
    assert all(begun.acquire(timeout=60) for _ in range(4))
    for one in ("a", "e", "unknown"):
        view._on_request(view, {"k": "tvz:cancel", "id": one}, [])
    free.set()

    assert ["a", "b", "c", "d", "f"] == sorted(message["id"] for message, _ in answered(view, 5))
    assert 5 == len(answered(view, 6, seconds=0.1))


def test_what_waits_when_it_is_closed_is_not_answered(view, monkeypatch):
    begun, free = threading.Semaphore(0), threading.Event()
    monkeypatch.setattr(view.controller.session, "poll", lambda: begun.release() or free.wait(20))
    for one in "abcdef":
        view._on_request(view, {"k": "tvz:req", "id": one, "name": "poll"}, [])
    assert all(begun.acquire(timeout=20) for _ in range(4))
    view.close()
    free.set()
    view._threads.shutdown()

    assert ["a", "b", "c", "d"] == sorted(message["id"] for message, _ in view.sent)


@pytest.mark.parametrize("content", [None, "text", {}, {"k": "other"}, {"k": "tvz:state", "state": "none"}])
def test_messages_of_others_are_left_alone(view, content):
    view._on_request(view, content, [])

    assert [] == answered(view, seconds=0.1)


def test_what_is_marked_can_be_observed(view):
    heard = []
    view.observe(lambda change: heard.append([ref.key for ref in change["new"]]), names=["marked"])
    view._on_request(view, {"k": "tvz:state", "state": {"selected": 3, "px": 96}}, [])
    view.controller.session.mark([1, 0])

    assert ["set/n000000", "set/n000001"] == heard[-1]
    assert "set/n000003" == view.selected.key
    assert 96 == view._state["px"]
    assert "px=96" in view.spec
    assert 60 == len(list(view.records()))


def test_what_shows_is_written_and_put_on_a_map(view, tmp_path):
    assert ("json.w", "json.meta.n") == view.map("json.w", "json.meta.n").axes
    assert 60 == view.export(tmp_path / "keys.txt") == len((tmp_path / "keys.txt").read_text().splitlines())


def test_it_carries_its_picture_and_a_useful_text(view):
    bundle, _ = view._repr_mimebundle_()

    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert base64.b64decode(bundle["image/png"]).startswith(b"\x89PNG")
    assert len(base64.b64decode(bundle["image/png"])) <= 150_000
    assert "60 records" in bundle["text/plain"]
    assert repr(view) == bundle["text/plain"]


@pytest.fixture
def shell():
    from IPython.core.interactiveshell import InteractiveShell

    yield InteractiveShell.instance()
    InteractiveShell.clear_instance()


def displayed(view):
    from IPython.utils.capture import capture_output

    with capture_output() as captured:
        view._ipython_display_()
    return [(sorted(output.data), output.metadata or {}) for output in captured.outputs]


def test_its_picture_is_an_output_of_its_own_for_when_its_kernel_is_gone(view, shell):
    still, widget, style = displayed(view)

    assert ["image/png", "text/plain"] == still[0]
    assert [VIEW, "text/plain"] == widget[0]
    assert (["text/html"], still[1]) == style
    assert view.model_id == still[1][STANDS_FOR]


def test_its_picture_is_renewed_where_it_stands(view, shell):
    from IPython.utils.capture import capture_output

    with capture_output() as captured:
        view._ipython_display_()
        view.renew()

    assert captured.outputs[0].data == captured.outputs[-1].data


def test_where_no_style_reaches_the_widget_there_is_one_output(view, shell):
    shell.user_ns["__vsc_ipynb_file__"] = "n.ipynb"

    assert [["image/png", "text/plain", VIEW]] == [sorted(data, key=len) for data, _ in displayed(view)]


class Asked(Controller):
    """A controller that is likely asked for texts of some lengths, each with a buffer, and for what cannot be answered."""

    script = "bench"

    def still(self, budget):
        return {"budget": budget}, [b"12345"]

    def likely(self):
        yield "say", None
        for length in (3, 5000, 7):
            yield "say", {"length": length}
        yield "none", {}

    @rpc
    def say(self, length=1):
        return "x" * length, [b"12"]


def test_what_a_reader_will_ask_is_answered_beforehand_as_far_as_it_has_room():
    view = View(Asked())
    answers = [["say", message, "x" * length, [b"12"]] for message, length in ((None, 1), ({"length": 3}, 3), ({"length": 7}, 7))]
    each = [len(json.dumps({"k": "tvz:res", "id": None, "r": text})) + 2 for _, _, text, _ in answers]
    used = 5 + sum(each)

    assert (used, answers) == (view.to_static(used), view._answers)
    assert ({"budget": used // 2}, [b"12345"]) == (view._first, view._pictures)
    assert (used - each[2], answers[:2]) == (view.to_static(used - 1), view._answers)
    view.close()


def test_all_views_that_are_open_are_made_ready_at_once():
    views = [View(Asked()), View(Asked())]
    views[1].close()
    View.all_to_static(1 << 20)

    assert [4, 0] == [len(view._answers) for view in views]
    views[0].close()


def test_what_its_reader_chose_is_saved_with_the_notebook(view):
    view._on_request(view, {"k": "tvz:state", "state": {"px": 96}}, [])

    assert {"px": 96} == view.get_state()["_state"]


def test_the_saved_state_holds_small_pictures_only(view):
    assert 24 == len(view._first["rows"]["rows"])
    assert sum(map(len, view._pictures)) < 200_000


def test_without_anywidget_the_remedy_is_said(monkeypatch, shards):
    for name in [name for name in sys.modules if name.startswith(("anywidget", "tarviz.widgets.host.view", "tarviz.widgets.browse.view"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "anywidget", None)

    with pytest.raises(MissingPackageError, match=r"tarviz\[lab\]"):
        tarviz.browse(shards)
