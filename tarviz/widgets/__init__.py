"""What people look at: each widget is a plain controller, a thin anywidget on it, and one ES module.

A room for each, and one (`host`) for what they share. `browse/controller.py` holds the class `Browser`, which knows nothing of any
GUI; `browse/page/browse.mjs` draws it. Between them go requests (`host/rpc.py`), through a notebook's comm (`host/view.py`) or over HTTP
(`host/replies.py`): from a server of its own (`host/page.py`) or from Jupyter's (`lab/server.py`). `host/core.mjs` is what the modules
share; `host/host.mjs` is a model for pages without Jupyter.
"""
