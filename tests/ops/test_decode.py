"""Decode: pictures as PIL and TensorFlow give them, classes, text; hostile payloads refused (D00 of the corpus)."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tarviz.model.errors import ChainError, DataError, SchemaError
from tarviz.model.types import Feature, Schema
from tarviz.ops import Decode, Resize, parse_chain
from tarviz.ops.values import pictures
from tarviz.testing.ops import OpTests, noise

RGB = Feature("uint8", (None, None, 3))


def encoded(image: Image.Image, form: str, **options: Any) -> bytes:
    stream = io.BytesIO()
    image.save(stream, form, **options)
    return stream.getvalue()


def picture(mode: str = "RGB", size: tuple[int, int] = (61, 40)) -> Image.Image:
    """A picture with noise, height and width as in `size`."""
    image = Image.fromarray(noise(RGB, sizes=(size,))[0])
    if mode == "I;16":
        return Image.fromarray((np.asarray(image.convert("L")).astype(np.uint16) << 8) | 0x17)
    if mode == "RGBA":
        image.putalpha(image.convert("L"))
        return image
    return image.convert(mode)


class AsPil(OpTests):
    """A decoder to three channels of eight bits, held against PIL."""

    def oracle(self, record: dict[str, Any]) -> dict[str, Any]:
        (ext,) = self.op.exts
        with Image.open(io.BytesIO(record[ext])) as image:
            return {ext: np.asarray(image.convert("RGB"))}


class TestDecodeJpeg(AsPil):
    op = Decode("jpg")
    accepts = Feature("bytes")
    fails_on = {"jpg": b"no picture"}

    def values(self) -> Iterable[Any]:
        return [
            encoded(picture(size=(375, 500)), "JPEG", quality=90),
            encoded(picture(), "JPEG", subsampling="4:4:4", progressive=True),
            encoded(picture("L"), "JPEG"),
        ]


class TestDecodeOddJpeg(AsPil):
    op = Decode("jpg")
    accepts = Feature("bytes")
    fails_on = {"jpg": b"\xff\xd8\xff\xe0"}

    def values(self) -> Iterable[Any]:
        rotated = Image.Exif()
        rotated[0x0112] = 6
        return [
            encoded(picture("CMYK"), "JPEG"),
            encoded(picture(), "JPEG", exif=rotated),
            encoded(picture("RGBA"), "PNG"),  # another format than the name says
        ]


class TestDecodePng(AsPil):
    op = Decode("png")
    accepts = Feature("bytes")
    fails_on = {"png": b""}

    def values(self) -> Iterable[Any]:
        return [encoded(picture(), "PNG"), encoded(picture("RGBA"), "PNG"), encoded(picture("L", (7, 5)), "PNG")]


class TestDecodeOddPng(OpTests):
    op = Decode("png")
    accepts = Feature("bytes")
    fails_on = {"png": b"\x89PNG\r\n\x1a\n"}

    def values(self) -> Iterable[Any]:
        return [encoded(picture("1"), "PNG"), encoded(picture("I;16"), "PNG"), encoded(picture("LA"), "PNG")]


class TestDecodePalette(AsPil):
    op = Decode("png")
    accepts = Feature("bytes")
    fails_on = {"png": b"GIF89a"}

    def values(self) -> Iterable[Any]:
        palette = picture().quantize(16)
        return [encoded(palette, "PNG"), encoded(palette, "PNG", transparency=3), encoded(palette, "PNG", bits=4)]


class TestDecodeOtherFormats(AsPil):
    """What TensorFlow does not know is decoded by the reference, inside the graph too."""

    op = Decode("image")
    accepts = Feature("bytes")
    fails_on = {"image": b"<html>"}

    def values(self) -> Iterable[Any]:
        frames = [picture().quantize(8), picture("L").quantize(8)]
        return [
            encoded(picture(), "WEBP", lossless=True),
            encoded(frames[0], "GIF", save_all=True, append_images=frames[1:]),
            encoded(picture(), "BMP"),
        ]


class TestDecodeGrey(OpTests):
    op = Decode("jpg", channels=1)
    accepts = Feature("bytes")
    fails_on = {"jpg": b"?"}

    def values(self) -> Iterable[Any]:
        return [encoded(picture(), "JPEG"), encoded(picture("CMYK"), "JPEG"), encoded(picture(), "PNG")]


class TestDecodeGreyPng(OpTests):
    """Grey PNGs are decoded in the graph, all others by the reference."""

    op = Decode("png", channels=1)
    accepts = Feature("bytes")
    fails_on = {"png": b"\x89PNG\r\n\x1a\n"}

    def values(self) -> Iterable[Any]:
        return [*(encoded(picture(mode), "PNG") for mode in ("L", "LA", "1", "P", "RGB")), encoded(picture("L"), "PNG", transparency=3)]


class TestDecodeAlpha(OpTests):
    op = Decode("png", channels=4)
    accepts = Feature("bytes")
    fails_on = {"png": b"?"}

    def values(self) -> Iterable[Any]:
        return [encoded(picture(mode), "PNG") for mode in ("RGB", "RGBA", "L")]


class TestDecodeOwnChannels(OpTests):
    op = Decode("png", channels=0)
    accepts = Feature("bytes")
    fails_on = {"png": b"?"}

    def values(self) -> Iterable[Any]:
        return [encoded(picture(mode), "PNG") for mode in ("RGB", "RGBA", "L")]

    @pytest.mark.parametrize(("mode", "channels"), [("L", 1), ("LA", 2), ("RGB", 3), ("RGBA", 4), ("1", 1), ("I;16", 1), ("P", 1)])
    def test_it_keeps_what_is_there(self, mode: str, channels: int) -> None:
        assert (61, 40, channels) == self.op.apply(encoded(picture(mode), "PNG")).shape

    def test_cmyk_becomes_rgb(self) -> None:
        assert (61, 40, 3) == self.op.apply(encoded(picture("CMYK"), "JPEG")).shape


class TestDecodeTiff(OpTests):
    op = Decode("tif", channels=0)
    accepts = Feature("bytes")
    fails_on = {"tif": b"II*\0"}

    def values(self) -> Iterable[Any]:
        tifffile = pytest.importorskip("tifffile", reason="tifffile is not installed (extra `media`)")
        for array, options in (
            (np.arange(24 * 32, dtype=np.uint16).reshape(24, 32), {}),
            (noise(Feature("float32", (24, 32, 3)))[0], {"photometric": "rgb", "compression": "zlib"}),
            (noise(RGB, sizes=((48, 32),))[0], {"photometric": "rgb", "tile": (16, 16), "byteorder": ">"}),
        ):
            tifffile.imwrite(file := io.BytesIO(), array, **options)
            yield file.getvalue()

    def oracle(self, record: dict[str, Any]) -> dict[str, Any]:
        import tifffile

        pixels = tifffile.imread(io.BytesIO(record["tif"]))
        return {"tif": pixels.reshape(*pixels.shape[:2], -1)}


class TestDecodeSound(OpTests):
    op = Decode("flac")
    accepts = Feature("bytes")
    fails_on = {"flac": b"fLaC"}

    def values(self) -> Iterable[Any]:
        soundfile = pytest.importorskip("soundfile", reason="the extra `media`")
        wave = noise(Feature("float32", (None, 2)), sizes=((900, 2),))[0] * 2 - 1
        for form, subtype, samples in (("FLAC", "PCM_24", wave), ("WAV", "FLOAT", wave[:, 0]), ("OGG", "VORBIS", wave)):
            soundfile.write(file := io.BytesIO(), samples, 8000, format=form, subtype=subtype)
            yield file.getvalue()

    def oracle(self, record: dict[str, Any]) -> dict[str, Any]:
        import soundfile

        samples, rate = soundfile.read(io.BytesIO(record["flac"]), dtype="float32", always_2d=True)
        return {"flac": samples, "flac.rate": np.int32(rate)}


class TestDecodeFilm(OpTests):
    op = Decode("mp4", frames=3)
    accepts = Feature("bytes")
    fails_on = {"mp4": b"no film"}

    def values(self) -> Iterable[Any]:
        av = pytest.importorskip("av", reason="the extra `media`")
        for codec, form in (("h264", "mp4"), ("mpeg4", "avi"), ("vp8", "webm")):
            with av.open(file := io.BytesIO(), "w", format=form) as out:
                stream = out.add_stream(codec, rate=10)
                stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
                pictures = [av.VideoFrame.from_ndarray(noise(RGB, seed, ((48, 64),))[0], format="rgb24") for seed in range(3)]
                out.mux([packet for each in (*pictures, None) for packet in stream.encode(each)])
            yield file.getvalue()

    def oracle(self, record: dict[str, Any]) -> dict[str, Any]:
        import av

        with av.open(io.BytesIO(record["mp4"])) as film:
            return {"mp4": np.stack([frame.to_ndarray(format="rgb24") for frame in film.decode(video=0)])}


class TestDecodeClass(OpTests):
    op = Decode("cls")
    accepts = Feature("bytes")
    fails_on = {"cls": b"cat"}

    def values(self) -> Iterable[Any]:
        return [b"7\n", b"  -12", b"9223372036854775807"]

    @pytest.mark.parametrize("data", [b"", b" ", b"1.5", b"1_000", b"9" * 10_000, "٣".encode(), b"7 8", b"0x10", b"9223372036854775808"])
    def test_what_is_no_whole_number_is_an_error(self, data: bytes) -> None:
        with pytest.raises(DataError) as caught:
            self.op.apply(data)

        assert "E_DECODE" == caught.value.code
        assert "cls" == caught.value.details["field"]


class TestDecodeSmallClass(OpTests):
    op = Decode("cls", dtype="int32")
    accepts = Feature("bytes")
    fails_on = {"cls": b"2147483648"}

    def values(self) -> Iterable[Any]:
        return [b"7", b"-2147483648", b"2147483647"]


class TestDecodeText(OpTests):
    op = Decode("txt")
    accepts = Feature("bytes")
    fails_on = {"txt": b"\xff"}

    def values(self) -> Iterable[Any]:
        return [b"hi", "grün".encode(), b"\xef\xbb\xbfhi"]


class TestDecodeJson(OpTests):
    op = Decode("json")
    accepts = Feature("bytes")
    fails_on = {"json": b"{"}

    def values(self) -> Iterable[Any]:
        return [b'{"a": [1, 2]}', b"3", '"grün"'.encode("utf-16")]


class TestDecodeArray(OpTests):
    op = Decode("npy")
    accepts = Feature("bytes")
    fails_on = {"npy": b"\x93NUMPY"}

    def values(self) -> Iterable[Any]:
        return [npy(np.arange(6, dtype=">i4").reshape(2, 3)), npy(np.asfortranarray(np.eye(3))), npy(np.float32(3))]

    def test_it_is_the_array(self) -> None:
        np.testing.assert_array_equal(np.arange(6).reshape(2, 3), self.op.apply(next(iter(self.values()))))
        np.testing.assert_array_equal(np.triu(np.ones((3, 3))), self.op.apply(npy(np.asfortranarray(np.triu(np.ones((3, 3)))))))


def npy(array: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


class TestArguments:
    @pytest.mark.parametrize("channels", [2, 5, "3", None])
    def test_channels_that_no_picture_has_are_refused(self, channels: Any) -> None:
        with pytest.raises(ChainError, match="channels"):
            Decode("jpg", channels=channels)

    def test_decoding_twice_is_found_in_the_schema(self) -> None:
        with pytest.raises(SchemaError, match="decoded twice"):
            Decode("jpg").infer(RGB)

    def test_a_pickle_is_refused_before_a_byte_is_read(self) -> None:
        with pytest.raises(SchemaError) as caught:
            Decode("pkl").infer(Feature("bytes"))

        assert "E_UNSAFE_DECODER" == caught.value.code

    def test_the_first_of_several_fields_that_is_there_is_decoded(self) -> None:
        record = Decode("jpg;png").run({"__key__": "a", "png": encoded(picture(), "PNG")})

        assert (61, 40, 3) == record["png"].shape

    def test_orientation_is_applied_on_request(self) -> None:
        exif = Image.Exif()
        exif[0x0112] = 6
        data = encoded(picture(), "JPEG", exif=exif)

        assert (61, 40, 3) == Decode("jpg").apply(data).shape
        assert (40, 61, 3) == Decode("jpg", orient=True).apply(data).shape


class TestInTheGraph:
    def test_what_tensorflow_has_as_pil_has_it_is_left_to_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        tf = pytest.importorskip("tensorflow", reason="TensorFlow: pip install 'tarviz[tensorflow-cpu]'")
        monkeypatch.setattr(Decode, "apply", None)
        large = picture(size=(400, 300))
        for channels, forms in ((3, ("RGB", "L")), (1, ("L",))):
            op = Decode("jpg", channels=channels)
            for data in (
                encoded(image, form) for form in ("JPEG", "PNG") for mode in forms for image in (picture(mode), large.convert(mode))
            ):
                assert channels == op.apply_tf(tf.constant(data)).shape[2]
            assert (400, 300, channels) == op.apply_tf(tf.constant(encoded(large, "JPEG", quality=100))).shape
        assert (61, 40, 1) == Decode("jpg", channels=1).apply_tf(tf.constant(encoded(picture(), "JPEG"))).shape

    @pytest.mark.parametrize(("form", "size"), [("JPEG", (400, 300)), ("PNG", (400, 300)), ("PNG", (2, 66_000))])
    def test_one_above_the_limit_is_not(self, form: str, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
        tf = pytest.importorskip("tensorflow", reason="TensorFlow: pip install 'tarviz[tensorflow-cpu]'")
        data = encoded(picture(size=size), form, quality=100)
        seen: list[bytes] = []
        monkeypatch.setattr(Decode, "apply", lambda self, data: seen.append(data) or np.zeros((1, 1, 3), np.uint8))

        assert len(data) > 100_000
        for limit, expected in ((size[0] * size[1], []), (size[0] * size[1] - 1, [data])):
            monkeypatch.setattr("tarviz.ops.decode.MAX_PIXELS", limit)
            Decode("jpg").apply_tf(tf.constant(data))
            assert expected == seen

    @pytest.mark.matrix
    def test_a_picture_above_the_limit_is_refused_by_its_header(self) -> None:
        tf = pytest.importorskip("tensorflow", reason="TensorFlow: pip install 'tarviz[tensorflow-cpu]'")
        large = encoded(Image.new("L", (9000, 9000)), "PNG")
        assert len(large) > 8_000

        with pytest.raises(tf.errors.OpError, match="E_IMAGE_TOO_LARGE"):
            next(iter(tf.data.Dataset.from_tensors(large).map(Decode("png").apply_tf)))

    @pytest.mark.matrix
    def test_damage_is_an_error(self) -> None:
        tf = pytest.importorskip("tensorflow", reason="TensorFlow: pip install 'tarviz[tensorflow-cpu]'")
        for data in (b"", encoded(picture(), "JPEG")[:500], encoded(picture(), "PNG")[:200], b"<html>"):
            with pytest.raises(tf.errors.OpError):
                next(iter(tf.data.Dataset.from_tensors(data).map(Decode("png").apply_tf)))


class TestLeast:
    @staticmethod
    def photo(height: int, width: int, **options: object) -> bytes:
        rows, columns = np.mgrid[0:height, 0:width]
        pixels = np.stack([rows * 255 // height, columns * 255 // width, (rows + columns) % 256], axis=2).astype(np.uint8)
        out = io.BytesIO()
        Image.fromarray(pixels).save(out, "JPEG", quality=92, **options)
        return out.getvalue()

    @pytest.mark.parametrize(
        ("least", "shape"), [((50, 50), (75, 101)), ((100, 100), (150, 202)), ((400, 10), (600, 805)), ((1, 1), (75, 101))]
    )
    def test_a_jpeg_comes_at_a_part_of_its_sides_never_smaller_than_asked(self, least: tuple[int, int], shape: tuple[int, int]) -> None:
        assert (*shape, 3) == Decode("jpg", least=least).apply(self.photo(600, 805)).shape

    def test_other_pictures_keep_their_size(self) -> None:
        out = io.BytesIO()
        Image.new("RGB", (640, 480)).save(out, "PNG")

        assert (480, 640, 3) == Decode("png", least=(10, 10)).apply(out.getvalue()).shape

    @pytest.mark.parametrize("channels", [1, 3])
    @pytest.mark.parametrize("progressive", [False, True])
    def test_the_pixels_do_not_hang_on_the_library(self, channels: int, progressive: bool, monkeypatch: pytest.MonkeyPatch) -> None:
        pytest.importorskip("simplejpeg", reason="simplejpeg is in the extra `fast`")
        data = self.photo(601, 803, progressive=progressive)
        op = Decode("jpg", channels=channels, least=(100, 100))
        fast = op.apply(data)
        monkeypatch.setattr(pictures, "_simplejpeg", lambda: None)

        np.testing.assert_array_equal(fast, op.apply(data))

    def test_it_is_near_to_decoding_in_full_and_resizing(self) -> None:
        data = self.photo(1200, 1600)
        full = Resize("jpg", (100, 100)).apply(Decode("jpg").apply(data)).astype(int)
        part = Resize("jpg", (100, 100)).apply(Decode("jpg", least=(100, 100)).apply(data)).astype(int)

        assert np.abs(full - part)[:, :, :2].max() <= 4

    def test_it_stands_in_the_text_of_a_chain(self) -> None:
        text = "decode(jpg, least=(224, 224))"

        assert text == str(parse_chain(text))

    def test_a_least_size_that_is_none_is_refused(self) -> None:
        with pytest.raises(ChainError, match="a least size"):
            Decode("jpg", least=(0, 5))


class TestKinds:
    @pytest.mark.parametrize(
        ("op", "kind", "typed", "lowers"),
        [
            (Decode("jpg"), "picture", True, True),
            (Decode("jpg", channels=0), "picture", False, False),
            (Decode("png", channels=0, dtype="uint16"), "picture", True, False),
            (Decode("png", channels=4), "picture", True, False),
            (Decode("png", dtype="uint8"), "picture", True, True),
            (Decode("jpg", orient=True), "picture", True, False),
            (Decode("jpg", least=3), "picture", True, False),
            (Decode("tif", page=1), "picture", True, False),
            (Decode("gif"), "picture", True, True),
            (Decode("GIF", frames=2), "film", True, False),
            (Decode("cls"), "class", True, True),
            (Decode("cls", dtype="uint8"), "class", True, False),
            (Decode("cls", dtype="uint32"), "class", True, True),
            (Decode("cls.gz"), "class", True, False),
            (Decode("x.json.gz"), "json", True, False),
            (Decode("gz"), "gz", False, False),
            (Decode("npy"), "npy", False, False),
            (Decode("csv"), "structured", False, False),
            (Decode("txt"), "text", True, False),
            (Decode("wav"), "sound", True, False),
            (Decode("any"), "picture", True, True),
        ],
        ids=str,
    )
    def test_the_name_says_how_much_is_known_before(self, op: Decode, kind: str, typed: bool, lowers: bool) -> None:
        assert (kind, typed, lowers) == (op.kind, op.typed, op.lowers)
        assert op.native(Feature("bytes")) == (kind == "picture" and pictures.decodes_fast())

    def test_options_that_say_nothing_of_it_are_refused(self) -> None:
        for make, message, hint in [
            (lambda: Decode("txt", dtype="int8"), "no use for dtype where txt is a text", "It takes no options."),
            (lambda: Decode("cls", rate=3), "no use for rate where cls is a class", "It takes dtype."),
            (lambda: Decode("wav", frames=3, fps=None), "no use for frames where wav is a sound", "It takes mono, rate, seconds, start."),
            (lambda: Decode("npy", page=2, orient=True), "no use for orient, page where npy is an array", None),
            (lambda: Decode("npz", page=2), "no use for page where npz is arrays", None),
            (lambda: Decode("csv", page=2), "no use for page where csv is an object or a table", None),
            (lambda: Decode("cls", dtype="float32"), "decode reads whole numbers; put convert after it for float32", None),
            (lambda: Decode("mp4", frames=1, every=2), "decode takes one of frames, every and fps", None),
            (lambda: Decode("mp4", fps=1, every=2), "decode takes one of frames, every and fps", None),
        ]:
            with pytest.raises(ChainError) as caught:
                make()
            assert message in caught.value.message
            assert hint is None or hint == caught.value.hint

    def test_options_have_names(self) -> None:
        for count in range(1, 15):
            with pytest.raises(TypeError):
                Decode("mp4", *[None] * count)  # type: ignore[misc]

    def test_what_is_unpacked_may_be_anything(self) -> None:
        assert (0, ("gz", "pkl")) == ((op := Decode("gz", channels=0, unsafe=["gz", "pkl"])).channels, op.unsafe)
        assert ("pkl",) == Decode("pkl", unsafe="pkl").unsafe

    @pytest.mark.parametrize(
        ("op", "schema", "needs", "touched"),
        [
            (Decode("jpg"), "jpg: uint8[?, ?, 3]", {"jpg", "x"}, ("jpg",)),
            (Decode("wav"), "wav: float32[?, ?], wav.rate: int32", {"wav", "x"}, ("wav", "wav.rate")),
            (Decode("mp4", frames=4), "mp4: uint8[4, ?, ?, 3]", {"mp4", "x"}, ("mp4",)),
            (
                Decode("mp4", sound=True, mono=True),
                "mp4: uint8[?, ?, ?, 3], mp4.sound: float32[?, 1], mp4.rate: int32",
                {"mp4", "x"},
                ("mp4", "mp4.sound", "mp4.rate"),
            ),
            (Decode("cls", dtype="int8"), "cls: int8", {"cls", "x"}, ("cls",)),
            (Decode("txt"), "txt: str", {"txt", "x"}, ("txt",)),
            (Decode("json"), "json: object", {"json", "x"}, ("json",)),
            (Decode("pkl", unsafe="pkl"), "pkl: object", {"pkl", "x"}, ("pkl",)),
        ],
        ids=lambda value: "" if isinstance(value, set | frozenset) else str(value),
    )
    def test_the_fields_that_it_makes_are_known(self, op: Decode, schema: str, needs: set[str], touched: tuple[str, ...]) -> None:
        fields = Schema({op.ext: Feature("bytes")})

        assert schema == str(op.run_schema(fields))
        assert needs == op.needs(frozenset({*touched, "x"}))
        assert op.needs(None) is None
        assert touched == op.changed_fields(fields)
        assert {*touched} == op.named

    def test_what_is_seen_of_one_picture_holds_of_all_but_its_size(self) -> None:
        seen = Feature("uint16", (3, 4, 1))

        assert Feature("uint16", (None, None, None)) == Decode("png", channels=0).generalize(seen) == Decode("csv").generalize(seen)
        assert seen == Decode("npy").generalize(seen)

    def test_only_bytes_are_decoded(self) -> None:
        with pytest.raises(SchemaError, match=r"decode\(jpg\) expects bytes, got str\. Is it decoded twice"):
            Decode("jpg").apply("text")


def test_a_film_comes_with_what_is_heard_meanwhile() -> None:
    av = pytest.importorskip("av", reason="the extra `media`")
    heard = np.linspace(-0.5, 0.5, 16_000, dtype=np.float32)[None]
    file = io.BytesIO()
    with av.open(file, "w", format="matroska") as out:
        shown, sound = out.add_stream("mpeg4", rate=10), out.add_stream("pcm_f32le", rate=8000, layout="mono")
        shown.width, shown.height, shown.pix_fmt = 32, 16, "yuv420p"
        for at in range(20):
            picture_ = av.VideoFrame.from_ndarray(np.full((16, 32, 3), 10 * at, np.uint8), format="rgb24")
            frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(heard[:, at * 800 : at * 800 + 800]), format="flt", layout="mono")
            frame.rate, frame.pts = 8000, 800 * at
            for packet in (*shown.encode(picture_), *sound.encode(frame)):
                out.mux(packet)
        for packet in (*shown.encode(), *sound.encode()):
            out.mux(packet)
    record = {"__key__": "k", "mkv": file.getvalue()}

    whole, part = (Decode("mkv", sound=True, **cut).run(record) for cut in ({}, {"start": 0.5, "seconds": 1.0}))

    assert [(20, 16, 32, 3), (10, 16, 32, 3)] == [each["mkv"].shape for each in (whole, part)]
    assert [8000, 8000] == [each["mkv.rate"] for each in (whole, part)]
    np.testing.assert_allclose(heard.T, whole["mkv.sound"], atol=1e-6)
    np.testing.assert_allclose(heard.T[4000:12_000], part["mkv.sound"], atol=1e-6)
    assert isinstance(whole["mkv.rate"], np.int32)
    assert "mkv.sound" not in Decode("mkv").run(record)
