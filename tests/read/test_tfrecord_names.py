from __future__ import annotations

import pytest

from tarviz.model.errors import UsageError
from tarviz.model.types import URL
from tarviz.read.tfrecord_names import has_tfrecord_name, refuse, stems
from tests.conftest import each_case

NAMES = ["x.tfrecord", "X.TFRecords.gz", "x.record", "x.tfrec", "m.tfrecord-00000-of-00010", "m.tfrecord-00000-of-00010.gz"]


@each_case("name", NAMES)
def test_a_name_says_that_it_is_one(name: str) -> None:
    assert has_tfrecord_name(URL(name))


@each_case("name", ["x.tar", "x.record.tar", "x.record.tar.gz", "record", "x.tfrecord-0-of", "-"])
def test_other_names_do_not(name: str) -> None:
    assert not has_tfrecord_name(URL(name))


def test_one_among_shards_is_refused_by_name() -> None:
    refuse([URL("a.tar"), URL("b.tar")])
    with pytest.raises(UsageError, match=r"x\.tfrecord"):
        refuse([URL("a.tar"), URL("x.tfrecord")])


def test_keys_begin_with_the_name_and_where_two_have_it_with_a_place() -> None:
    urls = [URL("https://host/x y.tfrecord.gz?sig=1"), URL("b/x y.record"), URL(".record")]

    assert ["x_y", "x_y-1", "record"] == list(stems(urls).values())
