"""What the widgets share: requests and answers, the page, the notebook's view, `core.mjs`."""
