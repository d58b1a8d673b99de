"""The demo's report: one page with its pictures and figures inside, light and dark, no script, no request."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tarviz.cli import html_page
from tarviz.commands.show import show
from tarviz.model import plugins
from tarviz.model.config import format_size
from tarviz.model.types import Record
from tarviz.pipeline import Pipeline
from tarviz.read.stream import records
from tarviz.samples.scenes import encode

if TYPE_CHECKING:
    from tarviz.commands.demo import Demo

PHOTO = "photo/n00000003"
STEPS = "decode(jpg)|random_crop(jpg, (300, 300))|resize(jpg, (224, 224))|flip(jpg)|rotate(jpg, 20)|convert(jpg, float32)"
_WIDTH, _HEIGHT = 640, 260


def page(demo: Demo) -> str:
    """The page as HTML."""
    parts = [_head(demo), _shards(demo), _steps(demo), _training(demo), _mistakes(demo), _paths(demo), _next(demo)]
    return html_page.page("tarviz demo", "".join(parts), more=Path(__file__).with_name("demo.css").read_text("utf-8"))


def _head(demo: Demo) -> str:
    found = demo.comparison
    assert found is not None and demo.listing is not None
    figures = (
        (f"{demo.training.accuracy:.3f}", "test accuracy"),
        (f"{demo.listing.records:,}", f"records in {len(demo.listing.shards)} shards, {format_size(demo.listing.bytes)}"),
        (f"{demo.training.seconds:.0f} s", f"to train {len(demo.training.epochs)} epochs from tar"),
        (f"{found.equal:,} of {found.records:,}", "records equal through tar and TFRecord"),
    )
    cards = "".join(f"<div><b>{html_page.text(value)}</b><span>{html_page.text(what)}</span></div>" for value, what in figures)
    return (
        "<h1>From tar shards to a trained model</h1>"
        f'<p class="soft">Made by <code>tarviz demo {html_page.text(demo.folder)}</code> from pictures that come inside scikit-learn.</p>'
        f'<div class="figures">{cards}</div>'
    )


def _shards(demo: Demo) -> str:
    assert demo.listing is not None
    rows = [
        (Path(shard.url).name, f"{shard.records:,}", format_size(shard.bytes or 0), " ".join(shard.fields)) for shard in demo.listing.shards
    ]
    sheet = html_page.sheet(_photo(record) for record in show(demo.photos, count=12).records)
    return (
        "<h2>The shards</h2><p>A shard is a tar. Files that share a name before the first dot are one record: "
        "<code>photo/n00000003.jpg</code>, <code>photo/n00000003.cls</code>, …</p>"
        f"{html_page.table(rows, header=('shard', 'records', 'size', 'fields'), right=[1, 2])}{sheet}"
    )


def _photo(record: Record) -> str:
    from tarviz import viewers

    shown = viewers.tile(record["jpg"], viewers.Meta("jpg", record.key, record.shard), html_page.TILE * 2)
    return html_page.tile(shown, title=record.key, lines=[bytes(record["txt"]).decode()])


def _steps(demo: Demo) -> str:
    record = next(each for each in records(demo.photos) if each.key == PHOTO)
    chain = Pipeline(demo.photos, STEPS).chain
    tiles = []
    for step in chain.trace(record, seed=3):
        lines = [str(step.feature), *([step.drawn] if step.drawn else []), f"{step.seconds * 1000:.1f} ms"]
        tiles.append(html_page.tile(_picture(step.value), title=str(step.op), lines=lines))
    return (
        "<h2>A chain, step by step</h2><p>One photo through an op chain. Random ops draw from seed, epoch and key, so a preview, "
        f"tf.data and PyTorch see the same picture.</p>{html_page.code(STEPS.replace('|', ' | '))}{html_page.sheet(tiles)}"
    )


def _picture(pixels: np.ndarray[Any, Any]) -> bytes:
    """Pixels uint8, or float from 0 to 1, as a file: grey ones as PNG, small as they are, others as JPEG."""
    if pixels.dtype != np.uint8:
        pixels = (pixels * 255).round().clip(0, 255).astype(np.uint8)
    return encode(pixels[..., 0], "PNG") if pixels.shape[-1] == 1 else encode(pixels)


def _training(demo: Demo) -> str:
    from tarviz.commands.demo.model import CHAIN

    code = (
        f'chain = "{CHAIN}"\npipeline = tarviz.Pipeline("{demo.shards}", chain, select=("png", "cls"))\n'
        f"model.fit(pipeline.{'tf' if demo.training.runs_on == 'tensorflow' else 'eager'}(batch=64, shuffle=1500), …)"
    )
    train = [epoch["accuracy"] for epoch in demo.training.epochs]
    test = [epoch["val_accuracy"] for epoch in demo.training.epochs]
    return (
        f"<h2>Training from the tars</h2><p>A small convolutional network in Keras on {demo.training.runs_on}, fed straight from the "
        f"shards.</p>{html_page.code(code)}"
        f'<div class="columns"><div>{_curve(train, test)}</div><div>{_matrix(demo)}</div></div>'
    )


def _curve(train: Sequence[float], test: Sequence[float]) -> str:
    """Accuracy per epoch as inline SVG."""
    low = min(0.9, *train, *test) // 0.1 * 0.1
    left, right, top, bottom = 44, _WIDTH - 64, 14, _HEIGHT - 34

    def place(epoch: int, value: float) -> tuple[float, float]:
        x = left + (right - left) * epoch / max(len(test) - 1, 1)
        return round(x, 1), round(bottom - (bottom - top) * (value - low) / (1 - low), 1)

    def path(values: Sequence[float], kind: str) -> str:
        corners = " L".join(f"{x} {y}" for x, y in map(place, range(len(values)), values))
        return f'<path class="{kind}" d="M{corners}"/>'

    parts = []
    for tick in np.linspace(low, 1, 5).tolist():
        y = place(0, tick)[1]
        parts.append(f'<line class="grid" x1="{left}" x2="{right}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{tick:.2f}</text>')
    names = ((place(epoch, low)[0], epoch + 1) for epoch in range(len(test)))
    parts += [f'<text x="{x}" y="{bottom + 20}" text-anchor="middle">{name}</text>' for x, name in names]
    (x, y), other = place(len(test) - 1, test[-1]), place(len(train) - 1, train[-1])[1]
    apart = (7 if y > other else -7) if abs(other - y) < 14 else 0
    parts += [path(train, "train"), path(test, "test"), f'<circle class="dot" cx="{x}" cy="{y}" r="4"/>']
    parts += [
        f'<text class="label" x="{x + 10}" y="{y + 4 + apart}">test</text>',
        f'<text x="{x + 10}" y="{other + 4 - apart}">train</text>',
    ]
    return _svg("accuracy per epoch", _WIDTH, _HEIGHT, parts) + '<p class="soft">accuracy per epoch</p>'


def _svg(label: str, width: int, height: int, parts: Iterable[str]) -> str:
    return f'<svg viewBox="0 0 {width} {height}" width="{width}" role="img" aria-label="{label}">{"".join(parts)}</svg>'


def _matrix(demo: Demo) -> str:
    """What was taken for what, as a table."""
    counts = np.zeros((10, 10), int)
    np.add.at(counts, (demo.training.labels, demo.training.answers), 1)
    rows = []
    for truth in range(10):
        cells = "".join(_cell(int(counts[truth, answer]), truth == answer, int(counts[truth].sum())) for answer in range(10))
        rows.append(f"<tr><th>{truth}</th>{cells}</tr>")
    head = "".join(f"<th>{answer}</th>" for answer in range(10))
    return f'<table class="matrix"><tr><th></th>{head}</tr>{"".join(rows)}</table><p class="soft">rows: the digit, columns: the answer</p>'


def _cell(count: int, hit: bool, total: int) -> str:
    if not count:
        return '<td class="none" style="--share:0;--tone:var(--well)">0</td>'
    return f'<td class="{"hit" if hit else "miss"}" style="--share:{min(30 + 70 * count // max(total, 1), 75)}">{count}</td>'


def _mistakes(demo: Demo) -> str:
    training = demo.training
    wrong = np.flatnonzero(training.answers != training.labels)[:12]
    if not len(wrong):
        return f"<h2>What it gets wrong</h2><p>Nothing: all {len(training.labels)} pictures are recognised.</p>"

    def tiles() -> Iterator[str]:
        for at in wrong.tolist():
            answer, truth = int(training.answers[at]), int(training.labels[at])
            lines = [f"is {truth}, taken for {answer}", f"{training.chances[at, answer]:.0%} sure"]
            yield html_page.tile(_picture(training.images[at]), title=training.keys[at], lines=lines, small=True)

    return (
        f"<h2>What it gets wrong</h2><p>{int((training.answers != training.labels).sum())} of {len(training.labels)} test pictures, "
        f"by key: every one is found again with <code>tarviz.index(…)[key]</code>.</p>{html_page.sheet(tiles())}"
    )


def _paths(demo: Demo) -> str:
    found = demo.comparison
    assert found is not None
    how = "with plain TensorFlow" if found.seconds else "and made tars again, since there is no TensorFlow here"
    same = "key, class and every pixel" if found.seconds else "every field, byte by byte"
    return (
        f"<h2>The same records as TFRecord</h2><p><code>tarviz.convert</code> wrote {len(demo.written)} files. Read back {how}, "
        f"<b>{found.equal:,} of {found.records:,}</b> records are equal in {same}.</p>{_speeds(found.records, *found.seconds or ())}"
    )


def _speeds(records: int, *seconds: float) -> str:
    """Bars for tars and TFRecord files, and what they say; nothing where nothing was timed."""
    if not seconds:
        return ""
    speeds = [records / each for each in seconds]
    bars = []
    for at, (name, speed) in enumerate(zip(("tar → tf.data", "TFRecord → tf.data"), speeds, strict=True)):
        y, width = 8 + 34 * at, round(380 * speed / max(speeds))
        bars.append(
            f'<text class="label" x="0" y="{y + 14}">{name}</text><rect class="bar" x="140" y="{y}" width="{width}" height="20" rx="3"/>'
        )
        bars.append(f'<text x="{150 + width}" y="{y + 14}">{speed:,.0f} records/s</text>')
    ahead, factor = ("TFRecord" if speeds[1] > speeds[0] else "Tar"), max(speeds) / min(speeds)
    return (
        f"{_svg('records per second', _WIDTH + 40, 80, bars)}"
        f'<p class="soft">{ahead} is {factor:.1f} times as fast here. Both decode the same pictures and classes into the same batches, '
        "each with the number of threads that suits it best. Pictures of 28 × 28 are the least work for a decoder: most of what is "
        "measured is what each record, and the beginning of a pass, cost. <code>tarviz bench</code> measures your own shards.</p>"
    )


def _next(demo: Demo) -> str:
    known = plugins.names("commands")
    data = demo.folder / "data"
    ideas = (
        ("browse", f"tarviz browse {data}", "look through the shards in a page: grid, keys, filters"),
        ("show", f"tarviz show -n 3 '{demo.photos}'", "the first records in the shell"),
        ("verify", f"tarviz verify --deep {data}", "find every fault, decode every field"),
        ("index", f"tarviz index {data}", "random access: tarviz.index(…)[17]"),
        ("convert", f"tarviz convert '{demo.shards}' out/train-{{}}.tfrecord", "TFRecord files for TensorFlow"),
        ("cat", f"tarviz cat --shuffle 1000 '{demo.shards}' -o all.tar", "reshape shards at the speed of copying"),
    )
    rows = "".join(
        f"<tr><td><code>{html_page.text(line)}</code></td><td>{html_page.text(what)}</td></tr>"
        for verb, line, what in ideas
        if verb in known
    )
    picture = base64.b64encode(Path(__file__).with_name("browse.webp").read_bytes()).decode()
    return (
        f"<h2>Try next</h2><table>{rows}</table><h2>Your own data</h2><p>A folder for each class of pictures becomes a shard, is checked "
        "and looked through; docs/recipes.md has other forms of data.</p>"
        f"{html_page.code(chr(10).join(f'tarviz {line}' for line in demo.own))}"
        f'<img src="data:image/webp;base64,{picture}" alt="tarviz browse: shards and fields at the left, pictures, a record at the right" '
        'width="960"><p class="soft">what tarviz browse shows, here of the photos</p>'
    )
