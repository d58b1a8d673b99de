"""Shards in Ray Data: Arrow tables of blocks, on a real Ray on loopback."""

from __future__ import annotations

import io

import numpy as np
import pytest

import tarviz
from tarviz.pipeline import Pipeline
from tarviz.samples import write_shard

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(300), pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def urls(tmp_path):
    """Two shards of 50 and 30 records: a text of varying length, a class, a picture; a text is missing in one."""
    pytest.importorskip("ray.data", reason="read_ray needs ray and its extra data")
    from PIL import Image

    def records(first, count):
        for number in range(first, first + count):
            out = io.BytesIO()
            Image.fromarray(np.full((8, 8, 3), number, np.uint8)).save(out, "PNG")
            fields = {"png": out.getvalue(), "txt": b"t" * (number % 7), "cls": b"%d" % number}
            yield f"a/r{number:03d}", {name: data for name, data in fields.items() if name != "txt" or number != 61}

    write_shard(tmp_path / "s-0.tar", records(0, 50))
    write_shard(tmp_path / "s-1.tar", records(50, 30))
    return str(tmp_path / "s-{0..1}.tar")


def rows(dataset):
    return sorted(dataset.take_all(), key=lambda row: row["__key__"])


class TestReadRay:
    def test_rows_are_the_records(self, cluster, urls):
        expected = [dict(record) for record in Pipeline(urls)]

        found = rows(tarviz.read_ray(urls))

        assert [{"txt": None, **record} for record in expected] == found

    def test_a_chain_makes_tensors(self, cluster, urls):
        chain = "decode(png)|random_crop(png, (4, 4))|decode(cls)|drop(txt)"
        expected = list(Pipeline(urls, chain, seed=5))

        found = rows(tarviz.read_ray(urls, chain, seed=5))

        assert [record["cls"] for record in expected] == [row["cls"] for row in found]
        for record, row in zip(expected, found, strict=True):
            np.testing.assert_array_equal(record["png"], row["png"])

    def test_a_shard_is_cut_into_the_blocks_wanted(self, cluster, urls):
        dataset = tarviz.read_ray(urls.replace("{0..1}", "0"), override_num_blocks=3)

        assert 50 == len(rows(dataset))
        assert 3 == dataset.materialize().num_blocks()

    def test_a_shard_is_a_block_where_nobody_says_how_many(self, cluster, urls):
        dataset = tarviz.read_ray(urls).materialize()

        assert 2 == dataset.num_blocks()
        assert 80 == dataset.count()

    def test_fewer_blocks_than_shards(self, cluster, urls):
        dataset = tarviz.read_ray(urls, override_num_blocks=1).materialize()

        assert 1 == dataset.num_blocks()
        assert 80 == dataset.count()

    def test_damage_is_raised_or_skipped(self, cluster, urls, tmp_path):
        path = tmp_path / "s-1.tar"
        path.write_bytes(path.read_bytes()[:20_000])

        with pytest.raises(Exception, match="E_TRUNCATED"):
            tarviz.read_ray(urls).take_all()
        found = rows(tarviz.read_ray(urls, on_error="skip"))

        assert 50 < len(found) < 80

    def test_the_records_chosen(self, cluster, urls):
        assert ["a/r003"] == [row["__key__"] for row in tarviz.read_ray(urls, keys=["a/r003"]).take_all()]
