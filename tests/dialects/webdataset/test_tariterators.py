"""`webdataset.tariterators`, one step at a time: shards opened, taken apart, put together, with handlers at each step."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Any

import pytest

import tarviz.dialects.webdataset as wds
from tarviz.dialects.webdataset import tariterators
from tarviz.model.errors import DataError, NotFoundError
from tests.dialects.webdataset.beside import tar

NAMES = ["__index__", "a.cls", "d/__meta__/b", "a.seg.TXT", "__x__/c.txt", "nodot", "b.cls"]
PLAIN = ["a.cls", "a.seg.TXT", "d.x/b.cls"]


@pytest.fixture
def shard(tmp_path: Path) -> str:
    tar(tmp_path / "s.tar", [(name, name.encode()) for name in NAMES])
    return str(tmp_path / "s.tar")


@pytest.fixture
def plain(tmp_path: Path) -> str:
    """A shard of records alone."""
    tar(tmp_path / "p.tar", [(name, name.encode()) for name in PLAIN])
    return str(tmp_path / "p.tar")


def names(files: Any) -> list[str]:
    return [file["fname"] for file in files]


class TestTakenApart:
    @pytest.mark.parametrize("by_tarfile", [False, True])
    def test_by_the_engine_and_by_tarfile_files_are_the_same(self, plain: str, by_tarfile: bool) -> None:
        sources = (
            [{"url": plain, "stream": io.BytesIO(Path(plain).read_bytes())}] if by_tarfile else tariterators.url_opener([{"url": plain}])
        )
        files = list(tariterators.tar_file_expander(sources))

        assert [{"fname": name, "data": name.encode(), "__url__": plain} for name in PLAIN] == files[:-1]
        assert type(files[0]["data"]) is bytes
        assert ({}, "") == (files[-1], files[-1]["fname"])

    def test_what_is_about_the_shard_may_be_asked_for(self, shard: str) -> None:
        def read(**options: Any) -> list[str]:
            with open(shard, "rb") as file:
                return names(tariterators.tar_file_iterator(file, **options))

        assert [name for name in NAMES if name != "__index__"] == read(skip_meta=None)
        assert ["a.cls", "d/__meta__/b", "a.seg.TXT", "__x__/c.txt", "nodot"] == read(skip_meta="b")
        assert ["a.seg.TXT"] == read(select_files=lambda name: name.endswith("TXT"))
        assert ["x:a.cls", "x:b.cls"] == read(rename_files=lambda name: f"x:{name}", select_files=lambda name: name[-4:] == ".cls")

    def test_a_handler_is_asked_about_each_file(self, shard: str) -> None:
        def refuse(name: str) -> bool:
            if name in ("a.cls", "nodot"):
                raise ValueError(name)
            return True

        def read(handler: Any) -> list[str]:
            with open(shard, "rb") as file:
                return names(tariterators.tar_file_iterator(file, handler=handler, select_files=refuse))

        assert ["d/__meta__/b", "a.seg.TXT", "b.cls"] == read(wds.ignore_and_continue)
        assert [] == read(wds.ignore_and_stop)
        with pytest.raises(ValueError, match=r"a\.cls"):
            read(wds.reraise_exception)

    def test_folders_and_links_are_no_files(self) -> None:
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as made:
            for kind, name in ((tarfile.DIRTYPE, "d"), (tarfile.SYMTYPE, "l.txt"), (tarfile.REGTYPE, "f.txt")):
                member = tarfile.TarInfo(name)
                member.type = kind
                made.addfile(member)

        assert ["f.txt"] == names(tariterators.tar_file_iterator(io.BytesIO(out.getvalue())))

    def test_a_stream_that_was_begun_is_read_on(self, shard: str) -> None:
        stream = next(iter(tariterators.url_opener([{"url": shard}])))["stream"]
        stream.begin()

        assert "b.cls" == names(tariterators.tar_file_iterator(stream))[-1]

    def test_a_stream_is_closed_behind_its_shard_and_its_place_goes_along(self, shard: str) -> None:
        streams = [open(shard, "rb") for _ in range(2)]  # noqa: SIM115
        sources = [{"url": "1", "stream": streams[0], "local_path": "/p"}, {"url": "2", "stream": streams[1]}]
        files = tariterators.tar_file_expander(sources, eof_value=None)
        first = next(files)

        assert ({"fname": "a.cls", "data": b"a.cls", "__url__": "1", "__local_path__": "/p"}, False) == (first, streams[0].closed)
        assert 9 == len(rest := list(files))
        assert "__local_path__" not in rest[-1]
        assert [True, True] == [stream.closed for stream in streams]

    def test_a_shard_that_fails_is_one_for_the_handler(self, plain: str, tmp_path: Path) -> None:
        def read(handler: Any) -> list[str]:
            sources = tariterators.url_opener([{"url": str(tmp_path / "none.tar")}, {"url": plain}])
            return names(tariterators.tar_file_expander(sources, handler=handler, eof_value=None))

        assert 3 == len(read(wds.ignore_and_continue))
        assert [] == read(wds.ignore_and_stop)
        with pytest.raises(NotFoundError):
            read(wds.reraise_exception)

    def test_so_is_one_that_cannot_be_opened(self, shard: str, monkeypatch: pytest.MonkeyPatch) -> None:
        def fails(url: str, mode: str, bufsize: int, **options: Any) -> Any:
            raise OSError(f"{url} {mode} {options}")

        monkeypatch.setitem(wds.gopen_schemes, "own", fails)
        sources = [{"url": "own://a"}, {"url": shard}]

        assert [shard] == [each["url"] for each in tariterators.url_opener(sources, handler=wds.ignore_and_continue)]
        assert [] == list(tariterators.url_opener(sources, handler=wds.ignore_and_stop))
        with pytest.raises(OSError, match=r"own://a rb {'verbose': 1}"):
            list(tariterators.url_opener(sources, verbose=1))


def file(name: str, url: str = "u", **more: Any) -> dict[str, Any]:
    return {"fname": name, "data": name.encode(), "__url__": url, **more}


class TestPutTogether:
    def test_neighbours_of_one_key_in_one_shard_are_a_sample(self) -> None:
        given = [
            file("a.X"),
            file("nodot"),
            file("a.y.z"),
            file("b.x"),
            file("b.x", "v", __local_path__="/p"),
            {},
            file("b.x", "v"),
            {},
            {},
        ]

        found = list(tariterators.group_by_keys(given))

        assert [
            {"__key__": "a", "__url__": "u", "x": b"a.X", "y.z": b"a.y.z"},
            {"__key__": "b", "__url__": "u", "x": b"b.x"},
            {"__key__": "b", "__url__": "v", "x": b"b.x", "__local_path__": "/p"},
            {"__key__": "b", "__url__": "v", "x": b"b.x"},
        ] == found

    def test_names_may_be_kept_cut_and_chosen_otherwise(self) -> None:
        given = [file("a.X"), file("a.y")]

        (kept,) = tariterators.group_by_keys(given, lcase=False, suffixes=["X"])
        (cut,) = tariterators.group_by_keys(given, keys=lambda name: ("all", name))

        assert {"__key__": "a", "__url__": "u", "X": b"a.X"} == kept
        assert {"__key__": "all", "__url__": "u", "a.x": b"a.X", "a.y": b"a.y"} == cut

    def test_a_field_twice_is_an_error_for_the_handler(self) -> None:
        given = [file("a.x"), file("a.X"), file("a.y"), file("b.x")]

        with pytest.raises(DataError, match="the field 'x' appears twice") as caught:
            list(tariterators.group_by_keys(given))
        assert ("E_DUP_FIELD", "u", "a", "a.X") == (caught.value.code, caught.value.shard, caught.value.key, caught.value.member)
        going_on = list(tariterators.group_by_keys(given, handler=wds.ignore_and_continue))
        assert [["x", "y"], ["x"]] == [sorted(sample)[2:] for sample in going_on]
        assert [b"a.x"] == [sample["x"] for sample in tariterators.group_by_keys(given, handler=wds.ignore_and_stop)]

    def test_a_sample_may_be_marked_as_bad(self) -> None:
        found = [{"a": 1}, {}, None, {"__bad__": True, "a": 1}, {"__bad__": False}]

        assert [True, False, False, False, True] == [tariterators.valid_sample(sample) for sample in found]


class TestSamples:
    def test_shards_are_dicts_or_names(self, plain: str) -> None:
        expected = [{"__key__": "a", "__url__": plain, "cls": b"a.cls", "seg.txt": b"a.seg.TXT"}]
        for given in (plain, {"url": plain}):
            assert expected == [s for s in wds.tarfile_samples([given]) if s["__key__"] == "a"]

    def test_a_missing_one_is_one_for_the_handler(self, plain: str) -> None:
        given = [f"{plain}.none", plain]

        assert 2 == len(list(wds.tarfile_samples(given, handler=wds.ignore_and_continue)))
        assert [] == list(wds.tarfile_samples(given, handler=wds.ignore_and_stop))
        with pytest.raises(NotFoundError):
            list(wds.tarfile_samples(given))
