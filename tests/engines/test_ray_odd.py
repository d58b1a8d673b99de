"""Sound, films and pictures of foreign libraries in odd forms, decoded in Ray's workers: what each library reads."""

from __future__ import annotations

from pathlib import Path

import pytest

import tarviz
from tests.odd.case import shards

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize(
    "family", ["tiffs", "pngs", "jpegs", "plain", "modern", "drawn", "sounds", "sounds_by_av", "films", "animations", "volumes"]
)
def test_ray_gives_what_the_library_reads(cluster: str, family: str, tmp_path: Path) -> None:
    pytest.importorskip("ray.data", reason="read_ray needs ray and its extra data")
    lines = []
    for shard in shards(family, tmp_path):
        if getattr(getattr(shard.files[0].value, "dtype", None), "kind", "") == "c":
            continue  # Arrow has no complex numbers
        rows = tarviz.read_ray(shard.url, shard.chain, on_error="skip").take_all()
        lines += shard.differences({row["__key__"]: row[shard.files[0].ext] for row in rows})

    assert not lines
