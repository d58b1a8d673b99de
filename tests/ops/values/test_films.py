"""Films: the frames that PyAV decodes, those on the screen at the times that are asked for."""

from __future__ import annotations

import io
import struct
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from tarviz.model.errors import DataError, LimitError
from tarviz.ops import parse_chain
from tarviz.ops.values.films import WHOLE, Cut, FilmFacts, decode_film, film_facts

av = pytest.importorskip("av", reason="the extra `media`")
FORMS = {"avi": "mpeg4", "webm": "libvpx", "matroska": "libx264", "mov": "libx264", "mp4": "libx264"}


@lru_cache
def film(form: str = "mp4", frames: int = 50, rate: int = 10, size: tuple[int, int] = (48, 64), live: str = "0") -> bytes:
    file = io.BytesIO()
    with av.open(file, "w", format=form, options={"live": "1"} if live == "1" else {}) as out:
        stream = out.add_stream(FORMS.get(form, "mpeg2video" if form == "mpeg" else "libx264"), rate=rate)
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

    def test_as_many_as_asked_for_spread_evenly(self, form: str) -> None:
        whole, times = decoded(film(form))
        for count in (1, 4, 16, 120):
            wanted = [5.0 * (at + 0.5) / count for at in range(count)]
            expected = whole[[max(at for at, time in enumerate(times) if time <= place + 1e-6) for place in wanted]]

            np.testing.assert_array_equal(expected, decode_film(film(form), Cut(frames=count)))

    def test_so_many_a_second_of_a_part(self, form: str) -> None:
        whole, times = decoded(film(form))
        expected = whole[[max(at for at, time in enumerate(times) if time <= 2 + n / 2 + 1e-6) for n in range(4)]]

        np.testing.assert_array_equal(expected, decode_film(film(form), Cut(fps=2, start=2, seconds=2)))


class TestParts:
    @pytest.mark.parametrize("form", ["mp4", "mov", "matroska", "webm", "avi", "mpegts", "mpeg"])
    def test_no_frame_of_it_is_missing(self, form: str) -> None:
        data = film(form, 40, 25)
        whole, times = decoded(data)

        for start in (0.2, 0.49, 1.0, 1.31):
            expected = whole[[at for at, time in enumerate(times) if start - 1e-3 <= time < start + 0.2 - 1e-3]]
            np.testing.assert_array_equal(expected, decode_film(data, Cut(start=start, seconds=0.2)))

    @settings(max_examples=30, deadline=None)
    @given(st.floats(0, 4), st.floats(0.2, 3), st.integers(1, 9))
    def test_a_part_has_the_frames_that_are_on_the_screen_then(self, start: float, seconds: float, count: int) -> None:
        whole, times = decoded(film())
        end = min(5.0, start + seconds)
        wanted = [start + (end - start) * (at + 0.5) / count for at in range(count)]
        near = [place for place in wanted if min(abs(place - time) for time in times) < 6e-4]
        if not near:  # on the border of two frames either is right
            expected = whole[[max(at for at, time in enumerate(times) if time <= place) for place in wanted]]

            np.testing.assert_array_equal(expected, decode_film(film(), Cut(frames=count, start=start, seconds=seconds)))

    @pytest.mark.parametrize(("late", "first"), [(0.0004, 3), (0.0006, 4)])
    def test_half_a_millisecond_is_forgiven(self, late: float, first: int) -> None:
        whole, _ = decoded(film())

        np.testing.assert_array_equal(whole[first:5], decode_film(film(), Cut(start=0.3 + late, seconds=0.15)))
        np.testing.assert_array_equal(whole[[5 - first // 4]], decode_film(film(), Cut(fps=1, start=0.5 - late, seconds=0.1)))

    def test_frames_come_smaller_where_that_suffices(self) -> None:
        assert (2, 24, 32, 3) == decode_film(film(), Cut(frames=2), least=(20, 20)).shape

    def test_rows_may_be_longer_than_the_picture_is_wide(self) -> None:
        data = film(frames=3, size=(48, 50))

        np.testing.assert_array_equal(decoded(data)[0], decode_film(data, WHOLE))

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


class TestCut:
    """Which frames are meant, by their times: ten of a tenth of a second each."""

    TIMES = [at / 10 for at in range(10)]

    def test_they_are_those_on_the_screen_then(self) -> None:
        for cut, expected in [
            (Cut(), list(range(10))),
            (Cut(every=4), [0, 4, 8]),
            (Cut(every=2, start=0.3), [3, 5, 7, 9]),
            (Cut(start=0.3, seconds=0.2), [3, 4]),
            (Cut(seconds=0.25), [0, 1, 2]),
            (Cut(frames=2), [2, 7]),
            (Cut(frames=1, start=0.8), [9]),
            (Cut(frames=12), [0, 1, 2, 2, 3, 4, 5, 6, 7, 7, 8, 9]),
            (Cut(fps=5), [0, 2, 4, 6, 8]),
            (Cut(fps=3, start=0.5), [5, 8]),
            (Cut(fps=4, start=0.2, seconds=0.5), [2, 4]),
            (Cut(fps=1, start=2), [9]),
            (Cut(frames=2, start=0.5, seconds=9), [6, 8]),
        ]:
            assert expected == cut.thin(self.TIMES, 1.0)

    def test_they_are_told_by_times_where_so_many_are_asked_for(self) -> None:
        assert [True, True, False, False, False] == [
            cut.timed for cut in (Cut(frames=2), Cut(fps=2), Cut(every=2), Cut(), Cut(frames=2, every=2))
        ]
        assert [0, 0.5, 1] == Cut(fps=2).times(1.5)
        assert [3] == Cut(fps=2, start=3).times(1.5)


class TestOddFilms:
    @pytest.mark.parametrize("rate", [24, 30, 60])
    @pytest.mark.parametrize("form", ["matroska", "webm", "mp4"])
    def test_each_frame_comes_once_where_as_many_a_second_are_asked_for(self, form: str, rate: int) -> None:
        """Matroska's times are whole milliseconds, no frame's begin of these."""
        data = film(form, 20, rate)
        whole, _ = decoded(data)

        np.testing.assert_array_equal(whole, decode_film(data, Cut(fps=rate, seconds=20 / rate)))
        np.testing.assert_array_equal(whole[::2], decode_film(data, Cut(fps=rate / 2, seconds=20 / rate)))
        for at in range(20):
            np.testing.assert_array_equal(whole[at : at + 2], decode_film(data, Cut(start=at / rate, seconds=2 / rate)))

    def test_one_that_does_not_say_how_long_it_is_is_counted(self) -> None:
        data = film("matroska", 20, live="1")
        whole, _ = decoded(data)
        assert film_facts(data).seconds is None

        np.testing.assert_array_equal(whole[[2, 7, 12, 17]], decode_film(data, Cut(frames=4)))
        np.testing.assert_array_equal(whole[[0, 5, 10, 15]], decode_film(data, Cut(fps=2)))
        np.testing.assert_array_equal(whole[[3, 4, 5]], decode_film(data, Cut(start=0.3, seconds=0.3)))

    def test_one_that_does_not_say_how_long_it_is_is_measured_by_its_frames(self) -> None:
        data = film("matroska", 1, live="1")

        assert 3 == len(decode_film(data, Cut(frames=3)))  # the same, for a second
        assert 2 == len(decode_film(data, Cut(fps=2)))
        assert 1 == len(decode_film(data, Cut(every=1)))

    @pytest.mark.parametrize(
        ("matrix", "clockwise"), [((0, 1, -1, 0), 1), ((-1, 0, 0, -1), 2), ((0, -1, 1, 0), 3)], ids=["90", "180", "270"]
    )
    def test_one_that_was_taken_sideways_stands_upright(self, matrix: tuple[int, ...], clockwise: int) -> None:
        """The matrix in the header of an MP4's track (ISO/IEC 14496-12 §8.3.2)."""
        data = bytearray(film(frames=3))
        a, b, c, d = (n << 16 for n in matrix)
        at = data.index(b"tkhd") + 4 + 40
        data[at : at + 36] = struct.pack(">9i", a, b, 0, c, d, 0, 0, 0, 1 << 30)
        expected = np.rot90(decoded(film(frames=3))[0], -clockwise, axes=(1, 2))

        np.testing.assert_array_equal(expected, decode_film(bytes(data), WHOLE))
        assert expected.shape[1:3] == ((facts := film_facts(bytes(data))).height, facts.width)
        assert (3, *(side // 2 for side in expected.shape[1:3]), 3) == decode_film(bytes(data), WHOLE, least=(24, 24)).shape

    def test_a_rate_that_nobody_says_is_none(self) -> None:
        found = film_facts(film("mpegts", 1))

        assert (0.0, "h264") == (found.rate, found.codec)

    def test_what_its_header_says(self) -> None:
        assert FilmFacts(64, 48, 5.0, 10.0, "h264") == film_facts(film())
        assert FilmFacts(64, 48, 5.0, 10.0, "vp8") == film_facts(film("webm"))  # which says it of the file, not of the stream

    def test_without_a_picture_it_is_no_film(self) -> None:
        from tests.ops.values.test_sounds import film_sound

        with pytest.raises(DataError, match=r"there is no film in it, but audio") as caught:
            decode_film(film_sound("aac", "ipod"), WHOLE)
        assert "E_NOT_SHOWN" == caught.value.code


class TestPictures:
    """GIF, WebP and APNG."""

    def gif(self, count: int = 4, duration: Any = 100, size: tuple[int, int] = (16, 24)) -> bytes:
        frames = [Image.fromarray(np.full((*size, 3), 60 * at, np.uint8)) for at in range(count)]
        file = io.BytesIO()
        frames[0].save(file, "GIF", save_all=True, append_images=frames[1:], duration=duration)
        return file.getvalue()

    @pytest.mark.parametrize(
        ("cut", "expected"),
        [(WHOLE, [0, 60, 120, 180]), (Cut(every=3), [0, 180]), (Cut(start=0.1, seconds=0.2), [60, 120]), (Cut(fps=5), [0, 120])],
    )
    def test_frames_are_shown_as_long_as_the_file_says(self, cut: Cut, expected: list[int]) -> None:
        assert expected == decode_film(self.gif(), cut)[:, 0, 0, 0].tolist()

    def test_none_is_shown_for_less_than_a_hundredth_of_a_second(self) -> None:
        assert [0, 180] == decode_film(self.gif(duration=[1000, 20, 20, 960]), Cut(frames=2))[:, 0, 0, 0].tolist()
        # The first of these says nothing, which is a tenth of a second.
        assert [0, 0, 0, 0, 0, 60, 180] == decode_film(self.gif(duration=0), Cut(fps=50))[:, 0, 0, 0].tolist()

    def test_they_come_smaller_where_that_suffices(self) -> None:
        assert [(4, 16, 24, 3), (4, 8, 12, 3), (4, 4, 6, 3)] == [
            decode_film(self.gif(), WHOLE, least=least).shape for least in (None, (8, 8), (4, 5))
        ]

    def test_damage_is_named_and_so_is_what_is_too_much(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(DataError, match="the animation is damaged"):
            decode_film(b"GIF89a" + bytes(9), WHOLE)
        monkeypatch.setenv("TARVIZ_MAX_MEMBER_BYTES", str(4 * 16 * 24 * 3 - 1))
        with pytest.raises(LimitError, match="4 frames of 24 x 16 pixels are more than the limit"):
            decode_film(self.gif(), WHOLE)
        monkeypatch.setenv("TARVIZ_MAX_MEMBER_BYTES", str(4 * 16 * 24 * 3))
        assert 4 == len(decode_film(self.gif(), WHOLE))
