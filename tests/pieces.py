"""Small pieces for tests of large shards: `convert` cuts what is far smaller than what it would cut."""

from typing import Any

import pytest

from tarviz.commands.convert import conversion, ranges


def small_pieces(monkeypatch: pytest.MonkeyPatch, size: int) -> list[tuple[int, int]]:
    """Have `convert` cut shards into pieces of `size` bytes; how many shards, in how many ranges, each run cut from now on."""
    found: list[tuple[int, int]] = []
    cut = conversion.Conversion._cut

    def spy(self: Any, *args: Any, **keywords: Any) -> Any:
        made = cut(self, *args, **keywords)
        found.append((len(made), sum(map(len, made.values()))))
        return made

    monkeypatch.setattr(ranges, "PIECE", size)
    monkeypatch.setattr(conversion.Conversion, "_cut", spy)
    return found
