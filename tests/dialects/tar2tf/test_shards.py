"""What both generations of tar2tf say of a bucket and of the files that are written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tarviz import stores
from tarviz.dialects.tar2tf import AisDataset, Dataset, _shards
from tarviz.model.errors import UsageError
from tarviz.model.types import URL
from tarviz.pipeline import Pipeline
from tarviz.testing.strategies import numbered_records


def test_a_data_set_shows_its_bucket_and_what_it_makes(tmp_path: Path) -> None:
    one, two = AisDataset(tmp_path, None, "jpg", "cls"), Dataset(tmp_path, None, "decode(cls)", ["jpg", "cls"])

    assert f"AisDataset({str(tmp_path)!r}, '', {one.selection!r})" == repr(one)
    assert f"Dataset({str(tmp_path)!r}, 'decode(cls)', {two.selection!r})" == repr(two)
    assert str(tmp_path) == one.bucket_name == two.bucket_name


def test_few_bytes_on_this_machine_are_written_without_workers(
    make: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    here, there = str(make(numbered_records(3))), URL("memory://tar2tf/a.tar")
    with stores.of(there).create(there) as sink:
        sink.write(Path(here).read_bytes())
    asked: list[int] = []
    monkeypatch.setattr(Pipeline, "convert", lambda self, out, **options: asked.append(options["num_workers"]) or [])

    def written(urls: list[str], outputs: Any = "out-{}", function: Any = None, size: int | None = None) -> None:
        _shards.write(urls, outputs, function, size, 3)

    written([here])
    written([there])
    monkeypatch.setattr(_shards, "_LITTLE", 100)
    written([here])
    written([here], function=len)
    written([here], _shards.GivenNames("", iter(["a"]), []))

    assert [1, 3, 3, 1, 1] == asked
    with pytest.raises(UsageError, match=r"ended after 1 name\(s\)"):
        written([here, here], _shards.GivenNames("", iter(["a"]), []))
    written([here, here], _shards.GivenNames("", iter(["a"]), []), size=1000)  # nobody knows how many there will be
    with pytest.raises(UsageError, match="record_to_example=3 is not a function"):
        written([here], function=3)
