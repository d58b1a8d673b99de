"""Folder pages of web servers: which of their links are the folder's own objects."""

from __future__ import annotations

import json

import pytest

from tarviz.model.errors import StoreError
from tarviz.model.types import URL
from tarviz.stores._pages import children
from tests.conftest import each_case

FOLDER = URL("https://host/data/")


def names(page: str) -> list[str]:
    return [stat.url for stat in children(FOLDER, page.encode())]


class TestHtml:
    @each_case("link", ["a.tar", "/data/a.tar", "https://host/data/a.tar", "./a.tar"])
    def test_links_of_any_form_are_objects(self, link: str):
        assert ["https://host/data/a.tar"] == names(f'<html><a href="{link}">x</a></html>')

    @each_case("link", ["../", "sub/", "sub/a.tar", "?C=M;O=A", "https://other/data/a.tar", "/other/a.tar", "#top", "", "mailto:x@y"])
    def test_others_are_left_out(self, link: str):
        assert [] == names(f'<a href="{link}">x</a>')

    @pytest.mark.parametrize("link", ["/my%20data/%C3%BC/a%20b.tar", "/my data/ü/a%20b.tar", "a%20b.tar"])
    def test_a_folder_is_the_same_however_it_is_escaped(self, link: str):
        folder = URL("https://host/my data/ü/")

        assert [f"{folder}a%20b.tar"] == [stat.url for stat in children(folder, f'<a href="{link}">x</a>'.encode())]

    def test_each_comes_once_in_the_order_of_names(self):
        page = '<a href="b.tar"></a><A HREF="a%20b.tar"></A><a href="b.tar"></a><a name="x"></a>'

        assert ["https://host/data/a%20b.tar", "https://host/data/b.tar"] == names(page)

    def test_text_is_not_a_list(self):
        with pytest.raises(StoreError, match="shows no list"):
            names("Welcome.")


class TestJson:
    def test_sizes_and_dates_come_with_the_names(self):
        rows = [
            {"name": "b c.tar", "type": "file", "size": 5, "mtime": "Tue, 01 Jan 2030 00:00:00 GMT"},
            {"name": "a.tar", "type": "file", "size": 7},
            {"name": "sub", "type": "directory"},
            {"name": "x/y.tar", "type": "file", "size": 1},
        ]
        found = children(FOLDER, json.dumps(rows).encode())

        assert [("https://host/data/a.tar", 7, None), ("https://host/data/b%20c.tar", 5, 1893456000.0)] == [
            (stat.url, stat.size, stat.mtime) for stat in found
        ]

    @each_case("page", ["[", "[1]", '[{"name": "a"}]', '[{"type": "file", "name": "a", "size": "many"}]', "[" * 100_000])
    def test_other_json_is_refused(self, page: str):
        with pytest.raises(StoreError, match="cannot be read"):
            names(page)
