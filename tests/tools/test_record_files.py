"""Which files are fields of which record, and which names a command may see."""

from __future__ import annotations

import pytest

from tarviz.model.errors import DataError, UsageError
from tarviz.tools.record_files import Collecting, check_names


class TestPlace:
    def test_a_field_has_the_base_name_and_an_extension(self):
        for name, expected in [
            ("sample.jpg", (b"", "jpg")),
            ("sample-1.seg.png", (b"-1", "seg.png")),
            ("sample_\udce9.txt", (b"_\xe9", "txt")),
            ("samples.txt", (b"s", "txt")),
            ("sample", None),
            ("sample.", None),
            ("note.txt", None),
            (".jpg", None),
        ]:
            assert expected == Collecting().place(name)

    def test_with_others_any_stem_will_do_behind_the_separator(self):
        for name, expected in [
            ("note.txt", (b"_note", "txt")),
            ("sample.jpg", (b"", "jpg")),
            ("sample2.jpg", (b"_2", "jpg")),
            (".jpg", None),
        ]:
            assert expected == Collecting(others=True, separator="_").place(name)

    def test_another_base(self):
        assert [(b"", "a"), None] == [Collecting(base="page-1_é").place(name) for name in ("page-1_é.a", "sample.a")]


class TestPatterns:
    def test_say_which_files_are_written(self):
        for include, exclude, expected in [
            (None, None, ["a.jpg", "a.tmp", "b.jpg"]),
            (r"\.jpg$", None, ["a.jpg", "b.jpg"]),
            (None, "^a", ["b.jpg"]),
            (r"\.jpg$", "^b", ["a.jpg"]),
            ("", "tmp", ["a.jpg", "b.jpg"]),
        ]:
            found = Collecting(include=include, exclude=exclude)

            assert expected == [name for name in ("a.jpg", "a.tmp", "b.jpg") if found.lets_through(name)]

    def test_what_cannot_be_is_said_at_once(self):
        for wrong in [{"include": "("}, {"exclude": "a{2,1}"}, {"log": "a/b"}, {"log": ""}, {"base": "a.b"}, {"base": ""}, {"base": "-a"}]:
            with pytest.raises(UsageError):
                Collecting(**wrong)


class TestNames:
    def test_an_extension_that_is_a_file_name(self):
        for ext in ["jpg", "seg.png", "a-b_c+d@e=f%g~h#i,j^k", "é" * 100, "x" * 200]:
            check_names(b"a", ["cls", ext], any_key=False)

    def test_an_extension_that_is_none(self):
        for ext in ["", "a b", "a/b", "a$", "x" * 201, "é" * 101]:
            with pytest.raises(DataError, match="is not a safe file name"):
                check_names(b"a", ["cls", ext], any_key=True)

    def test_a_key_that_stays_in_its_folder(self):
        for key in [b"a/b", b"a..b/c", b"~a/b", b"1:x", b"ab:c", b"a/~", b"a/C:x"]:
            check_names(key, ["jpg"], any_key=False)

    def test_a_key_that_leads_out_runs_where_that_is_wished(self):
        for key in [b"/a", b"~/a", b"..", b"a/../b", b"a\\b", b"c:a", b"Z:/a"]:
            with pytest.raises(DataError, match="lead out of a folder"):
                check_names(key, ["jpg"], any_key=False)
            check_names(key, ["jpg"], any_key=True)

    def test_no_environment_holds_a_nul(self):
        with pytest.raises(DataError, match="holds a NUL"):
            check_names(b"a\0b", ["jpg"], any_key=True)
