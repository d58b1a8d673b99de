"""Payloads: what each kind becomes, and that hostile ones are refused in time and memory (D00 of the corpus)."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from tarviz.formats.compression import RATIO_FLOOR
from tarviz.model.errors import DataError, TarvizError
from tarviz.ops.values.payloads import Wish, decode_class, decode_npy, decode_payload, gunzip, kind_of
from tarviz.pipeline import Pipeline
from tarviz.read import stream as read_stream
from tests import effort, memory

D00 = Path(__file__).parents[2] / "data" / "corpora" / "generated" / "D00-hostile-payloads.tar"

EXPECTED: dict[str, Any] = {
    **dict.fromkeys(("d01.png", "d02.png", "d05.jpg", "d08.gif", "d09.bmp"), "E_IMAGE_TOO_LARGE"),
    **dict.fromkeys(("d03.png", "d04.png", "d06.jpg", "d07.jpg", "d12.npy", "d13.npy", "d18.json", "d19.json"), "E_DECODE"),
    **dict.fromkeys(("d22.cls", "d23.cls", "d24.txt", "d28.mp4", "d29.wav", "d30.ten", "d31.msg", "d32.cbor", "d35.tif"), "E_DECODE"),
    **dict.fromkeys(("d10.npy", "d15.pth", "d16.pyd", "d17.pkl"), "E_UNSAFE_DECODER"),
    "d11.npy": "E_LIMIT",
    "d20.json": {},
    "d21.cls": 7,
    "d25.txt": "hi",
}

READERS = {"mp4": "av", "wav": "soundfile", "msg": "msgpack", "cbor": "cbor2"}


def hostile() -> Iterator[tuple[str, str, bytes]]:
    for record in read_stream.records(str(D00)):
        for ext, data in record.items():
            yield record.members[0].name, ext, bytes(data)


def outcome_of(decode: Callable[[], Any]) -> Any:
    """The value, or the code of the error."""
    try:
        return decode()
    except TarvizError as error:
        return error.code


def is_known(outcome: Any) -> bool:
    return not isinstance(outcome, str) or outcome in ("E_DECODE", "E_LIMIT", "E_IMAGE_TOO_LARGE", "E_UNSAFE_DECODER")


def packed_room(data: bytes) -> int:
    """How many bytes a packed payload and what is made of it may take before it is called a bomb; the rest gets 16 MiB."""
    return 3 * RATIO_FLOOR if data.startswith((b"\x1f\x8b", b"PK")) else 16 << 20


class TestHostilePayloads:
    @pytest.mark.parametrize(("member", "ext", "data"), list(hostile()), ids=lambda value: value if isinstance(value, str) else "")
    def test_each_is_refused_as_the_matrix_says(self, member: str, ext: str, data: bytes) -> None:
        if ext in READERS:
            pytest.importorskip(READERS[ext], reason="the extra `media`")
        before = memory.begin()
        with effort.counted() as calls:
            outcome = outcome_of(lambda: decode_payload(ext, data))
        grown = memory.peak() - before

        assert calls.count < 100_000
        assert grown < packed_room(data) + (16 << 20)
        assert not os.environ.get("TARVIZ_CANARY")
        if member in EXPECTED:
            assert EXPECTED[member] == outcome

    def test_markup_is_text(self) -> None:
        found = {member: decode_payload(ext, data) for member, ext, data in hostile() if ext in ("svg", "html")}

        assert all(isinstance(value, str) for value in found.values())

    def test_yaml_that_would_call_something_is_refused(self) -> None:
        for _, ext, data in hostile():
            if ext == "yaml":
                with pytest.raises(DataError, match="not yaml"):
                    decode_payload(ext, data)

    def test_the_last_record_is_still_read_when_the_others_are_skipped(self) -> None:
        pipeline = Pipeline(str(D00), "decode(png;jpg;gif;bmp;npy;npz)", on_error="skip", select="__key__")
        run = pipeline.eager()
        keys = list(run)

        assert "d33" in keys
        assert run.report.skipped


class TestKinds:
    def test_the_extension_decides_and_then_the_bytes(self) -> None:
        assert "json" == kind_of("json", b"\xff\xd8\xff")
        assert "picture" == kind_of("IMAGE.PNG")
        assert "npy" == kind_of("weights", b"\x93NUMPY")
        assert "picture" == kind_of("x", b"RIFF\0\0\0\0WEBPVP8 ")
        assert "unknown" == kind_of("x", b"")

    def test_an_inner_gzip_is_unpacked_first(self) -> None:
        assert {"a": 1} == decode_payload("json.gz", gzip.compress(b'{"a": 1}'))
        assert 7 == decode_payload("cls.gz", gzip.compress(b"7"))

    def test_json_lines_are_a_list(self) -> None:
        assert [1, {"a": 2}] == decode_payload("jsonl", b'1\n{"a": 2}\n\n')

    def test_a_pickle_is_loaded_only_when_it_is_named(self) -> None:
        data = pickle.dumps([1, 2])

        assert [1, 2] == decode_payload("pkl", data, Wish(unsafe=["pkl"]))
        with pytest.raises(DataError) as caught:
            decode_payload("pkl", data, Wish(unsafe=["npy"]))
        assert "E_UNSAFE_DECODER" == caught.value.code

    def test_a_broken_pickle_is_a_decoding_error(self) -> None:
        with pytest.raises(DataError) as caught:
            decode_payload("pkl", b"\x80\x04", Wish(unsafe=["pkl"]))
        assert "E_DECODE" == caught.value.code


class TestGzip:
    def test_several_members_are_one(self) -> None:
        assert b"onetwo" == gunzip(gzip.compress(b"one") + gzip.compress(b"two"))

    @pytest.mark.parametrize("cut", [1, 5, 12, 20])
    def test_a_cut_one_is_an_error(self, cut: int) -> None:
        with pytest.raises(DataError) as caught:
            gunzip(gzip.compress(b"x" * 1000)[:-cut])
        assert "E_DECODE" == caught.value.code

    def test_64_mib_are_always_allowed(self) -> None:
        assert RATIO_FLOOR == len(gunzip(gzip.compress(bytes(RATIO_FLOOR), 9)))

    def test_more_than_the_ratio_is_a_bomb(self) -> None:
        with pytest.raises(DataError) as caught:
            gunzip(gzip.compress(bytes(RATIO_FLOOR + 1), 9))
        assert "E_LIMIT" == caught.value.code


class TestNpz:
    def test_it_is_a_dict_of_arrays(self) -> None:
        stream = io.BytesIO()
        np.savez_compressed(stream, a=np.arange(3), b=np.eye(2))
        arrays = decode_payload("npz", stream.getvalue())

        assert ["a", "b"] == list(arrays)
        np.testing.assert_array_equal(np.eye(2), arrays["b"])

    def test_a_size_that_lies_is_an_error(self) -> None:
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a.npy", bytes(4 << 20))
        data = bytearray(stream.getvalue())
        at = data.rindex(b"PK\x01\x02") + 24
        data[at : at + 4] = (16).to_bytes(4, "little")
        with pytest.raises(DataError) as caught:
            decode_payload("npz", bytes(data))

        assert caught.value.code in ("E_DECODE", "E_LIMIT")


SCRAPS = st.one_of(
    st.sampled_from(["<i4", "|O", "S0", "<f8", "V3", [("a", "<i2")], (2,), (0,), (-1,), (1 << 62, 1 << 62), True]),
    st.text(max_size=6),
    st.integers(),
    st.tuples(st.integers()),
)


class TestNpy:
    @given(st.binary(max_size=200))
    def test_anything_behind_the_magic_is_an_array_or_an_error(self, tail: bytes) -> None:
        for version in (b"\x01\x00", b"\x02\x00", b"\x03\x00", b""):
            data = b"\x93NUMPY" + version + tail

            assert is_known(outcome_of(lambda data=data: decode_npy(data)))

    @given(st.fixed_dictionaries({"descr": SCRAPS, "fortran_order": SCRAPS, "shape": SCRAPS}))
    def test_any_header_is_an_array_or_an_error(self, header: dict[str, Any]) -> None:
        text = repr(header).encode("latin-1", "replace")
        data = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(64)

        assert is_known(outcome_of(lambda: decode_npy(data)))

    def test_every_version_is_read(self) -> None:
        for version in ((1, 0), (2, 0), (3, 0)):
            stream = io.BytesIO()
            np.lib.format.write_array(stream, np.arange(5), version=version)

            np.testing.assert_array_equal(np.arange(5), decode_npy(stream.getvalue()))


def pictures() -> list[bytes]:
    images = []
    pixels = np.random.default_rng(0).integers(0, 255, (24, 16, 3)).astype(np.uint8)
    for form in ("JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF", "PPM"):
        stream = io.BytesIO()
        Image.fromarray(pixels).save(stream, form)
        images.append(stream.getvalue())
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "TIFF", compression="tiff_lzw")
    return [*images, stream.getvalue()]


class TestDamagedPictures:
    @pytest.mark.matrix
    @settings(max_examples=300)
    @given(st.data())
    def test_flipped_and_cut_bytes_are_a_picture_or_an_error(self, data: st.DataObject) -> None:
        original = data.draw(st.sampled_from(pictures()))
        changed = bytearray(original[: data.draw(st.integers(0, len(original)))])
        for _ in range(data.draw(st.integers(0, 4))):
            if changed:
                changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))

        assert is_known(outcome_of(lambda: decode_payload("jpg", bytes(changed))))


class TestMagic:
    def test_a_name_that_says_nothing_leaves_it_to_the_bytes(self) -> None:
        for head, kind in [
            (b"\0\0\0\x18ftypavif", "picture"),
            (b"\0\0\0\x18ftypavis", "picture"),
            (b"\0\0\0\x1cftypmif1\0\0\0\0mif1avif", "picture"),
            (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "unknown"),
            (b"\0\0\0\x18ftypmif1\0\0\0\0mif1heic", "unknown"),
            (b"\0\0\0\x18ftypisom", "film"),
            (b"\0\0\0\x0cjP  \r\n", "picture"),
            (b"\xffO\xffQ", "picture"),
            (b"\0\0\0\x0cJXL \r\n", "picture"),
            (b"RIFF\0\0\0\0WAVE", "sound"),
            (b"RIFF\0\0\0\0AVI ", "film"),
            (b"RIFF\0\0\0\0ACON", "unknown"),
            (b"\x1f\x8b", "gz"),
            (b"II*\0", "picture"),
            (b"ID3", "sound"),
            (b"BM", "picture"),
            (b"B", "unknown"),
        ]:
            assert kind == kind_of("data", head + bytes(9))
            assert "unknown" == kind_of("data")

    def test_what_nobody_knows_is_tried_as_a_picture(self) -> None:
        assert (5, 4, 1) == decode_payload("data", b"P5 4 5 255\n" + bytes(20), Wish(channels=0)).shape
        with pytest.raises(DataError, match=r"there is no decoder for 'data': 9 bytes that begin with 77 68 61") as caught:
            decode_payload("data", b"what else")
        assert str(caught.value.hint).startswith("Decoders: 3gp, aac")
        assert "data" == caught.value.details["field"]
        with pytest.raises(DataError, match=r"there is no decoder for 'heic': it looks like HEIC"):
            decode_payload("heic", b"\0\0\0\x18ftypheic\0\0\0\0mif1heic" + bytes(99))
        with pytest.raises(DataError, match="it is motion") as other:
            decode_payload("data", b"PIEH" + np.array([1, 1], "<i4").tobytes() + bytes(8))
        assert "channels=0 keeps them." == other.value.hint  # it is one, of another kind

    def test_a_bare_gz_is_its_bytes(self) -> None:
        assert b"x" == decode_payload("gz", gzip.compress(b"x")) == decode_payload("data", gzip.compress(b"x"))


class TestClasses:
    def test_a_number_has_the_type_that_is_asked_for(self) -> None:
        for data, dtype, expected in [
            (b" +7\n", "int64", 7),
            (b"-128", "int8", -128),
            (b"127", "int8", 127),
            (b"18446744073709551615", "uint64", 2**64 - 1),
            (b"0" * 19 + b"7" + b" " * 44, "int8", 7),
        ]:
            found = decode_class(data, dtype)

            assert (dtype, expected) == (found.dtype, int(found))

    def test_others_are_errors(self) -> None:
        for data, message in [
            (b"128", "128 is outside the range of int8"),
            (b"-129", "-129 is outside the range of int8"),
            (b"", "'' is not a whole number"),
            (b"1.0", "'1.0' is not a whole number"),
            (b"1_0", "is not a whole number"),
            (b"7" + b" " * 64, "is not a whole number"),
            (b"1" * 21, "is not a whole number"),
            (b"x" * 40, f"'{'x' * 40}' is not a whole number"),
            (b"\xff" + b"x" * 40, "xxx'… is not a whole number"),
        ]:
            with pytest.raises(DataError) as caught:
                decode_class(data, "int8")
            assert message in caught.value.message


def test_text_drops_its_mark_and_says_which_byte_is_none() -> None:
    assert "grün" == decode_payload("txt", b"\xef\xbb\xbfgr\xc3\xbcn")
    with pytest.raises(DataError, match="this is not UTF-8 text: byte 2 is 0xff"):
        decode_payload("txt", b"ab\xff")


def test_an_npz_leaves_out_what_is_no_array_and_may_hold_so_many() -> None:
    stream = io.BytesIO()
    np.savez(stream, a=np.arange(2))
    with zipfile.ZipFile(stream, "a") as archive:
        archive.writestr("readme.txt", b"x")
    assert ["a"] == list(decode_payload("npz", stream.getvalue()))

    many = io.BytesIO()
    with zipfile.ZipFile(many, "w") as archive:
        for number in range(10_001):
            archive.writestr(str(number), b"")
    with pytest.raises(DataError, match="E_LIMIT"):
        decode_payload("npz", many.getvalue())
