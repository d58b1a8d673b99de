"""Hundreds of files of foreign libraries in odd forms: every runner and the preview give what the library reads, or refuse it by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tarviz
from tarviz.model.errors import SchemaError, TarvizError
from tarviz.ops import Func, parse_chain
from tarviz.pipeline import Pipeline
from tarviz.widgets.compare.controller import Compare
from tests.odd.case import FAMILIES, REFUSED, Shard, odd_files, shards

pytestmark = [pytest.mark.matrix, pytest.mark.filterwarnings("ignore")]


NOT_WHOLE = ("json of nothing", "npy of objects")
"""What is no file of its kind, or is not to be opened."""


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    odd_files(request.param)
    return str(request.param)


def test_there_are_hundreds_and_few_are_refused() -> None:
    files = [odd for name in FAMILIES for odd in odd_files(name)]
    refused = [odd.name for odd in files if odd.value is REFUSED]

    assert len(files) - len(refused) >= 290
    assert len(refused) < 25, refused
    assert max(len(odd.data) for odd in files) < 100_000


def test_what_is_refused_is_named_and_has_a_hint(family: str) -> None:
    for odd in odd_files(family):
        if odd.value is REFUSED:
            with pytest.raises(TarvizError) as caught:
                parse_chain(odd.chain).run({"__key__": odd.name, odd.ext: odd.data})

            assert caught.value.hint, odd.name
            assert "this is not a picture" not in str(caught.value), odd.name


def test_a_whole_file_is_not_called_damaged(family: str, tmp_path: Path) -> None:
    for shard in shards(family, tmp_path):
        faults = tarviz.verify(shard.url, deep=True).faults
        found = [(shard.files[int(fault["record"])].name, fault["message"]) for fault in faults]

        assert not [(name, message) for name, message in found if name not in NOT_WHOLE]


def of_eager(shard: Shard) -> dict[str, Any]:
    return dict(Pipeline(shard.url, shard.chain, select=("__key__", shard.files[0].ext), on_error="skip"))


def of_torch(shard: Shard) -> dict[str, Any]:
    pytest.importorskip("torch", reason="torch: pip install 'tarviz[torch]'")
    pipeline = Pipeline(shard.url, shard.chain, select=("__key__", shard.files[0].ext), on_error="skip")
    return dict(pipeline.torch())


def of_tf(shard: Shard) -> dict[str, Any]:
    pytest.importorskip("tensorflow", reason="TensorFlow: pip install 'tarviz[tensorflow-cpu]'")
    ext, first = shard.files[0].ext, shard.files[0].value
    kept: dict[str, Any] = {}
    ops: list[Any] = [shard.chain]
    if by_hand := ext.startswith("json") or not _is_tensor(first):  # what no tensor holds stays behind

        def keep(record: dict[str, Any]) -> dict[str, Any]:
            kept[record["__key__"]] = record[ext]
            return {**record, ext: b""}

        ops.append(Func(keep, output_types={ext: "bytes"}))
    found = Pipeline(shard.url, ops, select=("__key__", ext), on_error="skip").tf().as_numpy_iterator()
    given = {key.decode(): value for key, value in found}
    return {key: kept[key] if by_hand else value.decode() if isinstance(first, str) else value for key, value in given.items()}


@pytest.mark.parametrize("family", ["tables", "clouds"])
def test_what_no_tensor_holds_is_named(family: str, tmp_path: Path) -> None:
    pytest.importorskip("tensorflow", reason="TensorFlow: pip install 'tarviz[tensorflow-cpu]'")
    for shard in shards(family, tmp_path):
        with pytest.raises(SchemaError, match=r"no tensor holds.*output_types, make an array of it with Func"):
            Pipeline(shard.url, shard.chain, select=shard.files[0].ext, on_error="skip").tf()


def _is_tensor(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biufc")


def of_preview(shard: Shard) -> dict[str, Any]:
    found = Compare(shard.url, {"a": shard.chain}, records=len(shard.files))
    try:
        assert found.wait(120)
        strips = found.columns[0].strips
        return {f"{at:03d}": strip.tiles[-1].value for at, strip in enumerate(strips) if strip is not None and strip.error is None}
    finally:
        found.close()


@pytest.mark.parametrize("run", [of_eager, of_preview, of_torch, of_tf])
def test_every_runner_gives_what_the_library_reads(run: Callable[[Shard], dict[str, Any]], family: str, tmp_path: Path) -> None:
    assert not [line for shard in shards(family, tmp_path) for line in shard.differences(run(shard))]
