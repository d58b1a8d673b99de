"""Films: the frames that PyAV decodes, those on the screen at the times that are asked for."""

from __future__ import annotations

import io
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from tarviz.model.errors import DataError, LimitError
from tarviz.ops import parse_chain
from tarviz.ops.values.films import WHOLE, Cut, decode_film

av = pytest.importorskip("av", reason="the extra `media`")
FORMS = {"mp4": "libx264", "webm": "libvpx", "matroska": "libx264", "avi": "mpeg4", "mov": "libx264"}


@lru_cache
def film(form: str = "mp4", frames: int = 50, rate: int = 10, size: tuple[int, int] = (48, 64)) -> bytes:
    file = io.BytesIO()
    with av.open(file, "w", format=form) as out:
        stream = out.add_stream(FORMS[form], rate=rate)
        stream.height, stream.width = size
        stream.pix_fmt, stream.gop_size = "yuv420p", 12
        for at in range(frames):
            pixels = np.zeros((*size, 3), np.uint8)
            pixels[:, : 1 + at % size[1]] = (5 * at % 256, 255 - 5 * at % 256, 100)
            for packet in stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")):
                out.mux(packet)
        for packet in stream.encode():
            out.mux(packet)
    return file.getvalue()


@lru_cache
def decoded(data: bytes) -> tuple[Any, list[float]]:
    with av.open(io.BytesIO(data)) as file:
        frames = list(file.decode(video=0))
        return np.stack([frame.to_ndarray(format="rgb24") for frame in frames]), [frame.time - frames[0].time for frame in frames]


@pytest.mark.parametrize("form", FORMS)
class TestFrames:
    def test_all_of_them_or_each_third(self, form: str) -> None:
        whole, _ = decoded(film(form))

        np.testing.assert_array_equal(whole, decode_film(film(form), WHOLE))
        np.testing.assert_array_equal(whole[::3], decode_film(film(form), Cut(every=3)))

    @pytest.mark.parametrize("count", [1, 4, 16, 120])
    def test_as_many_as_asked_for_spread_evenly(self, form: str, count: int) -> None:
        whole, times = decoded(film(form))
        wanted = [5.0 * (at + 0.5) / count for at in range(count)]
        expected = whole[[max(at for at, time in enumerate(times) if time <= place + 1e-6) for place in wanted]]

        np.testing.assert_array_equal(expected, decode_film(film(form), Cut(frames=count)))

    def test_so_many_a_second_of_a_part(self, form: str) -> None:
        whole, times = decoded(film(form))
        expected = whole[[max(at for at, time in enumerate(times) if time <= 2 + n / 2 + 1e-6) for n in range(4)]]

        np.testing.assert_array_equal(expected, decode_film(film(form), Cut(fps=2, start=2, seconds=2)))


class TestParts:
    @settings(max_examples=30, deadline=None)
    @given(st.floats(0, 4), st.floats(0.2, 3), st.integers(1, 9))
    def test_a_part_has_the_frames_that_are_on_the_screen_then(self, start: float, seconds: float, count: int) -> None:
        whole, times = decoded(film())
        end = min(5.0, start + seconds)
        wanted = [start + (end - start) * (at + 0.5) / count for at in range(count)]
        near = [place for place in wanted if min(abs(place - time) for time in times) < 1e-4]
        if not near:  # on the border of two frames either is right
            expected = whole[[max(at for at, time in enumerate(times) if time <= place) for place in wanted]]

            np.testing.assert_array_equal(expected, decode_film(film(), Cut(frames=count, start=start, seconds=seconds)))

    def test_frames_come_smaller_where_that_suffices(self) -> None:
        assert (2, 24, 32, 3) == decode_film(film(), Cut(frames=2), least=(20, 20)).shape

    def test_a_part_behind_the_end_is_an_error(self) -> None:
        with pytest.raises(DataError, match="no frame in that part"):
            decode_film(film(), Cut(start=60, every=1))

    def test_a_film_larger_than_the_limit_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TARVIZ_MAX_MEMBER_BYTES", "100000")
        with pytest.raises(LimitError, match="more than the limit"):
            decode_film(film(), WHOLE)

    @pytest.mark.parametrize("data", [b"", b"\0\0\0\x18ftypisom", b"<html>", b"\x1aE\xdf\xa3"])
    def test_what_is_no_film_is_an_error(self, data: bytes) -> None:
        with pytest.raises(DataError, match="E_DECODE"):
            decode_film(data, WHOLE)


class TestAnimations:
    def test_gif_and_webp_are_films_where_frames_are_asked_for(self) -> None:
        frames = [Image.fromarray(np.full((8, 9, 3), 60 * at, np.uint8)) for at in range(4)]
        for form in ("GIF", "WEBP"):
            file = io.BytesIO()
            more: dict[str, Any] = {"lossless": True} if form == "WEBP" else {}
            frames[0].save(file, form, save_all=True, append_images=frames[1:], duration=100, **more)
            ext = form.lower()

            made = parse_chain(f"decode({ext}, frames=2)").run({"__key__": "a", ext: file.getvalue()})[ext]

            assert [60, 180] == made[:, 0, 0, 0].tolist()


class TestChains:
    def test_what_moves_a_picture_moves_each_frame_alike(self) -> None:
        record = {"__key__": "a", "mp4": film()}
        frames = parse_chain("decode(mp4, frames=3)").run(record)["mp4"]
        chain = "resize(mp4, (32, 40))|random_crop(mp4, (20, 20))|flip(mp4)|convert(mp4, float32)|normalize(mp4, 0.5, 0.5)"
        together = parse_chain(chain).run({"__key__": "a", "mp4": frames})["mp4"]

        for at, frame in enumerate(frames):
            np.testing.assert_array_equal(parse_chain(chain).run({"__key__": "a", "mp4": frame})["mp4"], together[at])

    def test_a_clip_is_some_frames_in_a_row(self) -> None:
        whole, _ = decoded(film())
        made = parse_chain("decode(mp4)|random_clip(mp4, 7)").run({"__key__": "b", "mp4": film()})["mp4"]
        begins = [at for at in range(44) if np.array_equal(whole[at : at + 7], made)]

        assert 1 == len(begins)
