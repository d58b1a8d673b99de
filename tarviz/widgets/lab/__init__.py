"""Inside Jupyter itself: `server.py` hands a Jupyter server's requests to `pages.py`, `extension/` opens pages in JupyterLab."""
