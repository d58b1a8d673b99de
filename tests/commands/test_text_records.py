"""`proc --mode`: lines, pages and keys of texts as records, as tarproc of 2020 had them."""

from __future__ import annotations

import pytest

from tarviz.commands.proc import proc
from tarviz.model.errors import UsageError
from tests.commands.conftest import plain


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


class TestMode:
    def test_each_line_is_a_record(self, folder):
        (folder / "t.txt").write_text("one\n\nthree")

        proc("t.txt", "o.tar", mode="lines", command="tr a-z A-Z < sample.txt > sample.up")

        expected = [("0", {"txt": b"one\n", "up": b"ONE\n"}), ("1", {"txt": b"\n", "up": b"\n"}), ("2", {"txt": b"three", "up": b"THREE"})]
        assert expected == plain("o.tar")

    def test_lines_are_counted_over_all_texts(self, folder):
        (folder / "a.txt").write_text("a\nb\n")
        (folder / "b.txt").write_text("c\n")

        proc(["a.txt", "b.txt"], "o.tar", mode="lines", command="true")

        assert ["0", "1", "2"] == [key for key, _ in plain("o.tar")]

    def test_pages_end_at_a_form_feed_that_begins_the_next(self, folder):
        (folder / "t.txt").write_text("a\nb\n\f\nc\n")

        proc("t.txt", "o.tar", mode="pages", command="true")

        assert [("0", {"txt": b"a\nb\n"}), ("1", {"txt": b"\f\nc\n"})] == plain("o.tar")

    def test_a_key_is_a_record_without_fields(self, folder):
        (folder / "keys").write_text("train/n1\nn2\n")

        proc("keys", "o.tar", mode="keys", command='cp sample.__key__ sample.seen; echo "$TARVIZ_KEY" > sample.env')

        expected = [("train/n1", {"env": b"train/n1\n", "seen": b"train/n1"}), ("n2", {"env": b"n2\n", "seen": b"n2"})]
        assert expected == plain("o.tar")

    def test_a_key_for_which_nothing_is_made_is_gone(self, folder):
        (folder / "keys").write_text("n1\nn2\n")

        proc("keys", "o.tar", mode="keys", command='[ "$TARVIZ_KEY" = n1 ] || echo x > sample.txt')

        assert [("n2", {"txt": b"x\n"})] == plain("o.tar")

    def test_a_key_with_a_dot_is_refused(self, folder):
        (folder / "keys").write_text("a.b\n")

        with pytest.raises(UsageError, match=r"'a\.b' cannot be the key"):
            proc("keys", "o.tar", mode="keys", command="true")

        assert not (folder / "o.tar").exists()

    def test_the_old_name_takes_it(self, folder, bash):
        made = bash("seq 3 | tarproc --mode lines -c 'cat sample.txt > sample.num' - -o o.tar")

        assert 0 == made.returncode, made.stderr
        assert [("0", {"num": b"1\n", "txt": b"1\n"}), ("1", {"num": b"2\n", "txt": b"2\n"}), ("2", {"num": b"3\n", "txt": b"3\n"})] == [
            (key, dict(sorted(fields.items()))) for key, fields in plain("o.tar")
        ]
