"""Options of runners, as `help()` and editors show them."""

from __future__ import annotations

import inspect
from typing import Annotated, Any, TypedDict

import pytest

from tarviz.run_keywords import Option, describe, takes
from tarviz.runners.eager import Eager


class _Keywords(TypedDict, total=False):
    width: Annotated[int, Option("records of a batch", 3)]
    name: Annotated[str | None, Option("what it is called; None: nothing")]


def test_they_are_in_signature_and_text():
    def run(self: Any, url: str, **options: Any) -> None:
        """Runs it.

        Twice.
        """

    made = describe(_Keywords)(run)
    found = [(each.name, each.kind, each.default, each.annotation) for each in inspect.signature(made).parameters.values()]
    plain, named, none = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty

    assert made is run
    assert [
        ("self", plain, none, "Any"),
        ("url", plain, none, "str"),
        ("width", named, 3, int),
        ("name", named, None, str | None),
    ] == found
    assert (
        "Runs it.\n\nTwice.\n\nOptions, and what they are by default:\n\n"
        "    width: records of a batch [3]\n    name: what it is called; None: nothing [None]"
    ) == made.__doc__


def test_a_method_may_say_nothing_itself():
    def run(**options: Any) -> None: ...

    assert (describe(_Keywords)(run).__doc__ or "").startswith("\n\nOptions, and what they are by default:\n\n    width: ")


def test_what_takes_them_gets_all_of_them_and_no_others():
    @takes(_Keywords)
    def run(url: str, **options: Any) -> Any:
        return url, options

    assert ("a", {"width": 3, "name": None}) == run("a")
    assert ("a", {"width": 5, "name": None}) == run("a", width=5)
    assert ["url", "width", "name"] == list(inspect.signature(run).parameters)
    with pytest.raises(TypeError, match="unexpected keyword argument 'height'"):
        run("a", height=3)
    with pytest.raises(TypeError, match="missing a required argument: 'url'"):
        run()


def test_a_class_shows_the_options_that_it_takes():
    assert {"pipeline", "drop_remainder", "engine"} <= inspect.signature(Eager).parameters.keys()
