"""Inside Jupyter itself: `server.py` serves the page from a Jupyter server, `extension/` opens it in JupyterLab."""
