"""With `where=` the graph gets the records that it chooses, shared out evenly among ranks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tarviz.pipeline import Pipeline
from tarviz.samples import write_shard

pytest.importorskip("tensorflow", reason="tensorflow: pip install 'tarviz[tensorflow]'")
pytestmark = pytest.mark.filterwarnings("ignore:W_EMPTY")


@pytest.mark.matrix
def test_even_ones_share_a_choice(tmp_path: Path) -> None:
    for at, numbers in enumerate((range(40), range(40, 42), range(42, 71))):
        write_shard(tmp_path / f"n-{at}.tar", ((f"r{n:03d}", {"cls": b"%d" % n}) for n in numbers))
    pipeline = Pipeline(tmp_path / "n-{0..2}.tar", "decode(cls)", select="cls", where="cls % 3 = 1")
    ranks = [pipeline.tf(rank=rank, world_size=3, even=True) for rank in range(3)]
    chosen = sorted(int(cls) for cls in pipeline)
    found = [[int(cls) for cls in dataset.as_numpy_iterator()] for dataset in ranks]

    assert [len(chosen) // 3] * 3 == [int(dataset.cardinality()) for dataset in ranks] == [*map(len, found)]
    assert len(chosen) == int(pipeline.tf().cardinality())
    assert not {one for part in found for one in part} - set(chosen)
    assert sum(map(len, found)) == len({one for part in found for one in part})
