"""Files of foreign libraries in all odd forms, decoded in Ray's workers: what each library reads, or a refusal that names the field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tarviz
from tests.odd.case import FAMILIES, Shard, shards

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore")]


def of_ray(shard: Shard) -> dict[str, Any]:
    """Values by key; of one number Ray's rows hold Python's int or float, here in the type the library gave it."""
    ext = shard.files[0].ext
    values = {row["__key__"]: row[ext] for row in tarviz.read_ray(shard.url, shard.chain, on_error="skip").take_all()}
    wanted = [shard.files[int(key)].value for key in values]
    return {
        key: np.asarray(value, want.dtype) if isinstance(value, bool | int | float) and isinstance(want, np.ndarray | np.generic) else value
        for (key, value), want in zip(values.items(), wanted, strict=True)
    }


@pytest.mark.parametrize("family", FAMILIES)
def test_ray_gives_what_the_library_reads(cluster: str, family: str, tmp_path: Path) -> None:
    pytest.importorskip("ray.data", reason="read_ray needs ray and its extra data")
    made = [shard for shard in shards(family, tmp_path) if "CBOR" not in str([odd.value for odd in shard.files])]

    assert not [line for shard in made for line in shard.differences(of_ray(shard))]


def test_what_cannot_be_pickled_is_named(cluster: str, tmp_path: Path) -> None:
    pytest.importorskip("ray.data", reason="read_ray needs ray and its extra data")
    made = [shard for shard in shards("trees", tmp_path) if "CBOR" in str([odd.value for odd in shard.files])]

    assert 2 == len(made)
    for shard in made:
        with pytest.raises(Exception, match=r"E_SCHEMA: cbor gives .* that Python cannot pickle.*\n?.*drop\(cbor\), or make plain values"):
            tarviz.read_ray(shard.url, shard.chain).take_all()
        assert shard.expected().keys() == {row["__key__"] for row in tarviz.read_ray(shard.url, f"{shard.chain}|drop(cbor)").take_all()}
