"""The door of torch's workers: two processes that stay, and read, pass by pass, the tar that a note says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torch.utils.data import DataLoader, IterableDataset

from tarviz.model.errors import TarvizError
from tarviz.read.stream import ReadOptions
from tarviz.runners.torch import safe_context
from tarviz.selection import SelectAll
from tests.soak.doors import Fault, Outcome, faults, of_values, pipeline_of


class Noted(IterableDataset):  # type: ignore[misc, type-arg, unused-ignore]
    """What each worker reads: (number, record) of its share; at last its faults, and the error that ended it."""

    def __init__(self, note: Path) -> None:
        self.note = note

    def __iter__(self) -> Iterator[Any]:
        path, options = json.loads(self.note.read_text("utf-8"))
        run = pipeline_of(path, ReadOptions(**options), select=("__index__", SelectAll())).torch()
        error = None
        try:
            for number, value in run:
                yield number, next(of_values([value]))
        except TarvizError as raised:
            error = raised
        yield -1, (faults(run.report, error), None if error is None else (error.code, error.offset))


def loader_of(note: Path) -> Any:
    return DataLoader(
        Noted(note), batch_size=None, num_workers=2, persistent_workers=True, collate_fn=unchanged, multiprocessing_context=safe_context()
    )


def unchanged(value: Any) -> Any:
    return value


def by_workers(loader: Any, path: Path, options: ReadOptions) -> tuple[Outcome, list[Fault]]:
    """Records in the order of their numbers with the faults that the workers met together; and the errors that ended them."""
    loader.dataset.note.write_text(json.dumps([str(path), asdict(options) | {"keys": ()}]), "utf-8")
    found = list(loader)
    told = [what for number, what in found if number < 0]
    met = sorted({fault for own, _ in told for fault in own}, key=str)
    records = [record for number, record in sorted((each for each in found if each[0] >= 0), key=lambda each: int(each[0]))]
    return Outcome(records, met), [error for _, error in told if error is not None]
