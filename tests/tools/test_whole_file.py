"""Objects read as a whole: all of their bytes, or none where they are too large or have changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tarviz import stores
from tarviz.model.errors import ChangedError, UsageError
from tarviz.tools import whole_file
from tarviz.tools.whole_file import contents


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file of ten bytes, read four at a time."""
    monkeypatch.setattr(whole_file, "_PIECE", 4)
    (tmp_path / "plan").write_bytes(b"0123456789")
    return str(tmp_path / "plan")


def test_every_piece_of_it_is_there(url: str):
    assert b"0123456789" == contents(url, "the plan") == contents(url, "the plan", 10)


def test_one_byte_too_many_is_refused(url: str):
    with pytest.raises(UsageError, match=r"the plan has more than 9 B, which is too much") as caught:
        contents(url, "the plan", 9)

    assert url == caught.value.shard


def test_what_was_replaced_is_not_read(url: str):
    etag = stores.of(url).stat(url).etag  # type: ignore[arg-type]
    Path(url).write_bytes(b"other")

    with pytest.raises(ChangedError):
        contents(url, "the plan", etag=etag)
