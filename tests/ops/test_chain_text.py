"""Chain text: it reads back whatever it holds, errors point, nothing is evaluated."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarviz.model.errors import ChainError
from tarviz.ops import (
    CenterCrop,
    Chain,
    Convert,
    Decode,
    Drop,
    Encode,
    Flip,
    Keep,
    Normalize,
    Op,
    RandomCrop,
    Rename,
    Resize,
    Rotate,
    parse_chain,
)
from tarviz.ops.chain_text import error_at, is_bare, parse_call, parse_calls, print_call, print_value

NAMES = st.one_of(
    st.sampled_from(
        ["jpg", "seg.png", "jpg;png", "class", "None", "True", "7z", "a b", "größe", "x-y", "if", "'", '"', "\\", "a'\"b", "|", "\n"]
    ),
    st.text(min_size=1, max_size=12).filter(lambda name: not name.startswith("__")),
)
NUMBERS = st.one_of(st.integers(-(10**30), 10**30), st.floats(allow_nan=False, allow_infinity=False))
SIZES = st.tuples(st.integers(1, 9999), st.integers(1, 9999))
OPS: st.SearchStrategy[Op] = st.one_of(
    st.builds(Decode, NAMES, unsafe=st.lists(NAMES, max_size=2).map(tuple)),
    st.builds(Decode, st.sampled_from(["jpg", "seg.png", "jpg;png"]), channels=st.sampled_from([0, 1, 3, 4]), page=st.integers(0, 3)),
    st.builds(Decode, st.sampled_from(["flac", "a.wav"]), rate=st.integers(1, 48_000), mono=st.booleans(), seconds=st.floats(0.01, 9)),
    st.builds(Decode, st.just("mp4"), frames=st.integers(1, 99), start=st.floats(0, 9), sound=st.booleans()),
    st.builds(Convert, NAMES, st.sampled_from(["float32", "uint8"])),
    st.builds(Resize, NAMES, SIZES),
    st.builds(CenterCrop, NAMES, SIZES),
    st.builds(RandomCrop, NAMES, SIZES),
    st.builds(Rotate, NAMES, st.floats(-720, 720)),
    st.builds(Flip, NAMES, st.sampled_from(["horizontal", "vertical"]), st.floats(0, 1)),
    st.builds(Normalize, NAMES, NUMBERS, st.floats(0.1, 9) | st.tuples(st.floats(0.1, 9))),
    st.builds(Encode, NAMES, st.just("png"), quality=st.integers(1, 100)),
    st.lists(NAMES, min_size=1, max_size=3).map(lambda names: Keep(*names)),
    st.lists(NAMES, min_size=1, max_size=3).map(lambda names: Drop(*names)),
    st.dictionaries(NAMES, st.sampled_from(["jpg", "jpg;png", "a b"]), min_size=1, max_size=3).map(Rename),
)
VALUES = st.recursive(
    st.one_of(NAMES, NUMBERS, st.booleans(), st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.lists(inner, max_size=3).map(tuple), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=8,
)


class TestText:
    @given(st.lists(OPS, max_size=4))
    def test_every_chain_reads_back(self, ops: list[Op]) -> None:
        chain = Chain(*ops)

        assert chain == parse_chain(str(chain))
        assert chain == pickle.loads(pickle.dumps(chain))
        assert chain == eval(repr(chain), {"Chain": Chain})

    @given(st.lists(VALUES, max_size=3), st.dictionaries(st.sampled_from(["a", "seg.png", "if"]), VALUES, max_size=2), st.booleans())
    def test_every_literal_reads_back(self, args: list[Any], keywords: dict[str, Any], quote: bool) -> None:
        call = parse_call(print_call("op", args, keywords, quote=quote))

        assert (args, keywords) == (call.args, call.keywords)

    @given(st.text(alphabet="decodresizjpg()[]{},:=|'\" \\1.3-+\n", max_size=40))
    def test_any_text_is_a_chain_or_a_chain_error(self, text: str) -> None:
        try:
            parse_chain(text)
        except ChainError as error:
            assert error.message

    def test_a_wrong_text_is_answered_with_place_and_cure(self) -> None:
        for text, message in [
            ("decode(jpg", r"expected ',' or '\)' inside decode\(…\), found the end of the text, at character 11"),
            ("decode jpg", r"expected '\(' after 'decode'"),
            ("decode(jpg)|", "expected the name of an op, found the end"),
            ("decode(jpg) resize(jpg, 3)", r"expected '\|' or the end, found 'resize', at character 13"),
            ("decode('jpg)", "a string is not closed"),
            ("resize(jpg, (3, 3)", r"expected ',' or '\)' inside resize"),
            ("resize(jpg, (3, 3", r"'\(' is not closed"),
            ("decode(jpg, channels=1, 3)", "without a name stands after one with a name"),
            ("decode(jpg, channels=1, channels=3)", "channels is given twice"),
            ("decode(jpg, 3=1)", "only a name can stand before '='"),
            ("decode(jpg, True=1)", "only a name can stand before '='"),
            ("decode(/jpg)", "'/' cannot stand here"),
            ("resize(jpg, 1__0)", "cannot be read as a number"),
            ("keep({a: 1)", "expected ',' or '}'"),
            ("keep({a})", "expected ':' after 'a'"),
            ("keep({(1,): 2})", "a key has to be a name or a number"),
            ("decode(" * 40, "inside each other"),
            ("decod(jpg)", "no op named 'decod', at character 1.*Did you mean decode"),
            ("decode(jpg)|CentreCrop(jpg, 3)", "no op named 'CentreCrop'.*The ops are augment, carry, center_crop, clip, convert"),
            ("CenterCrop(jpg, 3)", "Did you mean center_crop"),
            ("resize(jpg)", r"missing a required argument: 'size'.*It is resize\(ext, size, carry"),
            ("decode(jpg, chanels=3)", "unexpected keyword argument 'chanels'.*channels=3"),
            ("decode()", "missing a required argument"),
            ("decode(3)", "needs the name of a field, got 3"),
            ("resize(jpg, big)", "as .height, width. in pixels, got 'big'"),
        ]:
            with pytest.raises(ChainError, match=message):
                parse_chain(text)

    def test_nothing_is_evaluated(self) -> None:
        for text in ("decode(__import__('os').getcwd())", "decode(open('x'))", "resize(jpg, 2**99)", "decode(f'{1}')"):
            with pytest.raises(ChainError):
                parse_chain(text)

    @pytest.mark.parametrize(("opened", "closed"), ["[]", ("(", ",)"), ("g(", ")"), ("{a: ", "}"), ("g(x=", ")"), ("[1, ", "]")])
    def test_so_many_brackets_may_be_inside_each_other(self, opened: str, closed: str) -> None:
        def text(depth: int) -> str:
            return f"f({opened * depth}1{closed * depth})"

        assert ["f"] * 40 == [call.name for call in parse_calls("|".join([text(29)] * 40))]
        with pytest.raises(ChainError, match="more than 30 brackets inside each other"):
            parse_calls(text(30))

    def test_white_space_does_not_matter(self) -> None:
        assert parse_chain("decode(jpg)|resize(jpg,(32,48))") == parse_chain("\n decode( jpg )\n| resize(jpg , (32, 48), )")

    def test_an_empty_text_is_the_empty_chain(self) -> None:
        assert Chain() == parse_chain("  ")


class TestPrint:
    def test_strings_stand_bare_where_they_can(self) -> None:
        for value, expected in [
            ("seg.png", "seg.png"),
            ("jpg;png", "jpg;png"),
            ("a b", '"a b"'),
            ("None", '"None"'),
            ("7z", '"7z"'),
            ((3,), "(3,)"),
            ([1, ("a", None)], "[1, (a, None)]"),
            ({"a": 1.5}, "{a: 1.5}"),
        ]:
            assert expected == print_value(value)
            assert is_bare(str(value)) == (expected == value)

    def test_quoted_text_is_python(self) -> None:
        assert 'op("jpg", size=("a", 3))' == print_call("op", ["jpg"], {"size": ("a", 3)}, quote=True)


class TestPlace:
    def test_a_call_says_where_it_stands(self) -> None:
        assert [("decode", 0), ("resize", 14)] == [(call.name, call.at) for call in parse_calls("decode(jpg) | resize(jpg, 3)")]

    def test_a_long_text_is_quoted_around_the_place(self) -> None:
        message = str(error_at("wrong", "a" * 100 + "b" * 100, 100))

        assert f"at character 101: …{'a' * 40}→{'b' * 40}…" in message

    def test_one_call_is_expected_where_one_is_asked_for(self) -> None:
        with pytest.raises(ChainError, match="expected one call, got 2"):
            parse_call("a(b)|c(d)")


def test_reading_a_chain_loads_no_framework() -> None:
    code = (
        "import sys; from tarviz.ops import Chain; Chain.of('decode(jpg)|resize(jpg, 3)'); "
        "print([name for name in ('tensorflow', 'torch', 'IPython') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "[]" == result.stdout.strip()
