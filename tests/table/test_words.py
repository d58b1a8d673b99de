"""Words looked for in key and texts: the same records as by looking through them, the best first."""

from __future__ import annotations

import io
import random

import pytest

import tarviz
from tarviz.model.errors import UsageError
from tarviz.table import words


@pytest.fixture
def content() -> list[tuple[str, dict[str, bytes]]]:
    draw = random.Random(0)
    some = ["boat", "boats", "at", "sea", "seaside", "don't", "Über", "100%", "007"]
    return [
        (
            f"{draw.choice(['Boat', 'dog'])}{at:03}",
            {"txt": " ".join(draw.choices(some, k=draw.randint(1, 6))).encode(), "caption": draw.choice(some).encode()},
        )
        for at in range(300)
    ]


@pytest.mark.parametrize("sought", ["boat", "boat sea", "SEA don't", "über", "100%", '"boat at"', "001", "07", "nowhere"])
def test_search_and_filter_give_what_looking_through_all_texts_does(make, content, sought):
    table = tarviz.table(make(content))
    asked = ["boat at"] if sought.startswith('"') else sought.lower().split()
    texts = [f"{key}\n{fields['txt'].decode()}\n{fields['caption'].decode()}".lower() for key, fields in content]
    wanted = [at for at, text in enumerate(texts) if all(word in text for word in asked)]

    assert wanted == table.rows(sought).n.tolist()
    assert wanted == sorted(table.search(sought, None).n.tolist())


def test_whole_words_come_first_and_then_the_shorter_text(make):
    table = tarviz.table(
        make(
            [
                ("a", {"txt": b"boats by the seaside"}),
                ("b", {"txt": b"a boat that lies far out at sea"}),
                ("c", {"txt": b"boat at sea"}),
                ("d", {"txt": b"a boat at the seaside"}),
            ]
        )
    )
    found = table.search("boat sea")

    assert [2, 1, 3, 0] == found.n.tolist()
    assert found.score is not None
    assert [2, 2, 1, 0] == found.score.tolist()
    assert [2, 1] == table.search("boat sea", 2).n.tolist()


def test_a_word_after_key_is_in_the_key(make):
    table = tarviz.table(make([("boat", {"txt": b"sea"}), ("dog", {"txt": b"boat"})]))

    assert [0] == table.search("key:boat").n.tolist()
    assert [0, 1] == sorted(table.search("boat").n.tolist())


def test_texts_too_large_to_be_kept_are_looked_through_where_they_lie(make, content, monkeypatch):
    path = make(content)
    wanted = tarviz.table(path).search("boat sea", None).n.tolist()
    monkeypatch.setattr(words, "_SHARE", 1 << 60)

    assert wanted == tarviz.table(path).search("boat sea", None).n.tolist()


def test_words_are_found_in_columns_made_later(make):
    table = tarviz.table([make([("a", {"txt": b"boat", "json": b'{"w": 1}'})]), make([("b", {"caption": b"boat"})], "b.tar")])

    assert 2 == len(table.search("boat"))
    assert 1 == len(table.rows("search('boat') and json.w = 1"))


def test_no_word_is_said(make):
    with pytest.raises(UsageError, match="no word"):
        tarviz.table(make([("a", {"txt": b"boat"})])).search("  ")


@pytest.mark.parametrize(
    ("sought", "held"),
    [("İstanbul", "istanbul"), ("strasse", "STRAßE"), ("ẞ", "ss"), ("CAFE\u0301", "café"), ("café", "cafe\u0301"), ("ΣΟΦΟΣ", "σοφος")],
)
def test_both_sides_are_folded_alike_at_every_door(make, monkeypatch, sought, held):
    for one, other in ((sought, held), (held, sought)):
        path = make([("a", {"txt": f"at {other}".encode()}), (other, {"cls": b"1"}), ("c", {"txt": b"else"})])
        table = tarviz.table(path)
        found = table.search(one, None)

        assert [0, 1] == table.rows(one).n.tolist() == sorted(found.n.tolist())
        assert found.score is not None
        assert [1, 1] == found.score.tolist()
        assert [1] == table.rows(f"key:{one}").n.tolist() == table.search(f"key:{one}").n.tolist()
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
        assert ["a", other] == [record.key for record in tarviz.records("-", where=one)]


def test_what_is_no_text_is_refused(make):
    with pytest.raises(UsageError, match="5 is no text"):
        tarviz.table(make([("a", {"txt": b"boat"})])).search(5)


def test_texts_too_large_to_be_held_are_looked_through_where_they_lie(make, monkeypatch):
    path = make([("a", {"txt": b"a boat", "cls": b"7"}), ("b", {"caption": b"boat at sea", "txt": b"boats"}), ("boat", {"cls": b"cat"})])

    def found() -> list[object]:
        table = tarviz.table(path)
        ask = [table.search(text) for text in ("boat", "cat", "7", "boat sea", "key:boat")]
        return [(each.n.tolist(), each.score.tolist()) for each in ask]

    expected = [([0, 2, 1], [1, 1, 1]), ([2], [1]), ([], []), ([1], [2]), ([2], [1])]
    assert expected == found()
    monkeypatch.setattr(words, "_SHARE", 1 << 60)
    assert expected == found()
