"""Look through shards: on a page in the browser, or as a widget in a notebook."""

from __future__ import annotations

import html
import os
import sys
import tempfile
import webbrowser
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import click

from tarviz.cli import verb_base
from tarviz.model.class_names import ClassNames
from tarviz.outputs.process import ended_by_signals
from tarviz.read.keywords import CutKeywords
from tarviz.read.stream import ReadOptions, URLs

if TYPE_CHECKING:
    from tarviz.widgets.browse.view import BrowseView


def browse(
    urls: URLs,
    *,
    where: str = "",
    keys: str | Sequence[str] = (),
    sort: str = "order",
    shuffle: int | None = None,
    seed: int = 0,
    label: str | None = None,
    image: str = "",
    px: int = 160,
    start: str = "",
    classes: ClassNames = (),
    overlay: str = "",
    cache: bool = True,
    **reading: Unpack[CutKeywords],
) -> BrowseView:
    """A widget to look through shards: `.selected`, `.marked`, `.records()`, `.spec`.

    `where` is a condition (`cls = 3 and json.w > 300`, `has:json`, or part of a key), `keys` a list of keys or the name of a file of
    them: no others are there. `sort` is order, key, size, label or random (`shuffle=SEED`
    is short for it), `image` the field shown, `label` the field or JSON path below it, `px` 96, 160 or 256, `start` a key or `#number`,
    `classes` names for class numbers (a list, a mapping, or a file of them), `overlay` where boxes or a mask over the picture come from
    (`json.annotations`, `json.boxes:xyxy`, `seg.png`, `none`), if not found by themselves. Other keywords are those of `tarviz.records`.
    Needs the extra `lab`; without it `tarviz browse` in a shell shows the same.
    """
    from tarviz import stores
    from tarviz.read.stream import with_changes
    from tarviz.widgets.browse.controller import Browser

    from tarviz.widgets.browse.view import BrowseView  # isort: skip (first what may not be installed would hide the other errors)

    return BrowseView(
        Browser(
            urls or stores.expand([]),  # which says that there is nothing
            where=where,
            keys=keys,
            sort=sort if shuffle is None else "random",
            seed=seed if shuffle is None else shuffle,
            label=label,
            image=image,
            px=px,
            start=start,
            classes=classes,
            overlay=overlay,
            cache=cache,
            options=with_changes(ReadOptions(), reading),
        )
    )


@verb_base.verb("browse", example=["tarviz browse 'data/train-{0000..0003}.tar'", "tarviz browse data/ --where 'cls = 3' --no-open"])
@click.argument("urls", nargs=-1, metavar="[URL...]", shell_complete=verb_base.complete_shards)
@click.option("--where", default="", metavar="EXPR", help="Show only these: cls = 3 and json.w > 300, has:json, or part of a key.")
@click.option("--keys", default="", metavar="FILE", help="Show only records whose keys this file lists, one per line.")
@verb_base.tags_option
@click.option("--sort", default="order", type=click.Choice(["order", "key", "size", "label", "random"]), show_default=True)
@click.option("--shuffle", type=int, metavar="SEED", help="In random order, the same for the same seed.")
@click.option("--label", metavar="EXT[:PATH]", help="Field or JSON path shown below each tile. [default: found]")
@click.option(
    "--overlay", default="", metavar="WHERE", help="Boxes or mask: json.annotations, json.boxes:xyxy, seg.png, none. [default: found]"
)
@click.option("--classes", default="", metavar="FILE", help="Names of class numbers, one a line, from 0.")
@click.option("--image", default="", metavar="EXT", help="Field shown in the grid. [default: the first picture]")
@click.option("--px", default="160", type=click.Choice(["96", "160", "256"]), show_default=True, help="Side of a tile.")
@click.option("--from", "start", default="", metavar="KEY|#N", help="Record to begin at.")
@click.option("--port", default=0, type=click.IntRange(0, 65535), help="Port of the page. [default: a free one]")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; any other opens the page to the network.")
@click.option("--open/--no-open", "opening", default=True, help="Open the page in the browser.")
@click.option("--idle-exit", default="", metavar="TIME", help="Exit after this long without a request: 90s, 30m, 2h.")
@verb_base.quiet_option
def command(
    urls: tuple[str, ...],
    port: int,
    host: str,
    opening: bool,
    idle_exit: str,
    shuffle: int | None,
    sort: str,
    px: str,
    classes: str,
    **wish: Any,
) -> Any:
    """Look through shards: pictures, texts, arrays, sound; filter, sort, mark, inspect.

    Prints the address of a page for this machine alone and serves it until Ctrl-C; without a URL the page asks for one.
    In a notebook the magic shows the same as a widget.
    """
    chosen = {**wish, "classes": classes or (), "sort": sort if shuffle is None else "random", "seed": shuffle or 0, "px": int(px)}
    if verb_base.for_widgets():
        return verb_base.emit(browse(list(urls), **chosen))
    from tarviz.widgets.answers import by_hand
    from tarviz.widgets.browse.controller import Browser
    from tarviz.widgets.host.page import ControllerPage

    if len(urls) == 1 and urls[0] != "-":
        by_hand.keep_latest(urls[0])
    browser = Browser(list(urls), **chosen)
    page = ControllerPage(
        browser, title=" · ".join(filter(None, (browser.title, "tarviz"))), host=host, port=port, idle_exit=seconds(idle_exit)
    )
    if verb_base.door().capture:
        page.start()
        return verb_base.emit(Served(page))
    return serve(page, opening=opening)


def serve(page: Any, *, opening: bool) -> None:
    """Print the page's address and serve it until Ctrl-C or until it has been idle."""
    write = click.echo
    write(page.url)
    if page.host not in ("127.0.0.1", "localhost", "::1"):
        write(f"Anyone who can reach {page.host} and has this address can look at these shards.", err=True)
    sys.stdout.flush()
    with ended_by_signals(), doorway(page.url) as door:
        if opening and can_open(os.environ, sys.platform):
            webbrowser.open(door)
        try:
            page.serve()
        except KeyboardInterrupt:
            write("", err=True)
        finally:
            page.close()


@contextmanager
def doorway(url: str) -> Iterator[str]:
    """The address of a file that leads to `url` and that nobody but this user can read.

    A browser is started with the address as an argument, which every user of the machine can see; the page's token is in `url`.
    """
    place = html.escape(url)
    text = f'<!doctype html><meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0;url={place}">'
    with tempfile.TemporaryDirectory(prefix="tarviz-") as folder:  # mode 0700
        path = Path(folder) / "open.html"
        with open(path, "x", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(f'{text}<title>tarviz</title><a href="{place}">Open tarviz</a>\n')
        yield path.as_uri()


def can_open(environment: Mapping[str, str], platform: str) -> bool:
    """Whether a browser with a window can be expected here; one in the terminal would hide the address."""
    return platform in ("darwin", "win32") or bool(
        environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY") or environment.get("BROWSER")
    )


def seconds(text: str) -> float | None:
    """Seconds of `90s`, `30m`, `2h` or a plain number; None for an empty text.

    >>> seconds("30m"), seconds("")
    (1800.0, None)
    """
    if not text:
        return None
    factor = {"s": 1, "m": 60, "h": 3600}.get(text[-1].lower())
    try:
        value = float(text[:-1] if factor else text) * (factor or 1)
    except ValueError:
        value = -1
    if not 0 < value < 1e9:
        from tarviz.model.errors import UsageError

        raise UsageError(f"--idle-exit {text!r} is not a time.", hint="Write 90s, 30m or 2h.")
    return value


class Served(verb_base.Result):
    """A page that is being served from this process: `url`, `close()`."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.url: str = page.url

    def close(self) -> None:
        """End it."""
        self.page.close()

    def __str__(self) -> str:
        return f"{self.url}\nserved from this process; .close() ends it"

    def to_dict(self) -> dict[str, Any]:
        return {"url": self.url}
