"""The table of lines per feature: what is counted, and that a feature's growth is noticed."""

from __future__ import annotations

import pytest

from docs import lines


def test_a_file_belongs_to_the_first_feature_that_names_it():
    assert "convert" == lines.feature_of("commands/convert/outputs.py").name
    assert "tar tools" == lines.feature_of("commands/cat.py").name
    assert lines.feature_of("nowhere/a.py") is None


@pytest.mark.matrix
def test_the_total_is_the_sum_of_all_python_of_the_package():
    every = sum(lines.python_lines(path.read_text("utf-8")) for path in (lines.ROOT / "tarviz").rglob("*.py"))

    assert every == sum(python for python, _ in lines.counted().values())


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("x = 1\n\n\ny = 2  # two\n", 2),
        ('def f():\n    """What.\n\n    Why.\n    """\n    return 1\n', 2),
        ("# only why\n", 0),
        ('x = """a\nb"""\n', 2),
    ],
)
def test_blank_lines_comments_and_docstrings_do_not_count(text, count):
    assert count == lines.python_lines(text)


def test_comments_of_a_style_sheet_do_not_count():
    assert 2 == lines.page_lines("/* why\n   and how */\na {\n}\n\n// no\n")


@pytest.mark.matrix
def test_a_feature_that_grew_is_named(tmp_path, monkeypatch):
    page = tmp_path / "growth.md"
    page.write_text(lines.PAGE.read_text("utf-8").replace("| reading | ", "| reading | 0\n| was | "), "utf-8")
    monkeypatch.setattr(lines, "PAGE", page)

    assert ["reading"] == [each.partition(":")[0] for each in lines.grown()]
