"""Stages as methods: each adds what the function of its name makes, to a copy."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import tarviz.dialects.webdataset as wds
from tarviz.dialects.webdataset import filters
from tarviz.dialects.webdataset.parts.fluid import FluidInterface
from tests.conftest import each_case

ONE = {"__key__": "k", "a": 1, "b": 2}


def source() -> Any:
    return wds.FluidWrapper([ONE, {**ONE, "a": 3}])


@each_case(
    ("name", "given", "expected"),
    [
        ("batched", (2, None), [[ONE, {**ONE, "a": 3}]]),
        ("map", (len,), [3, 3]),
        ("map_dict", {"a": str}, [{**ONE, "a": "1"}, {**ONE, "a": "3"}]),
        ("select", (lambda item: item["a"] > 1,), [{**ONE, "a": 3}]),
        ("to_tuple", ("b", "a"), [(2, 1), (2, 3)]),
        ("slice", (1, None), [{**ONE, "a": 3}]),
        ("rename", {"c": "a", "keep": False}, [{"c": 1}, {"c": 3}]),
        ("rsample", (0,), []),
        ("rename_keys", {"c": "a"}, [{"c": 1}, {"c": 3}]),
        ("extract_keys", ("b",), [(2,), (2,)]),
        ("xdecode", {"must_decode": False}, [ONE, {**ONE, "a": 3}]),
        ("mcached", (), [ONE, {**ONE, "a": 3}]),
        ("listed", (1,), [[ONE], [{**ONE, "a": 3}]]),
    ],
)
def test_a_method_adds_the_stage_of_its_name(name: str, given: Any, expected: list[Any]) -> None:
    before = source()
    after = getattr(before, name)(**given) if isinstance(given, dict) else getattr(before, name)(*given)

    assert expected == list(after)
    assert (1, 2) == (len(before.pipeline), len(after.pipeline))


def test_it_says_what_the_function_takes() -> None:
    for name in ("batched", "decode", "to_tuple", "rename_keys"):
        _, *more = inspect.signature(getattr(FluidInterface, name)).parameters.values()

        assert list(inspect.signature(getattr(filters, name)).parameters.values()) == more
        assert getattr(filters, name).__doc__ == getattr(FluidInterface, name).__doc__


def test_batches_are_taken_apart() -> None:
    assert [(2, 1), (2, 3)] == list(source().to_tuple("b", "a").batched(2).unbatched())
    assert [ONE, {**ONE, "a": 3}] == list(source().listed(2, partial=False).unlisted())
    assert [] == list(source().listed(3, partial=False))


def test_a_buffer_of_no_size_is_no_stage() -> None:
    sizes = [stage.size for given in ({"size": 7}, {"bufsize": 5}, {}) for stage in source().shuffle(**given).pipeline[1:]]

    assert [7, 5, 1000] == sizes
    assert 1 == len(source().shuffle(0).pipeline) == len(source().shuffle(bufsize=0).pipeline)


def test_keys_are_logged_where_a_file_is_named(tmp_path: Path) -> None:
    assert 1 == len(source().log_keys().pipeline)
    list(source().log_keys(str(tmp_path / "log")))

    assert "0\tNone\tNone\tk\n1\tNone\tNone\tk\n" == (tmp_path / "log").read_text()
