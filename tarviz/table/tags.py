"""Tags and notes on records, made by hand: JSON lines in the user's data folder, a file a shard, or in one file beside the data set.

A line is `{"shard": URL, "key": KEY, "tag": WORD, "note": TEXT}`. They hang on the shard's identity and the record's key, not on its
version: a shard that is written anew keeps its tags, those too whose keys are gone. A file is written whole or not at all.
"""

from __future__ import annotations

import fcntl
import json
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple, TypeAlias

from tarviz import stores
from tarviz.model.config import options as configured
from tarviz.model.errors import DataError, StoreError, TarvizWarning, UsageError, redact
from tarviz.model.types import URL
from tarviz.model.urls import base_name, digest, identity, is_local, scheme_of

if TYPE_CHECKING:
    from tarviz.table.table import Table

MAX_TAG = 100
GONE = "W_TAG_KEY_GONE"  # what the tags of keys that no record has any more are counted as


class Tag(NamedTuple):
    """A record's tag: its shard by identity, its key, the word."""

    shard: str
    key: str
    word: str


Notes: TypeAlias = dict[Tag, str]


class Tags:
    """The tags of a table's records."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def add(self, keys: Iterable[tuple[str, str]] | str, tag: str, note: str = "") -> int:
        """Tag records: those a condition chooses, or (shard, key) pairs. How many."""
        return self._change([(*pair, note) for pair in self._choose(keys)], _check_word(tag))

    def add_noted(self, noted: Iterable[tuple[str, str, str | None]], tag: str) -> int:
        """Tag records, each with a note of its own: (shard, key, note). A note None takes the tag away. How many."""
        return self._change(list(noted), _check_word(tag))

    def remove(self, keys: Iterable[tuple[str, str]] | str, tag: str) -> int:
        """Take a tag away again."""
        return self._change([(*pair, None) for pair in self._choose(keys)], _check_word(tag))

    def counts(self) -> dict[str, int]:
        """Tag → records that have it."""
        return dict(Counter(line["tag"] for line in self.lines()))

    def lines(self) -> list[dict[str, str]]:
        """Every tag there is: shard, key, tag, note."""
        found = []
        for file, urls in self._files().items():
            names = {_name(url): redact(url) for url in urls}
            for tag, note in _read(file, self._home(file))[0].items():
                if tag.shard in names:
                    found.append({"shard": names[tag.shard], "key": tag.key, "tag": tag.word, "note": note})
        return found

    def missing(self) -> list[tuple[str, str]]:
        """Shard and key of each record that has tags and is not there any more: they are kept, in case it comes back."""
        return self._table.fetch("SELECT DISTINCT shard, key FROM tags ANTI JOIN records USING (shard, key) ORDER BY ALL")

    def save(self, path: str | os.PathLike[str]) -> int:
        """Write the tags as JSON lines, to hand them on. How many. `E_WRITE` where that cannot be: what was there is left as it was."""
        lines = self.lines()
        _write(Path(path), [json.dumps(line) for line in lines])
        return len(lines)

    def load(self, path: str | os.PathLike[str]) -> int:
        """Take tags from JSON lines that `save` wrote, or from any with `key` and `tag`. How many.

        A shard that is not there under that name is the one whose file is called so, where there is only one; tags of others are
        left out with a warning. Without `shard` they are for the records of that key, whatever their shards.
        """
        wanted: dict[str, list[tuple[str, str, str]]] = {}
        loose: dict[str, list[tuple[str, str]]] = {}
        place, left = self._placer(), 0
        for number, text in enumerate(Path(path).read_text("utf-8-sig").split("\n"), 1):  # JSON may hold U+2028
            if not text.strip():
                continue
            try:
                line = json.loads(text)
                key, tag, note = str(line["key"]), _check_word(str(line["tag"])), str(line.get("note") or "")
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                hint = 'A line is {"key": …, "tag": …}.'
                raise DataError(f"line {number} of {path} is not a tag ({error}).", code="E_TAGS", hint=hint) from error
            if not line.get("shard"):
                loose.setdefault(key, []).append((tag, note))
            elif (shard := place(str(line["shard"]))) is None:
                left += 1
            else:
                wanted.setdefault(tag, []).append((shard, key, note))
        for shard, key in self._table.fetch("SELECT shard, key FROM records") if loose else ():
            for tag, note in loose.get(key, ()):
                wanted.setdefault(tag, []).append((shard, key, note))
        if left:
            text = f"W_TAGS_LEFT_OUT {left} tags of {path} are of shards that are not among these, or that several of these may be."
            warnings.warn(text, TarvizWarning, stacklevel=2)
        return sum(self._change(rows, tag) for tag, rows in wanted.items())

    def _placer(self) -> Callable[[str], str | None]:
        """What finds the shard of this table that a line means."""
        own = {_name(url): redact(url) for url in self._table.urls}
        own |= {redact(url): redact(url) for url in self._table.urls}
        named: dict[str, set[str]] = {}
        for url in self._table.urls:
            named.setdefault(base_name(url), set()).add(redact(url))

        def place(text: str) -> str | None:
            alike = named.get(base_name(text), set())
            return own.get(text) or own.get(_name(text)) or (next(iter(alike)) if len(alike) == 1 else None)

        return place

    def _choose(self, keys: Iterable[tuple[str, str]] | str) -> list[tuple[str, str]]:
        if not isinstance(keys, str):
            return list(keys)
        return self._table.fetch(f"SELECT shard, key FROM records WHERE {self._table.condition(keys)}")

    def _files(self) -> dict[Path, list[URL]]:
        """Where the tags of the shards are, in their order: all in one file beside them, or each shard's in its own."""
        if one := self._table.tags_file:
            return {one: self._table.urls}
        _move_over()
        found: dict[Path, list[URL]] = {}
        for url in self._table.urls:
            found.setdefault(_file(url), []).append(url)
        return found

    def _home(self, file: Path) -> Path | None:
        """The folder that the names of shards in a file start from."""
        return file.parent if self._table.tags_file else None

    def _change(self, rows: Sequence[tuple[str, str, str | None]], word: str) -> int:
        """Give records a tag, each with its note, or take it away where that is None."""
        known = {redact(url): (file, _name(url)) for file, urls in self._files().items() for url in urls}
        changes: dict[Path, dict[Tag, str | None]] = {}
        for shard, key, note in rows:
            if redact(shard) not in known:
                raise UsageError(f"{redact(shard)!r} is not a shard of this table.")
            file, name = known[redact(shard)]
            changes.setdefault(file, {})[Tag(name, key, word)] = note
        for file, own in changes.items():
            _rewrite(file, own, self._home(file))
        self._table.retag()
        return len(rows)


def _file(url: str) -> Path:
    """Where the tags of a shard are kept."""
    return configured().data_dir / "tags" / f"{digest(identity(url), 40)}.jsonl"


def _name(url: str) -> str:
    """A shard's identity as it is written down."""
    return redact(identity(url))


def _read(file: Path, home: Path | None) -> tuple[Notes, list[str]]:
    """The tags of a file, the last word about each, and the lines that are none."""
    found: Notes = {}
    others = []
    with suppress(FileNotFoundError, NotADirectoryError):  # whoever writes it says so
        for text in filter(None, file.read_text("utf-8", "surrogateescape").split("\n")):  # U+2028 may stand in a key
            try:
                line = json.loads(text)
                shard = str(line["shard"])
                tag = Tag(_absolute(shard, home), str(line["key"]), str(line["tag"]))
                gone, note = line.get("gone"), str(line.get("note") or "")
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                others.append(text)  # not ours to throw away
                continue
            if gone:
                found.pop(tag, None)
            else:
                found[tag] = note
    return found, others


def _absolute(shard: str, home: Path | None) -> str:
    """The identity of a shard that a line of a file in `home` names."""
    return _name(str(home / shard)) if home is not None and scheme_of(shard) == "file" else shard


def _relative(name: str, home: Path | None) -> str:
    """How a file in `home` names a shard: from there on where it lies below, so that both may be moved together."""
    if home is not None and is_local(name) and Path(name).is_relative_to(root := home.resolve()):
        return os.fspath(Path(name).relative_to(root))
    return name


def _rewrite(file: Path, changes: dict[Tag, str | None], home: Path | None) -> None:
    """Change a file of tags, while nobody else does."""
    with _lock(file) as held:
        found, others = _read(file, home)
        for tag, note in changes.items():
            found.pop(tag, None)
            if note is not None:
                found[tag] = note
        lines = [
            json.dumps({"shard": _relative(tag.shard, home), "key": tag.key, "tag": tag.word, "note": note}) for tag, note in found.items()
        ]
        try:
            _write(file, [*others, *lines], like=held)
        except StoreError:
            if not os.fstat(held.fileno()).st_size:
                file.unlink(missing_ok=True)  # begun by us just now
            raise


def _write(file: Path, lines: list[str], like: IO[bytes] | None = None) -> None:
    """Write lines beside a file, then rename. `like`: the file whose rights the new one gets."""
    stores.write(file, "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape"))
    if like is not None:
        file.chmod(os.fstat(like.fileno()).st_mode & 0o777)


@contextmanager
def _lock(file: Path) -> Iterator[IO[bytes]]:
    """The file, made if need be, while no other process changes it; for its owner alone in the data folder."""
    own = file.is_relative_to(configured().data_dir)
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700 if own else 0o777)
        held = _open_locked(file, 0o600 if own else 0o666)
    except OSError as error:
        raise StoreError(f"tags cannot be kept: {error.strerror}.", code="E_WRITE", shard=os.fspath(file)) from error
    with held:
        yield held


def _open_locked(file: Path, mode: int) -> IO[bytes]:
    while True:
        held = open(os.open(file, os.O_RDWR | os.O_CREAT, mode), "r+b")  # noqa: SIM115  (the caller closes it)
        fcntl.flock(held, fcntl.LOCK_EX)
        if file.exists() and os.path.samestat(os.fstat(held.fileno()), file.stat()):
            return held
        held.close()  # replaced by the one who had it


def _move_over() -> None:
    """Take the tags that an earlier version kept in the cache, under the text of a path, once.

    Those of relative paths stay there: they may be of any folder's shards. `tarviz cache` names them.
    """
    old = configured().cache_dir / "tags"
    if not old.is_dir():
        return
    for file in sorted(old.glob("*.jsonl")):
        found, _ = _read(file, None)
        if all(scheme_of(tag.shard) != "file" or os.path.isabs(tag.shard) for tag in found):
            changes: dict[str, dict[Tag, str | None]] = {}
            for tag, note in found.items():
                changes.setdefault(tag.shard, {})[Tag(_name(tag.shard), tag.key, tag.word)] = note
            for shard, own in changes.items():
                now, _ = _read(_file(shard), None)
                _rewrite(_file(shard), {tag: note for tag, note in own.items() if tag not in now}, None)
            file.unlink(missing_ok=True)
    with suppress(OSError):
        old.rmdir()


def _check_word(tag: str) -> str:
    if not tag.strip() or len(tag) > MAX_TAG or "," in tag or not tag.isprintable():
        raise UsageError(f"{tag!r} is not a tag.", hint="A tag is a word, without commas.")
    return tag.strip()
