"""From tar shards to a trained model: makes sample shards, looks at them, trains Keras on them, converts them to TFRecord, reports."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import click

from tarviz import samples
from tarviz.cli import verb_base
from tarviz.commands.demo import model
from tarviz.commands.demo import report as demo_report
from tarviz.commands.demo.model import CHAIN, Comparison, Training
from tarviz.commands.ls import Listing, ls
from tarviz.commands.show import show
from tarviz.model import plugins
from tarviz.model.config import format_size
from tarviz.pipeline import Pipeline

PHOTOS = 120


class Demo(verb_base.Result):
    """One run of the demo in `folder`; `steps()` does the work and tells it, `str()` tells how it ended.

    `own`: what to say to `tarviz` next, on pictures of one's own.
    """

    own = ("create pictures/ -o mine.tar --labels mine.labels.txt", "verify --deep mine.tar", "browse mine.tar --classes mine.labels.txt")

    def __init__(self, folder: str | PathLike[str]) -> None:
        self.folder = Path(fspath(folder))
        self.listing: Listing | None = None
        self.training = Training()
        self.comparison: Comparison | None = None
        self.written: list[str] = []
        self.seconds: dict[str, float] = {}

    @property
    def shards(self) -> str:
        """The template of the training shards."""
        return str(self.folder / "data" / "train-{0000..0003}.tar")

    @property
    def photos(self) -> str:
        """The template of the photo shards."""
        return str(self.folder / "data" / "photos-{0000..0001}.tar")

    @property
    def report(self) -> Path:
        """The page that is written."""
        return self.folder / "report.html"

    @property
    def exit_code(self) -> int:
        """0 when the model reached 95 % and both paths gave the same records."""
        same = self.comparison is not None and self.comparison.equal == self.comparison.records
        return 0 if same and self.training.accuracy >= 0.95 else 2

    def steps(self) -> Iterator[str]:
        """Does the demo, a line of text at a time."""
        begin = time.perf_counter()
        for title, step in (
            ("Make sample shards (pictures from scikit-learn, nothing is downloaded)", self._make),
            (f"List them:  tarviz ls {self.folder / 'data'}", self._list),
            (f"Look at them:  tarviz show --html {self.folder / 'sheet.html'} {self.photos!r}", self._look),
            ("Stream them through a chain and train Keras", self._train),
            ("Convert them to TFRecord:  tarviz convert", self._convert),
            ("Read the TFRecord files back and compare with the tars, record by record", self._compare),
            ("Write the report", self._report),
        ):
            started = time.perf_counter()
            yield f"\n== {title}"
            yield from (f"   {line}" for line in step())
            self.seconds[step.__name__.strip("_")] = time.perf_counter() - started
        yield f"\nDone in {time.perf_counter() - begin:.0f} s. Open {self.report}"
        yield f"Then try:  {_program()} browse {self.folder / 'data'}"
        yield "On pictures of your own, a folder for each class (other forms of data: docs/recipes.md):"
        yield from (f"   {_program()} {line}" for line in self.own)

    def _make(self) -> Iterator[str]:
        paths = [*samples.digits(self.folder / "data"), *samples.photos(self.folder / "data", shards=2, count=PHOTOS)]
        yield f"{len(paths)} shards, {format_size(sum(Path(path).stat().st_size for path in paths))}, in {self.folder / 'data'}"

    def _list(self) -> Iterator[str]:
        self.listing = ls(self.folder / "data")
        yield from str(self.listing).splitlines()

    def _look(self) -> Iterator[str]:
        yield from str(show(self.shards, count=1)).splitlines()
        (self.folder / "sheet.html").write_text(show(self.photos, count=60).to_html(), "utf-8")
        yield f"contact sheet of the photos: {self.folder / 'sheet.html'}"

    def _train(self) -> Iterator[str]:
        pipeline = Pipeline(self.shards, CHAIN, select=("png", "cls"))
        yield f"pipeline: {pipeline}"
        yield f"it yields: ({', '.join(map(str, pipeline.schema()))}), known before a byte is decoded"
        yield from model.train(self.training, self.shards, str(self.folder / "data" / "test-0000.tar"))
        yield f"trained in {self.training.seconds:.0f} s on {len(self.training.labels)} pictures held out:"
        yield f"test accuracy: {self.training.accuracy:.2f}"

    def _convert(self) -> Iterator[str]:
        convert = plugins.load("commands", "convert").convert
        self.written = [
            str(path) for path in convert(self.shards, str(self.folder / "tfrecord" / "train-{}.tfrecord"), types={"cls": "int64"})
        ]
        yield f"{len(self.written)} files, {format_size(sum(Path(path).stat().st_size for path in self.written))}: {self.written[0]} …"

    def _compare(self) -> Iterator[str]:
        found = self.comparison = model.compare(self.shards, self.written)
        yield f"{found.equal} of {found.records} records are equal in key, class and every pixel"
        if found.seconds:
            tars, files = (found.records / seconds for seconds in found.seconds)
            yield f"tars {tars:,.0f} records/s, TFRecord {files:,.0f} records/s, both decoded, each at its best"
        else:
            yield "no TensorFlow here: its files were made tars again with tarviz convert, and not timed"

    def _report(self) -> Iterator[str]:
        self.report.write_text(demo_report.page(self), "utf-8")
        yield f"{self.report}, {format_size(self.report.stat().st_size)}, opens anywhere, needs no network"

    def lines(self, json: bool = False) -> Iterator[str]:
        if json:
            for _ in self.steps():
                pass
            yield from super().lines(json)
        else:
            yield from self.steps()

    def __str__(self) -> str:
        if self.comparison is None:
            return f"demo in {self.folder}, not run yet"
        return (
            f"test accuracy: {self.training.accuracy:.2f}\n"
            f"{self.comparison.equal} of {self.comparison.records} records equal through tar and TFRecord\n{self.report}"
        )

    def to_dict(self) -> dict[str, Any]:
        found = self.comparison
        return {
            "accuracy": self.training.accuracy,
            "epochs": self.training.epochs,
            "records": found.records if found else 0,
            "equal": found.equal if found else 0,
            "report": str(self.report),
            "tfrecord": self.written,
            "seconds": {name: round(value, 2) for name, value in self.seconds.items()},
        }


def _program() -> str:
    """`tarviz` as it is called here: by its path where it is not on PATH (`make demo`)."""
    called = Path(sys.argv[0])
    if shutil.which("tarviz") or called.name != "tarviz":
        return "tarviz"
    return os.path.relpath(called) if called.is_relative_to(Path.cwd()) else str(called)


def demo(folder: str | PathLike[str] = "demo") -> Demo:
    """The whole main job on sample shards in `folder`, which is made: shards, listing, training, TFRecord, comparison, report.

    Takes about a minute. `MissingPackageError` where scikit-learn, Keras, or all that Keras runs on is missing.
    """
    made = Demo(folder)
    for _ in made.steps():
        pass
    return made


@verb_base.verb("demo", example=["tarviz demo", "tarviz demo /tmp/look"])
@click.argument("folder", default="demo", type=click.Path(file_okay=False))
@verb_base.result_options
def command(folder: str, as_json: bool) -> Any:
    """From tar shards to a trained model, in a minute.

    Makes sample shards of real pictures in FOLDER, lists them, shows them, streams them through an op chain, trains a Keras model
    on them (TensorFlow, torch or JAX, the first that is installed), converts them to TFRecord, compares both paths record by record, and
    writes FOLDER/report.html.
    """
    return verb_base.emit(Demo(folder), as_json)
