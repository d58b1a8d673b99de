"""How many processes share a conversion, and where they may be."""

from __future__ import annotations

from typing import Any

import pytest

from tarviz.commands.convert import conversion
from tarviz.commands.convert.conversion import processes
from tarviz.commands.convert.tasks import ShardToConvert
from tarviz.model.errors import UsageError
from tarviz.model.types import URL
from tarviz.outputs import Names


def count(asked: Any, engine: str = "local", *, urls: tuple[str, ...] = ("a.tar", "b.tar"), out: str = "o-{}") -> int | None:
    shards = [ShardToConvert(at, URL(url), {}) for at, url in enumerate(urls)]
    return processes(asked, shards, Names(out), engine)


def test_it_is_this_process_alone_unless_more_are_asked_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(conversion, "processors", lambda: 6)
    monkeypatch.delenv("TARVIZ_WORKERS", raising=False)
    assert [1, 1, 3, 6, 6] == [count(asked) for asked in ("auto", 1, 3, 0, None)]
    monkeypatch.setenv("TARVIZ_WORKERS", "4")
    assert [1, 3, 4, 4] == [count(asked) for asked in ("auto", 3, 0, None)]
    with pytest.raises(UsageError, match="num_workers=-1 is less than 0"):
        count(-1)


@pytest.mark.parametrize(
    ("urls", "out"), [(("-", "a.tar"), "o-{}"), (("memory://a/b.tar",), "o-{}"), (("a.tar",), "-"), (("a.tar",), "memory://o/{}")]
)
def test_what_is_of_this_process_alone_is_worked_on_here(urls: tuple[str, ...], out: str):
    assert 1 == count(3, urls=urls, out=out)


def test_on_a_cluster_it_is_what_is_asked_for_or_what_there_is_room_for():
    assert [None, None, None, 3] == [count(asked, "ray") for asked in ("auto", 0, None, 3)]
    assert 3 == count(3, "ray", out="-")  # records come here to be written
    for urls, out in ((("-",), "o"), (("a.tar", "memory://a/b.tar"), "o"), (("a.tar",), "memory://o/{}")):
        with pytest.raises(UsageError, match="of this process alone"):
            count(3, "ray", urls=urls, out=out)
