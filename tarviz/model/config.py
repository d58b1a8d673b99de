"""Options: argument > `TARVIZ_*` > `./tarviz.toml` > `~/.config/tarviz/config.toml` > default."""

from __future__ import annotations

import math
import os
import re
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, TypedDict, Unpack

from tarviz.model.environment import Watched
from tarviz.model.errors import UsageError
from tarviz.model.wording import did_you_mean

_SIZE = re.compile(r"(?i)\s*(\d+(?:\.\d*)?(?:e[+]?\d+)?|\.\d+)\s*(?:([kmgtp])(i?))?(b?)\s*")
_POWER = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}


def parse_size(text: str | int | float) -> int:
    """Bytes, written as people write them: a number, `1e9`, `100MB` (10⁸), `100MiB` (2²⁰·100), `2g`.

    >>> parse_size("100MB"), parse_size("1MiB"), parse_size("1e9")
    (100000000, 1048576, 1000000000)
    """
    match = _SIZE.fullmatch(str(text))
    number, unit, binary = (float(match[1]), (match[2] or "").lower(), match[3]) if match else (math.inf, "", "")
    if number >= 1e18 or number * 1024 ** _POWER[unit] >= 2**63:
        raise UsageError(f"{text!r} is not a size.", hint="Write bytes (1e9), 100MB (decimal) or 100MiB (binary).")
    return int(number * (1024 if binary else 1000) ** _POWER[unit])


def format_size(size: int | float) -> str:
    """Bytes for people, decimal units: `68.2 kB`.

    >>> format_size(512), format_size(68_200), format_size(3_000_000_000)
    ('512 B', '68.2 kB', '3.00 GB')
    """
    number = float(size)
    units = iter(("B", "kB", "MB", "GB", "TB", "PB"))
    unit = next(units)
    while abs(number) >= 999.5 and unit != "PB":
        number, unit = number / 1000, next(units)
    digits = 0 if unit == "B" or abs(number) >= 100 else 1 if abs(number) >= 10 else 2
    return f"{number:.{digits}f} {unit}"


def _seconds(value: Any) -> float:
    number = float(value)
    if isinstance(value, bool) or not 0 < number < 1e9:
        raise ValueError
    return number


def _count(value: Any) -> int:
    if isinstance(value, bool) or int(value) != float(value) or int(value) < 0:
        raise ValueError
    return int(value)


def _block(value: Any) -> int:
    size = parse_size(value)
    if not 4096 <= size <= 1 << 30:
        raise ValueError
    return size


def _plugins(value: Any) -> str:
    names = [each.strip() for each in str(value).split(",") if each.strip()]
    if not all(re.fullmatch(r"[a-z]+\.\w+", name) for name in names):
        raise ValueError
    return ",".join(names)


def _progress(value: Any) -> str:
    text = {"True": "on", "False": "off", "1": "on", "0": "off"}.get(str(value), str(value))
    if text not in ("auto", "on", "off"):
        raise ValueError
    return text


def _path(value: Any) -> Path:
    if not str(value):
        raise ValueError
    return Path(value).expanduser()


class Hidden(str):
    """Text that may hold secrets: what shows it says that it is there, and no more."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'" if self else "''"


def _storage(value: Any) -> Hidden:
    """JSON of an object, as text; objects stand in it under beginnings of URLs alone."""
    import json

    found = json.loads(value or "{}") if isinstance(value, str) else value
    if not isinstance(found, dict) or any(isinstance(each, dict) != ("://" in name) for name, each in found.items()):
        raise ValueError
    return Hidden(json.dumps(found, sort_keys=True) if found else "")


def _option(default: Any, read: Callable[[Any], Any], means: str) -> Any:
    return field(default=default, metadata={"read": read, "means": means})


def _cache_home() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tarviz"


def _data_home() -> Path:
    if chosen := os.environ.get("XDG_DATA_HOME"):
        return Path(chosen) / "tarviz"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "tarviz"
    return Path.home() / ("Library/Application Support" if sys.platform == "darwin" else ".local/share") / "tarviz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What applies where a call does not say otherwise. Every field may stand in a file or as `TARVIZ_<FIELD>`.

    A `with` makes these the options in force in this process, all its threads included, until its end.
    """

    cache_dir: Path = field(default_factory=_cache_home, metadata={"read": _path, "means": "folder of what is kept"})
    data_dir: Path = field(default_factory=_data_home, metadata={"read": _path, "means": "folder of what is made by hand: tags and notes"})
    tags: str = _option("", str, "file of tags and notes, beside the data set for example, in place of those in data_dir")
    block_size: int = _option(4 << 20, _block, "bytes read and scanned at a time (4kiB to 1GiB); twice for large members, from far away")
    max_member_bytes: int = _option(1 << 30, parse_size, "largest member read into memory, bytes")
    max_ratio: int = _option(1000, _count, "largest expansion of compressed data, times (over 64 MiB in a row)")
    retry_timeout: float = _option(180.0, _seconds, "seconds that retries of one remote read may take together")
    stall_timeout: float = _option(30.0, _seconds, "seconds without a byte before a remote read is resumed")
    min_rate: int = _option(0, parse_size, "bytes a second, over a minute, below which a remote read is resumed; 0: any rate will do")
    connections: int = _option(1, _count, "connections that one remote read may use where a single one turns out to be the limit")
    cache_size: int = _option(10_000_000_000, parse_size, "bytes of indexes and columns kept; what was used longest ago goes first")
    cache_days: int = _option(90, _count, "days that an index or a column is kept which nobody uses")
    shard_cache: int = _option(0, parse_size, "bytes of remote shards kept in the cache folder for the next reading; 0: none")
    progress: str = _option("auto", _progress, "progress bars: auto (on a terminal), on, off")
    override: str = _option("", _plugins, "plugins of other packages that replace our own, by name: ops.resize,viewers.text")
    storage_options: str = _option(
        Hidden(), _storage, "JSON of what stores are told: requester_pays, … for all URLs, or by their beginning"
    )
    workers: int = _option(0, _count, "parallel workers where a verb has them; 0: one per processor")

    def __enter__(self) -> Options:
        now = options()
        changes = tuple((name, getattr(self, name)) for name in _READ if getattr(self, name) != getattr(now, name))
        with _WITHIN_LOCK:
            _WITHIN[:] = [*_WITHIN, (self, changes)]
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with _WITHIN_LOCK:  # another thread may have begun one in the meantime: not always the last
            at = max(at for at, (each, _) in enumerate(_WITHIN) if each is self)
            _WITHIN[:] = [*_WITHIN[:at], *_WITHIN[at + 1 :]]


_WITHIN: list[tuple[Options, tuple[tuple[str, Any], ...]]] = []
"""What each `with` that is open changes, the innermost last."""
_WITHIN_LOCK = threading.Lock()


class OptionKeywords(TypedDict, total=False):
    """What `tarviz.options` takes of `Options`, as people may write it; None is not given. A test holds the two against each other."""

    cache_dir: str | os.PathLike[str] | None
    cache_size: int | float | str | None
    cache_days: int | None
    data_dir: str | os.PathLike[str] | None
    tags: str | None
    block_size: int | float | str | None
    max_member_bytes: int | float | str | None
    max_ratio: int | None
    retry_timeout: float | None
    stall_timeout: float | None
    min_rate: int | float | str | None
    connections: int | None
    shard_cache: int | float | str | None
    progress: Literal["auto", "on", "off"] | bool | None
    override: str | None
    storage_options: Mapping[str, Any] | str | None
    workers: int | None


MEANINGS = {each.name: str(each.metadata["means"]) for each in fields(Options)}
_READ: dict[str, Callable[[Any], Any]] = {each.name: each.metadata["read"] for each in fields(Options)}


def files() -> tuple[Path, ...]:
    """The configuration files looked at, strongest first. `TARVIZ_CONFIG` names one file to use in their place."""
    if chosen := os.environ.get("TARVIZ_CONFIG"):
        return (Path(chosen).expanduser(),)
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return Path("tarviz.toml"), home / "tarviz" / "config.toml"


def _convert(name: str, value: Any, source: str) -> Any:
    if name not in _READ:
        raise UsageError(f"{source} sets {name!r}, which is not an option.", hint=f"There are: {', '.join(sorted(_READ))}.")
    try:
        return _READ[name](value)
    except (ValueError, TypeError, OverflowError) as error:
        if name == "storage_options":
            raise UsageError(f"{source}: storage_options are no JSON object.", hint='Write {"requester_pays": true}.') from None
        raise UsageError(f"{source}: {value!r} does not fit {name} ({MEANINGS[name]}).") from error


@lru_cache(maxsize=16)
def _read_file(path: Path, mtime: int, size: int) -> dict[str, Any]:
    import tomllib  # few have such a file

    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        hint = "There may be options in it: make it readable, or move it away."
        raise UsageError(f"{path} cannot be read: {error.strerror}.", hint=hint) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not TOML: {error}.") from error
    return {name: _convert(name, value, str(path)) for name, value in content.items()}


def _from_files() -> list[tuple[str, Mapping[str, Any]]]:
    found: list[tuple[str, Mapping[str, Any]]] = []
    for path in files():
        try:
            stat = path.stat()
        except OSError as error:
            if not os.environ.get("TARVIZ_CONFIG"):
                continue  # absent, or in a folder of somebody else
            raise UsageError(f"TARVIZ_CONFIG names {path}: {error.strerror}.", hint="Name a file that is there, or unset it.") from error
        found.append((str(path), _read_file(path.absolute(), stat.st_mtime_ns, stat.st_size)))
    return found


def _variable(name: str) -> str:
    return f"TARVIZ_{name.upper()}"


def sources() -> dict[str, tuple[Any, str]]:
    """Every option's value and where it comes from: `with`, `TARVIZ_…`, a file's path, `default`."""
    read = _from_files()
    within = {name: value for _, changes in _WITHIN for name, value in changes}
    default = Options()
    result: dict[str, tuple[Any, str]] = {}
    for name in _READ:
        variable = _variable(name)
        if name in within:
            result[name] = within[name], "with"
        elif (text := os.environ.get(variable)) or (text is not None and getattr(default, name) == ""):
            result[name] = _convert(name, text, variable), variable
        else:
            places = ((content[name], path) for path, content in read if name in content)
            result[name] = next(places, (getattr(default, name), "default"))
    return result


def unknown() -> dict[str, str]:
    """Variables `TARVIZ_…` that name no option, each with the one that was meant: "" where none is near."""
    names = sorted(name for name in os.environ if name.startswith("TARVIZ_") and name not in VARIABLES)
    return {name: did_you_mean(name, VARIABLES, "{}").rstrip() for name in names}


def environment() -> dict[str, str]:
    """The environment of a process that is to have the options in force here: with what each open `with` changes."""
    return {**os.environ, **{_variable(name): str(value) for _, changes in _WITHIN for name, value in changes}}


_PLACES = ("TARVIZ_CONFIG", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "LOCALAPPDATA", "HOME")
VARIABLES = (*map(_variable, _READ), *_PLACES)
_WATCHED = Watched(VARIABLES)


def _state() -> tuple[Any, ...]:
    """What the options depend on, cheaply: readers ask for options with every shard and every record read by index."""
    variables = _WATCHED.state()
    stamps = []
    for place in _places(variables):
        try:
            stat = os.stat(place)
            stamps.append((stat.st_mtime_ns, stat.st_size, stat.st_ino))
        except OSError:
            stamps.append((0, 0, 0))
    return *variables, *stamps


@lru_cache(maxsize=4)
def _places(_: tuple[bytes | str, ...]) -> tuple[str, ...]:
    return tuple(map(os.fspath, files()))


@lru_cache(maxsize=4)
def _options(_: tuple[Any, ...], within: tuple[Any, ...]) -> Options:
    return Options(**{name: value for name, (value, _) in sources().items()})


def options(**given: Unpack[OptionKeywords]) -> Options:
    """The options in force; an argument that is not None wins over environment, files and default.

    `with tarviz.options(workers=4):` puts them in force until its end.

    >>> options(workers=3, block_size=None).workers
    3
    """
    chosen = _options(_state(), tuple(_WITHIN))
    for name in given:
        if name not in _READ:
            raise UsageError(f"{name!r} is not an option.", hint=f"There are: {', '.join(sorted(_READ))}.")
    changes = {name: _convert(name, value, "argument") for name, value in given.items() if value is not None}
    return replace(chosen, **changes) if changes else chosen
