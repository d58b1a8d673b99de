"""The parts of `scheme://bucket/name` and how they become a path."""

from __future__ import annotations

from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarviz.model.errors import UsageError
from tarviz.model.types import URL
from tarviz.stores._remote.buckets import bucket_and_name, path, with_query
from tests.conftest import each_case


@each_case(
    ("url", "expected"),
    [("s3://b/a b#1?.tar", ("b", "a b#1?.tar")), ("gs://b", ("b", "")), ("s3://b//x", ("b", "/x")), ("az://b/%20", ("b", "%20"))],
)
def test_a_name_is_what_stands_behind_the_bucket_byte_for_byte(url, expected):
    assert expected == bucket_and_name(URL(url))


def test_a_url_without_a_bucket_is_refused():
    with pytest.raises(UsageError, match="names no bucket"):
        bucket_and_name(URL("s3:///a.tar"))


@given(st.text(min_size=1, max_size=30))
def test_any_name_comes_back_out_of_the_path(name):
    name = name.encode("utf-8", "surrogatepass").decode("utf-8", "surrogateescape")
    made = path("bucket", name)

    assert made.isascii()
    assert f"/bucket/{name}" == unquote(made, errors="surrogateescape")
    assert not set(made) & set(" ?#%") - {"%"}


def test_a_query_is_added_sorted_and_escaped():
    address = with_query("https://h/a?x=1", {"b": "c d+/", "a": ""})

    assert "https://h/a?x=1&a=&b=c%20d%2B%2F" == address
    assert [("x", "1"), ("a", ""), ("b", "c d+/")] == parse_qsl(urlsplit(address).query, keep_blank_values=True)
    assert "https://h/a" == with_query("https://h/a", {})
