"""The widgets of an executed notebook as a page without a kernel holds them: their modules once, their saved state, a place for each.

`host.mjs` draws them. A widget that is not an anywidget gives way to the picture or text beside it.
"""

from __future__ import annotations

import hashlib
import html
import json
from dataclasses import dataclass, field
from typing import Any

from tarviz.widgets.host.rpc import STANDS_FOR, VIEW

STATE = "application/vnd.jupyter.widget-state+json"
_OURS = ("_first", "_pictures", "_state", "_answers")


@dataclass
class DeckWidgets:
    """What `mountAll` of `host.mjs` takes: the source of each ES module and style sheet by name, each model by its id."""

    modules: dict[str, str] = field(default_factory=dict)
    styles: dict[str, str] = field(default_factory=dict)
    models: dict[str, dict[str, Any]] = field(default_factory=dict)

    def script(self) -> str:
        """The whole as a JSON text that may stand inside `<script>`."""
        return json.dumps({"modules": self.modules, "styles": self.styles, "models": self.models}, separators=(",", ":")).replace(
            "<", "\\u003c"
        )

    def take(self, notebook: Any) -> None:
        """Take over the widgets a notebook shows. Its outputs keep one form each: a widget's place as HTML, or what stands for it."""
        states = notebook.metadata.get("widgets", {}).get(STATE, {}).get("state", {})
        for cell in notebook.cells:
            for output in cell.get("outputs", ()):
                data = output.get("data", {})
                view = data.pop(VIEW, None)
                state = states.get(view["model_id"]) if view else None
                if state is not None and "_esm" in state["state"]:
                    self.models[view["model_id"]] = self._model(state)
                    words = html.escape(str(data.get("text/plain", "")).partition("\n")[0][:200], quote=True)
                    place = f'<div class="tarviz-widget" data-tarviz-widget="{view["model_id"]}" aria-label="{words}"></div>'
                    output["data"] = {"text/html": place}
            if "outputs" in cell:
                cell.outputs = [one for one in cell.outputs if one.get("metadata", {}).get(STANDS_FOR) not in self.models]
        notebook.metadata.pop("widgets", None)

    def _model(self, saved: dict[str, Any]) -> dict[str, Any]:
        state = {name: value for name, value in saved["state"].items() if name in _OURS or name[0] != "_"}
        buffers = [{"path": each["path"], "data": each["data"]} for each in saved.get("buffers", ())]
        module = self._keep(self.modules, saved["state"]["_esm"])
        style = self._keep(self.styles, saved["state"].get("_css") or "")
        return {"module": module, "style": style, "state": state, "buffers": buffers}

    @staticmethod
    def _keep(texts: dict[str, str], text: str) -> str:
        name = hashlib.sha256(text.encode()).hexdigest()[:12]
        texts[name] = text
        return name
