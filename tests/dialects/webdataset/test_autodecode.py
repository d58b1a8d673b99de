"""Decoding by WebDataset's names: image specs against webdataset, fields by extension, and nothing from the data is run."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import struct
import sys
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

import tarviz.dialects.webdataset as wds
from tarviz.dialects.webdataset.autodecode import ByExtension, imagespecs
from tarviz.model.errors import DataError, MissingPackageError, TarvizError, UsageError
from tests.conftest import DATA, each_case

NUMPY = [spec for spec, (container, _, _) in imagespecs.items() if container == "numpy"]
TORCH = [spec for spec, (container, _, _) in imagespecs.items() if container == "torch"]
PILS = [spec for spec, (container, _, _) in imagespecs.items() if container == "pil"]


def pictures() -> dict[str, bytes]:
    """One picture of each kind that has a way of its own through decoding."""
    grid = np.mgrid[0:24, 0:31]
    base = np.stack([grid[0] * 10, grid[1] * 8, (grid[0] + grid[1]) * 4], axis=2).astype(np.uint8)
    image, found = Image.fromarray(base), {}
    for name, picture, form in (
        ("rgb.png", image, "PNG"),
        ("grey.png", image.convert("L"), "PNG"),
        ("alpha.png", image.convert("RGBA"), "PNG"),
        ("palette.png", image.quantize(32), "PNG"),
        ("colour.jpg", image, "JPEG"),
        ("grey.jpg", image.convert("L"), "JPEG"),
        ("plain.bmp", image, "BMP"),
        ("plain.ppm", image, "PPM"),
    ):
        stream = io.BytesIO()
        picture.save(stream, form)
        found[name] = stream.getvalue()
    return found


def one(ext: str, data: bytes, *handlers: Any, **options: Any) -> Any:
    return wds.Decoder(handlers, **options)({"__key__": "k", "__url__": "a.tar", ext: data})[ext]


class TestImages:
    @pytest.mark.parametrize("spec", [spec for spec in imagespecs if spec != "torch8"])
    def test_every_spec_gives_what_webdataset_gives(self, spec: str) -> None:
        theirs = pytest.importorskip("webdataset").imagehandler(spec)
        if spec.startswith("torch"):
            pytest.importorskip("torch")
        for name, data in pictures().items():
            ext = name.rpartition(".")[2]
            expected, actual = theirs(ext, data), one(ext, data, spec)

            assert type(expected).__name__ == type(actual).__name__, name
            if isinstance(actual, Image.Image):
                assert (expected.mode, expected.size) == (actual.mode, actual.size)
            else:
                assert (expected.dtype, expected.shape) == (actual.dtype, actual.shape)
            off = np.abs(np.asarray(expected, np.float64) - np.asarray(actual, np.float64)).max()
            # The luminance of a JPEG is taken as it is stored; PIL computes it back from RGB.
            assert off <= (3 if ext == "jpg" else 0) / (1 if np.asarray(actual).dtype == np.uint8 else 255) + 1e-6, name

    @each_case("spec", NUMPY)
    def test_floats_lie_between_0_and_1(self, spec: str) -> None:
        value = one("png", pictures()["rgb.png"], spec)

        assert (np.uint8 if spec.endswith("8") else np.float32) == value.dtype
        assert value.max() <= (255 if spec.endswith("8") else 1)

    @pytest.mark.torch
    @each_case("spec", TORCH)
    def test_torch_has_the_channels_first(self, spec: str) -> None:
        pytest.importorskip("torch")

        assert (24, 31) == tuple(one("png", pictures()["rgb.png"], spec).shape)[-2:]

    def test_without_a_spec_pictures_stay_bytes(self) -> None:
        data = pictures()["rgb.png"]

        assert data == one("png", data)

    def test_a_bomb_is_refused_by_its_header(self) -> None:
        stream = io.BytesIO()
        Image.new("L", (1, 1)).save(stream, "PNG")
        data = bytearray(stream.getvalue())
        data[16:24] = struct.pack(">II", 30_000, 30_000)
        data[29:33] = struct.pack(">I", zlib.crc32(data[12:29]))
        for spec in ("rgb8", "pil"):
            with pytest.raises(DataError) as caught:
                one("png", bytes(data), spec)
            assert ("E_IMAGE_TOO_LARGE", "k") == (caught.value.code, caught.value.key)

    def test_no_picture_is_named_with_its_place(self) -> None:
        with pytest.raises(DataError, match=r'a\.tar.*record "k".*k\.jpg.*not a picture'):
            one("jpg", b"<html>", "pil")


class TestFields:
    def test_fields_decode_by_the_last_part_of_their_extension(self) -> None:
        array = np.arange(6.0).reshape(2, 3)
        npy, npz = io.BytesIO(), io.BytesIO()
        np.save(npy, array)
        np.savez(npz, a=array)

        assert 7 == one("cls", b" 7\n") == one("x.index", b"7") == one("inx", b"7")
        assert "grün" == one("txt", "grün".encode()) == one("a.transcript", "grün".encode())
        assert {"a": [1]} == one("json", b'{"a": [1]}')
        assert array.tolist() == one("npy", npy.getvalue()).tolist() == one("npz", npz.getvalue())["a"].tolist()
        assert {"a": 1} == one("json.gz", gzip.compress(b'{"a": 1}'))
        assert b"<p>" == one("html", b"<p>")
        assert b"\0" == one("mp4", b"\0")

    def test_own_decoders_get_the_extension_and_the_bytes(self) -> None:
        assert ".mp4 3" == one("mp4", b"abc", lambda key, data: f"{key} {len(data)}" if key == ".mp4" else None)
        assert 3 == one("a.mp4", b"abc", wds.handle_extension("wav mp4", len))
        assert b"abc" == one("flac", b"abc", wds.handle_extension("wav mp4", len))
        assert "longest" == one("a.mp4", b"", ByExtension({"mp4": len, "a.mp4": lambda data: "longest"}))

    def test_only_and_partial_leave_values_alone(self) -> None:
        sample = {"__key__": "k", "__source__": b"\xff", "cls": b"1", "txt": b"x", "n": 5}

        assert {**sample, "cls": 1} == wds.Decoder([], only="cls")(sample)
        assert {**sample, "cls": 1, "txt": "x"} == wds.Decoder([], partial=True)(sample)
        with pytest.raises(wds.DecodingError, match="decoded twice"):
            wds.Decoder([])(sample)

    def test_an_error_in_an_own_decoder_says_where(self) -> None:
        with pytest.raises(wds.DecodingError, match="the field 'x' could not be decoded: ZeroDivisionError") as caught:
            one("x", b"", lambda key, data: 1 / 0)
        error = caught.value

        assert ("a.tar", "k", "x") == (error.url, error.key, error.k)
        assert isinstance(error.__cause__, ZeroDivisionError)


class TestSafety:
    @each_case("ext", ["pyd", "pkl", "pickle", "pth"])
    def test_pickles_are_not_loaded_unless_named(self, ext: str, tmp_path: Path) -> None:
        class Canary:
            def __reduce__(self) -> Any:
                return os.mkdir, (str(tmp_path / "canary"),)

        with pytest.raises(DataError, match="unsafe=") as caught:
            one(ext, pickle.dumps(Canary()))

        assert "E_UNSAFE_DECODER" == caught.value.code
        assert not (tmp_path / "canary").exists()
        if ext != "pth":
            assert {"a": 1} == one(ext, pickle.dumps({"a": 1}), unsafe=[ext])

    @pytest.mark.filterwarnings("ignore::UserWarning")
    def test_the_hostile_shard_runs_nothing(self) -> None:
        path = DATA / "corpora/generated/D00-hostile-payloads.tar"
        failed: list[Exception] = []

        def note(error: Exception) -> bool:
            failed.append(error)
            return True

        before = dict(os.environ)
        good = list(wds.WebDataset(str(path)).decode("pil", handler=note))

        assert before == dict(os.environ)
        assert all(isinstance(error, TarvizError) for error in failed)
        assert failed
        assert all(isinstance(sample, dict) for sample in good)

    def test_json_that_is_too_deep_is_an_error(self) -> None:
        with pytest.raises(DataError):
            one("json", b"[" * 100_000)
        assert [json.loads("1")] == one("json", b"[1]")


class TestFilms:
    """torchaudio and torchvision get a path of a file that ends as the field does."""

    @pytest.mark.parametrize(("decoder", "package"), [("torch_audio", "torchaudio"), ("torch_video", "torchvision")])
    def test_without_its_package_it_says_so(self, decoder: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, package, None)
        decode = getattr(wds, decoder)

        assert decode(".txt", b"") is decode("a.json", b"") is None
        with pytest.raises(MissingPackageError, match=f"needs the package {package}"):
            decode({"torch_audio": "a.FLAC", "torch_video": ".webm"}[decoder], b"")

    def test_a_file_of_the_bytes_is_there_while_they_are_decoded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        seen: list[tuple[str, bytes, dict[str, Any]]] = []

        def load(path: str, **options: Any) -> str:
            seen.append((path, Path(path).read_bytes(), options))
            return "decoded"

        monkeypatch.setitem(sys.modules, "torchaudio", SimpleNamespace(load=load))
        monkeypatch.setitem(sys.modules, "torchvision", SimpleNamespace())
        monkeypatch.setitem(sys.modules, "torchvision.io", SimpleNamespace(read_video=load))

        assert ["decoded"] * 2 == [one("a.FLAC", b"sound", wds.torch_audio), one("mp4", b"film", wds.torch_video)]
        assert [("flac", b"sound", {}), ("mp4", b"film", {"pts_unit": "sec"})] == [(p.rpartition(".")[2], data, o) for p, data, o in seen]
        assert not any(Path(path).exists() for path, _, _ in seen)


def test_handlers_hand_on_what_they_change() -> None:
    renamed = wds.Continue("x.txt", b"new")
    seen: list[tuple[str, bytes]] = []

    assert "new" == one("any", b"old", lambda key, data: renamed)
    assert b"old" == one("any", b"old", lambda key, data: seen.append((key, data)), post=[])
    assert [(".any", b"old")] == seen
    assert b"x" == one("txt.gz", gzip.compress(b"x"), post=[])
    assert (packed := gzip.compress(b"x")) == one("txt.gz", packed, pre=[], post=[])
    with pytest.raises(UsageError, match="3 is not a decoder"):
        wds.Decoder([], post=[3])


def test_the_longest_extension_of_a_table_counts() -> None:
    table = ByExtension({"png": lambda data: "short", "seg.png": lambda data: "long"})

    assert ["long", "long", "short", "short", None] == [table(key, b"") for key in (".seg.png", "a.SEG.png", "png", ".a.b.png", ".png.txt")]


def test_pickles_are_loaded_by_those_who_ask_for_it() -> None:
    assert {"a": 1} == wds.autodecode.decoders["pkl"](pickle.dumps({"a": 1})) == one("a.pkl", pickle.dumps({"a": 1}), unsafe="pkl")


def test_a_decoding_error_says_what_the_decoder_said() -> None:
    error = wds.DecodingError(k="x", url="u")

    assert ("the field 'x' could not be decoded.", "u", "u", None) == (error.message, error.url, error.shard, error.sample)
    with pytest.raises(wds.DecodingError) as caught:
        one("pkl", b"")
    assert ("E_UNSAFE_DECODER", 'If you trust its origin, name it: unsafe=["pkl"].') == (caught.value.code, caught.value.hint)
