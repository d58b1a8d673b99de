"""The read options as keywords are the fields of `ReadOptions`."""

from __future__ import annotations

from dataclasses import fields

import click
import pytest

from tarviz.cli import verb_base
from tarviz.model.errors import UsageError
from tarviz.read.keywords import CHOICES, ReadKeywords
from tarviz.read.stream import ReadOptions
from tests.conftest import each_case


def test_each_field_has_its_keyword_of_the_same_type():
    """Other than `where`: inside, the records that it chose may stand in its place."""
    options = {each.name: each.type for each in fields(ReadOptions)}
    keywords = {name: getattr(kind, "__forward_arg__", kind) for name, kind in ReadKeywords.__annotations__.items()}

    assert options | {"where": "str"} == keywords


def test_the_first_word_of_a_choice_is_the_default():
    assert {"key_split", "group", "duplicates", "on_error"} == set(CHOICES)
    for name, words in CHOICES.items():
        assert getattr(ReadOptions(), name) == words[0]


@each_case("name", CHOICES)
def test_any_other_word_is_refused_with_those_there_are(name):
    with pytest.raises(UsageError, match=f"{name}='sideways' is not one of {', '.join(CHOICES[name])}"):
        ReadOptions(**{name: "sideways"})


@each_case("name", CHOICES)
def test_command_lines_offer_the_same_words(name):
    option = verb_base.on_error_option if name == "on_error" else verb_base.READ_OPTIONS[name]
    made = next(param for param in click.command()(option(lambda: None)).params if param.name == name)

    assert isinstance(made.type, click.Choice)
    assert CHOICES[name] == tuple(made.type.choices)
    assert CHOICES[name][0] == made.default
