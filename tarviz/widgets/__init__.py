"""What people look at: each widget is a plain controller, a thin anywidget on it, and one ES module.

`browse.py` holds the class `Browser`, which knows nothing of any GUI; `browse.mjs` draws it. Between them go requests
(`_rpc.py`), whichever way: through a notebook's comm (`_view.py`) or over HTTP (`_page.py`). `core.mjs` is what the modules share;
`host.mjs` is a model for pages without Jupyter.
"""
