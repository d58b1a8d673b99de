"""Braces: what bash makes of them, counted first."""

import shutil
import subprocess

import pytest
from braceexpand import braceexpand
from hypothesis import assume, given
from hypothesis import strategies as st

from tarviz.model.errors import UsageError
from tarviz.stores.templates import LIMIT, braces, count, matching, natural
from tests.conftest import each_case


@each_case(
    ("template", "expected"),
    [
        ("a.tar", ["a.tar"]),
        ("{0..2}", ["0", "1", "2"]),
        ("{9..11}", ["9", "10", "11"]),
        ("{08..10}", ["08", "09", "10"]),
        ("{000..002}.tar", ["000.tar", "001.tar", "002.tar"]),
        ("{0..10..4}", ["0", "4", "8"]),
        ("{10..0..5}", ["10", "5", "0"]),
        ("{2..-1}", ["2", "1", "0", "-1"]),
        ("{a,b}-{0..1}", ["a-0", "a-1", "b-0", "b-1"]),
        ("{a,b{1,2}}", ["a", "b1", "b2"]),
        ("{,x}.tar", [".tar", "x.tar"]),
        ("{a..c}", ["a", "b", "c"]),
        ("{a,a}", ["a", "a"]),
        ("out-{}.tar", ["out-{}.tar"]),
        ("{shard:06d}", ["{shard:06d}"]),
        (r"a\{1,2\}", ["a{1,2}"]),
        ("a,b", ["a,b"]),
        ("", [""]),
    ],
)
def test_templates_expand_as_in_bash(template, expected):
    assert expected == braces(template)


@each_case(("template", "why"), [("a{1", "without its"), ("a}1{", "no { before"), ("{1{2,3}", "without its"), ("a}", "no { before")])
def test_braces_that_do_not_match_are_said(template, why):
    with pytest.raises(UsageError, match=why):
        braces(template)


@each_case("template", ["{0..1000000}", "{0..9999}{0..9999}", "{x{0..999}{0..999}{0..999},y}", "{0..99999999999999999999}" * 3])
def test_too_many_names_are_refused_before_they_are_made(template):
    with pytest.raises(UsageError, match="more than 1,000,000"):
        braces(template)


@pytest.mark.matrix
def test_the_limit_itself_is_allowed():
    assert LIMIT == len(braces("{1..1000000}"))


def test_deep_nesting_is_refused():
    with pytest.raises(UsageError, match="nested"):
        braces("{a," * 500 + "}" * 500)


pieces = st.recursive(
    st.sampled_from(["a", "b.", "/", "{0..3}", "{03..5}", "{a..d}", "{}", r"\{", r"\,", "{5..1..2}", "{x..Z}"]),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: "{" + ",".join(parts) + "}"), st.lists(inner, max_size=3).map("".join)
    ),
    max_leaves=6,
)


@given(pieces)
def test_the_count_is_the_number_of_names(template):
    assume(count(template) <= 20_000)

    assert len(list(braceexpand(template))) == count(template)


@given(st.text("{},.a1\\-", max_size=12))
def test_any_text_expands_or_is_refused(template):
    try:
        names = braces(template)
    except UsageError:
        return

    assert count(template) == len(names)


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@each_case("template", ["{0..10}", "{000..012..3}", "a{b,c}{1..2}", "{a,b{1..3},c}", "{5..1}", "{-2..2}", "x{}y"])
def test_bash_says_the_same(template):
    expected = subprocess.run(["bash", "-c", f"printf '%s\\n' {template}"], capture_output=True, text=True, check=True).stdout.split()

    assert expected == braces(template)


def test_numbers_sort_as_numbers():
    names = ["a1b", "a", "a10", "a2", "b1", "10", "9", "a01", "a²", "²", "1²2", "a10b", "a10.b"]

    assert ["1²2", "9", "10", "a", "a01", "a1b", "a2", "a10", "a10.b", "a10b", "a²", "b1", "²"] == sorted(names, key=natural)


@pytest.mark.parametrize("depth", [16, 17])
def test_braces_are_nested_sixteen_deep_at_most(depth):
    template = "{a," * depth + "b" + "}" * depth
    if depth == 16:
        assert ["a"] * 16 + ["b"] == braces(template)
    else:
        with pytest.raises(UsageError, match="more than 16 deep"):
            braces(template)


def test_numbers_of_any_length_sort():
    names = ["a" + "9" * 5000, "a" + "1" * 5000, "a" + "9" * 299, "a2"]

    assert ["a2", "a" + "9" * 299, "a" + "1" * 5000, "a" + "9" * 5000] == sorted(names, key=natural)


@each_case(
    ("pattern", "names"),
    [
        ("b/*.tar", ["b/a.tar", "b/a.b.tar", "b/?.tar"]),
        ("b/**.tar", ["b/a.tar", "b/a.b.tar", "b/x/a.tar", "b/x/.h/a.tar", "b/x/y/a.tar", "b/?.tar"]),
        ("b/**/a.tar", ["b/a.tar", "b/x/a.tar", "b/x/y/a.tar"]),
        ("b/*/a.tar", ["b/x/a.tar"]),
        ("b/?.tar", ["b/?.tar"]),
        ("b/.*", ["b/.h.tar"]),
    ],
)
def test_a_star_is_part_of_a_name_and_two_are_folders(pattern, names):
    there = ["b/a.tar", "b/a.b.tar", "b/.h.tar", "b/x/a.tar", "b/x/.h/a.tar", "b/x/y/a.tar", "b/?.tar", "b/a.tar2"]

    assert names == [name for name in there if matching(pattern).fullmatch(name)]
