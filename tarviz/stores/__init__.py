"""Stores: where bytes are. One file per URL scheme, named like the scheme.

A file here provides `store() -> Store`: an object with the operations of `base.Store`, most easily by deriving from it. It is made once
in a process and shared by threads, so it holds settings and connections, never the state of one read. It
must pickle (workers get it), work in a forked child, and keep four promises that `tarviz.testing.stores.StoreTests`
checks in about 25 lines of subclass:

- a stream gives every byte once and in order, or an error: never fewer bytes without one;
- a version is never mixed with another: `etag` names the version, `ChangedError` says that it is gone;
- a sink shows nothing under the final name before `commit`, and large objects never wait in memory;
- errors are those of `tarviz.model.errors`, with the URL as `shard`; a missing object is `NotFoundError`.

Schemes that have no file here are looked for in fsspec (`_fsspec.py`).
A store whose listing decides what a template means (an object store) sets `selects`.
Other packages add a scheme through an entry point in the group `tarviz.stores`.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from os import PathLike
from pathlib import Path
from typing import TypeAlias, cast
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from tarviz.model import plugins
from tarviz.model.config import options
from tarviz.model.errors import NotFoundError, StoreError, TarvizError, UsageError, redact
from tarviz.model.types import URL
from tarviz.model.urls import ALIASES, base_name, is_local, local_path, scheme_of, without_query
from tarviz.model.wording import did_you_mean
from tarviz.stores.base import Sink, Stat, Store, Stream, Whole, fill, is_there
from tarviz.stores.paths import SHARD_SUFFIXES, before_suffix, is_shard, nearest
from tarviz.stores.templates import braces, matching, natural

SUPPORT = ("base", "cache_files", "cached", "paths", "retry", "templates")  # what stores are built with, not stores

__all__ = [
    "SHARD_SUFFIXES",
    "Sink",
    "Stat",
    "Store",
    "Stream",
    "Whole",
    "URLs",
    "before_suffix",
    "expand",
    "fill",
    "is_local",
    "is_there",
    "join",
    "local_path",
    "of",
    "write",
]

URLs: TypeAlias = str | PathLike[str] | Iterable[str | PathLike[str]]


def of(url: str | PathLike[str]) -> Store:
    """The store that a URL belongs to: paths are files, `-` is stdin and stdout, the rest goes by scheme.

    With the option `shard_cache`, what remote stores have is kept on this machine. `UsageError` lists the schemes when
    there is no such store.
    """
    found = _store(scheme_of(os.fspath(url)))
    if getattr(found, "remote", False) and (limit := options().shard_cache):
        from tarviz.stores.cached import CachedStore

        return cast("Store", CachedStore(found, options().cache_dir / "shards", limit))
    return found


def _store(scheme: str) -> Store:
    return _load_store(scheme, options().override)


@cache
def _load_store(scheme: str, override: str) -> Store:
    name = ALIASES.get(scheme, scheme)
    if not plugins.is_known("stores", name):
        from tarviz.stores._fsspec import AnyStore, knows

        if knows(name):
            return AnyStore()
        schemes = sorted({*plugins.names("stores"), "https"} - {"stdio"})
        meant = did_you_mean(scheme, schemes, "{}://")
        there = ", ".join(f"{each}://" for each in schemes)
        more = "plain paths and '-'; fsspec, where it is installed, brings more."
        raise UsageError(f"there is no store for {scheme}:// URLs.", hint=f"{meant}There are: {there}, {more}")
    return cast("Store", plugins.load("stores", name).store())


def write(place: str | PathLike[str], data: bytes) -> None:
    """Write a file or an object, which is there whole or not at all."""
    with of(place).create(URL(os.fspath(place))) as sink:
        sink.write(data)


def join(prefix: str | PathLike[str], name: str) -> URL:
    """The URL of `name` in the folder `prefix`; a query stays at the end.

    >>> join("https://host/data?key=1", "a b.tar")
    'https://host/data/a%20b.tar?key=1'
    >>> join("data/", "a.tar")
    'data/a.tar'
    """
    text = os.fspath(prefix)
    scheme = scheme_of(text)
    if scheme == "stdio":
        raise UsageError("'-' is not a folder.")
    if scheme == "file":
        return URL(os.path.join(local_path(text), name))
    if scheme not in ("http", "https"):
        return URL(f"{text}{'' if text.endswith('/') else '/'}{name}")
    parts = urlsplit(text)
    return URL(urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/{quote(name, errors='surrogateescape')}")))


def expand(urls: URLs) -> list[URL]:
    """The shards that URLs, templates, globs, folders or lists of these stand for, in order, duplicates kept.

    Braces are expanded first (a million names at most). A folder or a bucket stands for the shards directly in it, sorted
    so that 2 comes before 10; on the web end its URL with `/`. `*` matches within a name and `**` folders too, on
    every store that lists; `?` and `[…]` are letters of an object's name, and match local files. A name that exists
    just as it is written is never taken for a pattern. Text is one URL: commas outside of braces are part of the
    name. Local names and patterns are looked up at once (`NotFoundError` says what lies near).

    >>> expand("https://host/train-{0..2}.tar")[-1]
    'https://host/train-2.tar'
    """
    if isinstance(urls, str | PathLike):
        return _expand(os.fspath(urls))
    if isinstance(urls, bytes | bytearray) or not isinstance(urls, Iterable):
        raise UsageError(f"URLs are text, paths or a list of these, not {type(urls).__name__}.")
    found: list[URL] = []
    for url in urls:
        if not isinstance(url, str | PathLike):
            raise UsageError(f"a list of URLs holds text and paths, not {type(url).__name__}.")
        found += _expand(os.fspath(url))
    if not found:
        raise UsageError("the list of URLs is empty.", hint="Name a shard, a folder or a template such as train-{0000..0147}.tar.")
    return found


def _expand(text: str) -> list[URL]:
    if not isinstance(text, str):
        raise UsageError("URLs are text; a path of bytes is not.", hint="os.fsdecode makes text of it.")
    if not text.strip():
        raise UsageError("the URL is empty.", hint="Name a shard, a folder or a template such as train-{0000..0147}.tar.")
    if is_local(text):
        path = local_path(text)
        return _folder(path) if os.path.isdir(path) else [URL(path)] if os.path.exists(path) else _local(path)
    names = [URL(name) for name in braces(text)]
    store = of(names[0])
    if not store.lists:
        return names
    if "*" in without_query(text)[0]:
        return [shard for name in names for shard in _matching(store, name)]
    if names[0].endswith("/") or (store.selects and "/" not in names[0].partition("://")[2]):
        return [shard for name in names for shard in _folder(name)]
    if len(names) > 1:
        return _select(store, text, names) if store.selects else names
    return names if is_shard(base_name(text)) or scheme_of(text) in ("http", "https") else _object_or_folder(store, names[0])


def _folder(url: str) -> list[URL]:
    """The shards directly in a folder."""
    return _shards(url, of(url).list(URL(url)))


def _shards(folder: str, stats: Iterable[Stat]) -> list[URL]:
    """Those in a folder that are shards."""
    shards = [stat.url for stat in stats if is_shard(base_name(stat.url))]
    if not shards:
        hint = _deeper(folder) or "Name the files, or a pattern."
        raise NotFoundError(f"the folder holds no shard ({', '.join(SHARD_SUFFIXES)}).", shard=folder, hint=hint)
    return sorted(shards, key=natural)


def _object_or_folder(store: Store, url: URL) -> list[URL]:
    """A name that says not what it is: the object of that name, or the shards in the folder."""
    listed = None
    with suppress(TarvizError):  # who may not ask may still read; where nothing is there either, who reads it is told so
        if not is_there(store, url):
            listed = list(store.list(URL(f"{url}/")))
    return [url] if listed is None else _shards(url, listed)


def _matching(store: Store, pattern: URL) -> list[URL]:
    """The objects that a pattern fits; itself, where an object is called so, or where nobody may list."""
    web = scheme_of(pattern) in ("http", "https")
    name, query = without_query(pattern)
    begin = name[: name.index("*")]
    folder = begin[: begin.rindex("/") + 1]
    deep = "/" in name[len(begin) :] or "**" in name
    try:
        found = [stat.url for stat in (store.walk(URL(begin)) if deep else store.list(URL(folder + query)))]
    except NotFoundError:
        found = []
    except StoreError as error:
        if error.code != "E_AUTH" and not web:  # few web servers show their folders
            raise
        return [pattern]
    if pattern in found or (web and not found):
        return [pattern]
    rule = matching(unquote(name) if web else name)
    matches = sorted((url for url in found if rule.fullmatch(unquote(without_query(url)[0]) if web else url)), key=natural)
    if not matches:
        raise NotFoundError("no object matches.", shard=pattern, hint=f"Check the pattern; {folder} is where it begins.")
    return matches


def _deeper(url: str) -> str | None:
    """Where shards lie when a local folder has none itself."""
    if not is_local(url):
        return None
    below = [path for path in sorted(Path(url).glob("*/*"))[:10_000] if is_shard(path.name)]
    return f"Shards lie in folders below: {os.path.join(url, '*', '*' + below[0].suffix)} takes them all." if below else None


def _select(store: Store, template: str, names: list[URL]) -> list[URL]:
    """Those of the names that a listing shows: what a range means on an object store."""
    folders = dict.fromkeys(name.rpartition("/")[0] for name in names)
    try:
        there = {stat.url for folder in folders for stat in store.list(URL(folder + "/"))}
    except StoreError as error:
        if error.code != "E_AUTH":
            raise
        return names  # who may not list may still read
    if template in there:
        return [URL(template)]
    found = [name for name in names if name in there]
    if not found:
        raise NotFoundError(f"none of the {len(names)} objects of the template exists.", shard=template)
    return found


def _local(template: str) -> list[URL]:
    found: list[URL] = []
    missing: list[str] = []
    names = braces(template)
    for name in names:
        if os.path.isdir(name):
            found += _folder(name)
        elif os.path.exists(name):
            found.append(URL(name))
        elif matches := _matches(name):
            found += matches
        else:
            missing.append(name)
    if missing:
        raise _missing(template, missing, len(names))
    return found


def _matches(pattern: str) -> list[URL]:
    if not glob.has_magic(pattern):
        return []
    paths = (path for path in glob.iglob(pattern, recursive=True) if os.path.isfile(path))
    return [URL(path) for path in sorted(paths, key=natural)]


def _missing(template: str, missing: list[str], total: int) -> NotFoundError:
    first = missing[0]
    if glob.has_magic(first):
        what = "no file matches."
    elif total == 1:
        what = "there is no such file." if not os.path.islink(first) else "it is a link to a file that does not exist."
    else:
        some = ", ".join(os.path.basename(name) for name in missing[:3])
        what = f"{len(missing)} of {total} shards do not exist: {some}{', …' if len(missing) > 3 else ''}."
    if "{}" in first:
        hint = "{} counts outputs; to read, write a range such as {1..9}."
    elif "{" in first:
        hint = "The braces are not range: write {0..9}, {0000..0147} or {a,b}."
    else:
        hint = nearest(first) or "Check the path."
    return NotFoundError(what, shard=redact(template if total > 1 else first), hint=hint)
