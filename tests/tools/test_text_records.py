"""Text as records: what tar is written of lines, pages and keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarviz.model.errors import UsageError
from tarviz.model.types import URL
from tarviz.tools import text_records
from tarviz.tools.text_records import Mode, tar_of, write_tar
from tests.commands.conftest import plain


def records(folder: Path, mode: Mode, *texts: bytes, piece: int = 1 << 20) -> list[tuple[str, dict[str, bytes]]]:
    """The records of these texts, read `piece` bytes at a time."""
    urls = []
    for at, text in enumerate(texts):
        (folder / f"{at}.txt").write_bytes(text)
        urls.append(URL(str(folder / f"{at}.txt")))
    with pytest.MonkeyPatch.context() as patch, open(folder / "made.tar", "wb") as file:
        patch.setattr(text_records, "_PIECE", piece)
        write_tar(urls, mode, file)
    return plain(folder / "made.tar")


@given(st.lists(st.text("ab\n", max_size=20).map(str.encode), max_size=3), st.integers(1, 9))
def test_lines_are_those_of_each_text_wherever_it_is_cut(tmp_path_factory: Any, texts: list[bytes], piece: int):
    lines = [line for text in texts for line in text.splitlines(keepends=True)]

    assert [(str(at), {"txt": line}) for at, line in enumerate(lines)] == records(
        tmp_path_factory.mktemp("text"), "lines", *texts, piece=piece
    )


def test_a_page_begins_at_a_line_of_a_form_feed(tmp_path):
    for text, pages in [
        (b"a\nb\n\f\nc\n", [b"a\nb\n", b"\f\nc\n"]),
        (b"a\n\f\n", [b"a\n", b"\f\n"]),
        (b"\f\na", [b"", b"\f\na"]),
        (b"a\f\nb", [b"a\f\nb"]),
        (b"", []),
    ]:
        assert [(str(at), {"txt": page}) for at, page in enumerate([*pages, b"more"])] == records(tmp_path, "pages", text, b"more")


def test_a_key_is_its_line_without_the_space_around_it(tmp_path: Path):
    assert [(key, {"__key__": key.encode()}) for key in ("a", "b.c/d e", "f")] == records(tmp_path, "keys", b" a \nb.c/d e\n", b"f")


def test_what_a_tar_would_cut_is_no_key(tmp_path):
    for text in [b"a\n\nb", b"a.b", b"a/", b"a/b.c"]:
        with pytest.raises(UsageError, match="cannot be the key of a record"):
            records(tmp_path, "keys", text)


def test_tars_are_read_as_they_are_and_texts_are_gone_afterwards(tmp_path: Path):
    urls = [URL(str(tmp_path / "a.txt"))]
    (tmp_path / "a.txt").write_bytes(b"1\n2\n")

    with tar_of(urls, "tar", tmp_path) as found:
        assert urls == found
    with tar_of(urls, "lines", tmp_path) as [found_one]:
        assert found_one.startswith(f"{tmp_path}/tarviz-text-")
        assert [("0", {"txt": b"1\n"}), ("1", {"txt": b"2\n"})] == plain(found_one)
    assert ["a.txt"] == [each.name for each in tmp_path.iterdir()]
