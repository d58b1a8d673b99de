"""Show the options in force and where each comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tarviz.cli import verb_base
from tarviz.model import config as _config


@dataclass(frozen=True)
class Configuration(verb_base.Result):
    """Every option: value, source, meaning; the files that were looked at; variables that name no option."""

    values: dict[str, tuple[Any, str]]
    files: tuple[Path, ...]
    unknown: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        rows = [(name, show_value(value), source, _config.MEANINGS[name]) for name, (value, source) in self.values.items()]
        looked = "\n".join(f"  {path}{'' if path.exists() else '  (not there)'}" for path in self.files)
        values = verb_base.table(rows, header=("option", "value", "from", "what it is"))
        beside = [f"{name} names no option. {meant}" for name, meant in self.unknown.items()]
        return "\n".join([values, "", "Files, strongest first; TARVIZ_… wins over them:", looked, *([""] if beside else []), *beside])

    def to_dict(self) -> dict[str, Any]:
        plain = {name: str(value) if isinstance(value, Path) else show_value(value) for name, (value, _) in self.values.items()}
        return {
            "options": {name: {"value": plain[name], "from": source} for name, (_, source) in self.values.items()},
            "files": [str(path) for path in self.files],
            "unknown": list(self.unknown),
        }


def show_value(value: Any) -> Any:
    """A value as people may see it."""
    return ("***" if value else "") if isinstance(value, _config.Hidden) else value


def config() -> Configuration:
    """The options in force, each with its source.

    >>> config().values["max_ratio"]
    (1000, 'default')
    """
    return Configuration(_config.sources(), _config.files(), _config.unknown())


@verb_base.verb("config", example="TARVIZ_BLOCK_SIZE=1MiB tarviz config")
@verb_base.json_option
def command(as_json: bool) -> Any:
    """Show the options in force and where each comes from.

    An argument wins over the environment (TARVIZ_BLOCK_SIZE=1MiB), that over ./tarviz.toml, that over
    ~/.config/tarviz/config.toml, that over the default. TARVIZ_CONFIG names one file to read instead.
    """
    return verb_base.emit(config(), as_json)
