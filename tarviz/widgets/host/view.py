"""The thin anywidget that any controller is shown by. Imported only where a notebook is; needs the extra `lab`."""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ClassVar
from weakref import WeakSet, WeakValueDictionary

try:
    import anywidget
    import traitlets
except ImportError as error:
    from tarviz.model.errors import MissingPackageError

    raise MissingPackageError.of("anywidget", "A widget in a notebook", "lab") from error

from tarviz.widgets.host import assets
from tarviz.widgets.host.contact_sheet import bundle
from tarviz.widgets.host.rpc import STANDS_FOR, VIEW, Controller, answer, session_of

log = logging.getLogger(__name__)
_CHILD, _STILL = ".jp-OutputArea-child", ".tarviz-still"
_STYLE = f"""<style class="{_STILL[1:]}">
{_CHILD}:has({_STILL}),
{_CHILD}:has(+ {_CHILD} .tvz):has(+ {_CHILD} + {_CHILD} {_STILL}),
{_CHILD}:has(+ {_CHILD} {_STILL}):has(> .jupyter-widgets):not(:has(.tvz)) {{ display: none; }}
</style>"""


class View(anywidget.AnyWidget):  # type: ignore[misc]
    """A controller in a notebook: forwards its requests, carries its first picture and its static form.

    `_first` and `_pictures` are the first picture, `_state` what the reader chose, `_answers` what `to_static` answered
    beforehand: all of them are saved with the notebook. Requests are answered on threads of the view's own, so that a
    slow one blocks neither the kernel nor the next one.
    """

    _first = traitlets.Dict().tag(sync=True)
    _pictures = traitlets.List().tag(sync=True)
    _state = traitlets.Dict().tag(sync=True)
    _answers = traitlets.List().tag(sync=True)

    _alive: ClassVar[WeakSet[View]] = WeakSet()

    def __init__(self, controller: Controller, **traits: Any) -> None:
        self.controller = controller
        self._esm = assets.module(controller.script)
        self._css = assets.style(controller.script)
        first, pictures = controller.first()
        self._threads = ThreadPoolExecutor(4, thread_name_prefix="tarviz-view")
        self._asked: WeakValueDictionary[str, Future[None]] = WeakValueDictionary()
        self._sending = threading.Lock()
        self._shown: Any = None  # the output that is saved with the notebook
        super().__init__(_first=first, _pictures=[bytes(picture) for picture in pictures], **traits)
        self.on_msg(self._on_request)
        self._alive.add(self)

    @classmethod
    def all_to_static(cls, budget: int) -> None:
        """`to_static` on every view of this kernel that was not closed."""
        for view in list(cls._alive):
            view.to_static(budget)

    def to_static(self, budget: int) -> int:
        """Make ready for a page without a kernel: bring the first picture up to date, and answer beforehand what a reader is likely to
        ask, as far as `budget` bytes go. Returns the bytes used."""
        first, pictures = self.controller.still(budget // 2)
        used, answers = sum(len(picture) for picture in pictures), []
        for name, message in self.controller.likely():
            reply, buffers = answer(self.controller, {"name": name, "msg": message or {}})
            size = sum(memoryview(buffer).nbytes for buffer in buffers) + len(json.dumps(reply))
            if "err" in reply or used + size > budget:
                continue
            used += size
            answers.append([name, message, reply["r"], [bytes(buffer) for buffer in buffers]])
        with self.hold_sync():
            self._first, self._pictures, self._answers = first, [bytes(picture) for picture in pictures], answers
        return used

    def _on_request(self, _widget: Any, content: Mapping[str, Any], _buffers: Any) -> None:
        kind = content.get("k") if isinstance(content, Mapping) else None
        if kind == "tvz:cancel" and (asked := self._asked.get(str(content.get("id")))) is not None:
            asked.cancel()
        elif kind == "tvz:state" and isinstance(content.get("state"), dict):
            self.controller.remember(content["state"], session_of(content))
            self._state = content["state"]
        elif kind == "tvz:req":
            self._asked[str(content.get("id"))] = self._threads.submit(self._answer, dict(content))

    def _answer(self, request: dict[str, Any]) -> None:
        message, buffers = answer(self.controller, request)
        with self._sending:
            self.send(message, buffers=[bytes(buffer) for buffer in buffers])

    def close(self) -> None:
        """Let go of threads, files and the view."""
        self._alive.discard(self)
        self._threads.shutdown(wait=False, cancel_futures=True)
        self.controller.close()
        super().close()

    def __repr__(self) -> str:
        return self.controller.text()

    def _ipython_display_(self, **_: Any) -> None:
        """Show the widget, and beside it what stands for it once its kernel is gone: JupyterLab and Notebook prefer a widget to a picture
        in the same output even where its model was not saved, and then show an error. A style hides whichever is not wanted."""
        from IPython.display import display

        content, metadata = self._repr_mimebundle_()
        apart = VIEW in content and not _alone()
        model = {STANDS_FOR: content[VIEW]["model_id"]} if apart else metadata
        self._shown = display(static(self.controller) if apart else content, metadata=model, raw=True, display_id=True)
        if apart:
            display({VIEW: content[VIEW], "text/plain": ""}, metadata=metadata, raw=True)
            display({"text/html": _STYLE}, metadata=model, raw=True)

    def renew(self) -> None:
        """Bring what is saved with the notebook up to date."""
        first, pictures = self.controller.first()
        with self.hold_sync():
            self._first, self._pictures = first, [bytes(picture) for picture in pictures]
        if self._shown is None or self.comm is None:
            return
        try:
            self._shown.update(self._repr_mimebundle_()[0] if _alone() else static(self.controller), raw=True)
        except (OSError, RuntimeError) as error:  # the kernel is going away
            log.debug("the picture could not be renewed: %s", error)

    def _repr_mimebundle_(self, **options: Any) -> Any:
        content, metadata = super()._repr_mimebundle_(**options)
        return {**content, **static(self.controller)}, metadata


def _alone() -> bool:
    """Whether one output is better: VS Code and Colab draw every output in a frame of its own, out of the reach of a style."""
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    return "google.colab" in sys.modules or "__vsc_ipynb_file__" in getattr(shell, "user_ns", ())


def static(controller: Controller) -> dict[str, Any]:
    """What stands for a widget where it cannot run: saved, exported, untrusted, without a kernel."""
    return bundle(controller.text(), controller.picture())
