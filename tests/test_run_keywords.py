"""Options of runners, as `help()` and editors show them."""

from __future__ import annotations

import inspect
from typing import Annotated, Any, TypedDict

from tarviz.run_keywords import Option, describe


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
