"""Listings of object stores, page by page."""

from __future__ import annotations

import json

import pytest

from tarviz.model.errors import NotFoundError, StoreError
from tarviz.stores._remote.listing import azure_pages, google_pages, s3_pages
from tarviz.stores.base import Stat
from tests.conftest import each_case


def s3(*names, token="", folders=()):
    rows = "".join(
        f"<Contents><Key>{name}</Key><Size>5</Size><ETag>&quot;e&quot;</ETag><LastModified>2030-01-01T00:00:00.000Z</LastModified></Contents>"
        for name in names
    )
    more = f"<IsTruncated>true</IsTruncated><NextContinuationToken>{token}</NextContinuationToken>" if token else ""
    below = "".join(f"<CommonPrefixes><Prefix>{name}</Prefix></CommonPrefixes>" for name in folders)
    return f'<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{more}{rows}{below}</ListBucketResult>'.encode()


def azure(*names, marker=""):
    rows = "".join(
        f"<Blob><Name>{name}</Name><Properties><Content-Length>5</Content-Length><Etag>0x8</Etag>"
        "<Last-Modified>Tue, 01 Jan 2030 00:00:00 GMT</Last-Modified></Properties></Blob>"
        for name in names
    )
    return f"<EnumerationResults><Blobs>{rows}</Blobs><NextMarker>{marker}</NextMarker></EnumerationResults>".encode()


class Server:
    def __init__(self, *pages):
        self.pages, self.asked = list(pages), []

    def __call__(self, query):
        self.asked.append(query)
        return self.pages.pop(0)


def test_every_page_is_asked_for_by_the_token_of_the_one_before():
    server = Server(s3("t/a.tar", token="T1"), s3("t/b &amp; c.tar", token="T2"), s3("t/d.tar"))
    found = list(s3_pages("s3://b/", "t/", server))

    assert ["s3://b/t/a.tar", "s3://b/t/b & c.tar", "s3://b/t/d.tar"] == [stat.url for stat in found]
    assert (5, '"e"', 1893456000.0) == (found[0].size, found[0].etag, found[0].mtime)
    assert [None, "T1", "T2"] == [query.get("continuation-token") for query in server.asked]
    assert {("list-type", "2"), ("prefix", "t/"), ("delimiter", "/")} <= set(server.asked[2].items())


def test_azure_has_markers_and_etags_without_quotes():
    server = Server(azure("t/a.tar", marker="M1"), azure("t/b.tar"))
    found = list(azure_pages("az://b/", "t/", server))

    assert [("az://b/t/a.tar", 5, '"0x8"', 1893456000.0), ("az://b/t/b.tar", 5, '"0x8"', 1893456000.0)] == [
        (stat.url, stat.size, stat.etag, stat.mtime) for stat in found
    ]
    assert [None, "M1"] == [query.get("marker") for query in server.asked]


def test_all_that_begins_so_is_asked_for_without_folders():
    server = Server(s3("t/a.tar", "t/a/b.tar"), s3())

    assert ["s3://b/t/a.tar", "s3://b/t/a/b.tar"] == [stat.url for stat in s3_pages("s3://b/", "t/a", server, deep=True)]
    assert [] == list(s3_pages("s3://b/", "t/none", server, deep=True))
    assert [{"list-type": "2", "prefix": "t/a"}, {"list-type": "2", "prefix": "t/none"}] == server.asked


def test_google_has_numbers_of_versions_and_names_of_folders():
    rows = [{"name": f"t/{name}.tar", "generation": "7", "size": "5", "updated": "2030-01-01T00:00:00Z"} for name in "ab"]
    pages = [{"items": rows[:1], "nextPageToken": "T1"}, {"items": rows[1:]}, {"prefixes": ["t/x/"]}]
    server = Server(*(json.dumps(page).encode() for page in pages))

    assert [Stat(f"gs://b/t/{name}.tar", 5, "generation 7", 1893456000.0) for name in "ab"] == list(google_pages("gs://b/", "t/", server))
    assert [{"prefix": "t/", "delimiter": "/"}, {"prefix": "t/", "delimiter": "/", "pageToken": "T1"}] == server.asked
    assert [] == list(google_pages("gs://b/", "t/", server))


@pytest.mark.parametrize(("pages", "page"), [(s3_pages, s3), (azure_pages, azure)])
def test_the_folder_itself_is_not_in_it(pages, page):
    assert [] == list(pages("s3://b/", "t/", Server(page("t/"))))


def test_a_folder_of_folders_is_there_and_empty():
    assert [] == list(s3_pages("s3://b/", "t/", Server(s3(folders=["t/x/"]))))


@pytest.mark.parametrize(("pages", "page"), [(s3_pages, s3), (azure_pages, azure)])
def test_nothing_below_a_name_is_said(pages, page):
    with pytest.raises(NotFoundError, match="nothing exists under"):
        list(pages("s3://b/", "t/", Server(page())))


@each_case("page", [b"<html>", b"", b"<!DOCTYPE x [<!ENTITY a 'b'>]><x>&a;</x>", s3("a").replace(b"?>", b"?><!DOCTYPE x>")])
def test_what_is_not_a_list_is_refused(page):
    with pytest.raises(StoreError, match="E_READ"):
        list(s3_pages("s3://b/", "", Server(page)))


@each_case("page", [b"<html>", b"[]", b'{"items": [{"name": "a"}]}', b'{"items": [{"size": "1", "generation": "2"}]}', b'{"items": [7]}'])
def test_what_is_not_googles_list_is_refused(page):
    with pytest.raises(StoreError, match="list of this bucket cannot be read"):
        list(google_pages("gs://b/", "", lambda query: page, deep=True))


def test_odd_sizes_and_dates_are_not_known():
    page = s3("a.tar").replace(b">5<", b">-1<").replace(b"2030-01-01T00:00:00.000Z", b"yesterday")
    (stat,) = s3_pages("s3://b/", "", Server(page))

    assert (None, None) == (stat.size, stat.mtime)


@pytest.mark.parametrize("part", ["<!DOCTYPE a>", '<!DOCTYPE a [<!ENTITY b "b">]>', '<!ENTITY b "b">'])
def test_a_page_with_a_type_or_entities_of_its_own_is_not_parsed(part):
    page = s3("t/a.tar").replace(b"<ListBucketResult", part.encode() + b"<ListBucketResult", 1)
    with pytest.raises(StoreError, match="document type"):
        list(s3_pages("s3://b/", "t/", Server(page)))
