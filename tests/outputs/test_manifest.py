"""Manifests prove that an output is whole and made of these inputs in this way, and nothing else does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tarviz.model.errors import StoreError
from tarviz.model.types import URL
from tarviz.outputs.manifest import check_seen, find_kept, prove

FACTS = {"command": "gzip", "sources": [{"url": "a.tar", "etag": "1"}]}


@pytest.fixture
def url(tmp_path: Path) -> URL:
    (tmp_path / "out.tar").write_bytes(b"the bytes")
    made = URL(str(tmp_path / "out.tar"))
    prove(made, 3, FACTS)
    return made


def test_it_proves_an_output_of_the_same_facts(url: URL):
    found = find_kept(url, FACTS)

    assert found is not None
    assert (url, 3, 9, True) == (found.url, found.records, found.bytes, found.kept)


@pytest.mark.parametrize(
    "facts",
    [
        {**FACTS, "command": "xz"},
        {**FACTS, "more": 1},
        {**FACTS, "sources": [{"url": "a.tar", "etag": "2"}]},
        {"sources": [{"url": "a.tar", "etag": None}]},
        {"sources": [{"url": "a.tar", "etag": "1"}, {"url": "b.tar", "etag": None, "mtime": None}]},
    ],
    ids=["command", "more", "source", "a version that nobody knows", "one of two that nobody knows"],
)
def test_other_facts_prove_nothing(url: URL, facts: dict[str, object]):
    assert find_kept(url, facts) is None


def test_a_version_may_be_a_time_alone(tmp_path: Path):
    facts = {"sources": [{"url": "a.tar", "etag": None, "mtime": 5.0}]}
    (tmp_path / "out.tar").write_bytes(b"the bytes")
    prove(URL(str(tmp_path / "out.tar")), 3, facts)

    assert find_kept(URL(str(tmp_path / "out.tar")), facts) is not None
    assert find_kept(URL(str(tmp_path / "out.tar")), {"sources": [{"url": "a.tar", "etag": None, "mtime": 6.0}]}) is None


def test_of_several_unknown_versions_none_is_proven_though_the_manifest_says_the_same(tmp_path: Path):
    facts = {"sources": [{"url": "a.tar", "etag": "1"}, {"url": "b.tar", "etag": None, "mtime": None}]}
    (tmp_path / "out.tar").write_bytes(b"the bytes")
    prove(URL(str(tmp_path / "out.tar")), 3, facts)

    assert find_kept(URL(str(tmp_path / "out.tar")), facts) is None


@pytest.mark.parametrize("data", [b"the bytez", b"the byte", b"the bytes "])
def test_other_bytes_are_not_it(url: URL, data: bytes):
    Path(url).write_bytes(data)

    assert find_kept(url, FACTS) is None


def test_without_a_manifest_there_is_no_proof(tmp_path: Path):
    (tmp_path / "out.tar").write_bytes(b"the bytes")

    assert find_kept(URL(str(tmp_path / "out.tar")), FACTS) is None


def test_an_output_of_a_worker_has_to_be_seen_here(url: URL, tmp_path: Path):
    check_seen(url)
    with pytest.raises(StoreError, match="it is not here"):
        check_seen(URL(str(tmp_path / "gone.tar")))
    check_seen(URL("memory://elsewhere/gone.tar"))  # only the store can say
