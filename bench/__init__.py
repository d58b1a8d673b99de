"""tarviz and its peers side by side, in one run: `make bench`, or `python -m bench [NAME…] [--rounds N]`.

A file here (its name begins with no underscore) holds `FIGURES`, a list of `Figure`. Both sides of a figure do the same
work in turns, several rounds, and what counts is the median of the rounds' ratios: a machine that is busy slows both.
`python -m bench` writes `bench/results.json`; `docs/tables.py` makes the table of the README from it.
"""

from bench._figure import ITSELF, Figure, Side, Value, sweep

__all__ = ["ITSELF", "Figure", "Side", "Value", "sweep"]
