"""Marks, undo and addresses on the page of the browser: what a person does, kept so that it can be taken back or come back to."""
