"""Regular expressions that cannot run away, however the text they meet is made."""

from __future__ import annotations

import pytest

from tarviz.model.errors import UsageError
from tarviz.tools.bounded_patterns import bounded


@pytest.mark.parametrize(
    "pattern",
    [
        r"^n\d+_",
        r".*x.*",
        r"(a|b)c",
        r"a{3}b{2,16}",
        r"(?:ab){2}",
        r"(?=a+)b*",
        "",
        r"[^/]+/(.*)",
        r"[a-z]{1,16}_\d{1,16}_[a-z]{1,16}",
        "(cat|dog)_(x|yz)",
    ],
)
def test_usual_ones_are_taken_and_end_on_any_text(pattern: str):
    found = bounded(pattern)
    for text in ("a" * 5000, "ab" * 2500 + "!", "/" * 5000):
        found.search(text)


@pytest.mark.parametrize(
    "pattern",
    [
        r"(a+)+$",
        r"(a|a)*$",
        r"(.*a){20}",
        r"a*b*c*",
        r"((ab)*)*",
        r"(a)(\1*)+",
        r"(?:(?:a{1,20})+)",
        r"(a?){30}b",
        r"(?:a{1,2}){16}b",
        "a?" * 20 + "b",
        r"(?P<x>a*)(?(x)b*|c*)d*",
    ],
)
def test_those_that_could_take_for_ever_are_refused(pattern: str):
    with pytest.raises(UsageError, match="could take for ever"):
        bounded(pattern)


@pytest.mark.parametrize("pattern", ["(", "[a", "a" * 201, "(?P<1>a)", "a{99999999999}", "(" * 150 + ")" * 50])
def test_what_is_none_or_too_long_is_refused(pattern: str):
    with pytest.raises(UsageError):
        bounded(pattern)
