"""Sound: the samples of soundfile and PyAV, the rates of soxr, the spectrograms of librosa."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarviz.model.errors import DataError, LimitError
from tarviz.ops import parse_chain
from tarviz.ops.values.sounds import decibels, decode_sound, mel_bands, power_spectrogram, resample

NOISE = np.random.default_rng(5).uniform(-0.4, 0.4, (12_000, 2)).astype(np.float32)
FORMS = [
    ("WAV", "PCM_16"),
    ("WAV", "PCM_24"),
    ("WAV", "FLOAT"),
    ("WAV", "ULAW"),
    ("FLAC", "PCM_24"),
    ("OGG", "VORBIS"),
    ("MP3", None),
    ("AIFF", "PCM_16"),
]


def sound(form: str = "FLAC", subtype: str | None = None, rate: int = 8000, samples: Any = NOISE) -> bytes:
    soundfile = pytest.importorskip("soundfile", reason="the extra `media`")
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format=form, subtype=subtype)
    return file.getvalue()


def film_sound(codec: str, form: str) -> bytes:
    av = pytest.importorskip("av", reason="the extra `media`")
    file = io.BytesIO()
    with av.open(file, "w", format=form) as out:
        stream = out.add_stream(codec, rate=16_000, layout="stereo")
        stream.bit_rate = 64_000
        frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(NOISE.T), format="fltp", layout="stereo")
        frame.rate = 16_000
        for packet in (*stream.encode(frame), *stream.encode()):
            out.mux(packet)
    return file.getvalue()


class TestSamples:
    @pytest.mark.parametrize(("form", "subtype"), FORMS)
    def test_they_are_those_of_soundfile(self, form: str, subtype: str | None) -> None:
        data = sound(form, subtype)
        import soundfile

        expected, rate = soundfile.read(io.BytesIO(data), dtype="float32", always_2d=True)
        found = decode_sound(data)

        assert (rate, np.float32) == (found.rate, found.samples.dtype)
        np.testing.assert_allclose(expected, found.samples, rtol=0, atol=1e-6 if form == "MP3" else 0)

    @pytest.mark.parametrize(
        ("at", "put"),
        [
            (36, b"LIST\3\0\0\0INF\0"),  # FFmpeg's place for what it says of itself, filled up to an even number of bytes
            (36, b"JUNK\0\0\0\0LIST\4\0\0\0INFO"),
            (36, b"fact\4\0\0\0\xe0\x2e\0\0"),
            (44 + NOISE.size * 2, b"LIST\4\0\0\0INFO"),
        ],
    )
    def test_so_are_those_of_a_wav_with_more_in_it(self, at: int, put: bytes) -> None:
        data = bytearray(sound("WAV", "PCM_16"))
        data[at:at] = put
        data[4:8] = (len(data) - 8).to_bytes(4, "little")
        import soundfile

        expected, rate = soundfile.read(io.BytesIO(data), dtype="float32", always_2d=True)
        found = decode_sound(bytes(data))

        assert (rate, len(expected) / rate, "wav pcm_16") == (found.rate, found.length, found.codec)
        np.testing.assert_array_equal(expected, found.samples)

    @pytest.mark.parametrize("form", ["WAV", "FLAC"])
    def test_a_part_that_begins_behind_the_end_is_empty(self, form: str) -> None:
        assert (0, 2) == decode_sound(sound(form, "PCM_16"), start=9, seconds=1).samples.shape

    @pytest.mark.parametrize(("codec", "form"), [("aac", "ipod"), ("wmav2", "asf")])
    def test_what_soundfile_does_not_know_is_that_of_av(self, codec: str, form: str) -> None:
        data = film_sound(codec, form)
        import av

        with av.open(io.BytesIO(data)) as file:
            expected = np.concatenate([frame.to_ndarray() for frame in file.decode(audio=0)], axis=1).T
        found = decode_sound(data)

        assert 16_000 == found.rate
        np.testing.assert_allclose(expected, found.samples, atol=1e-4)

    @settings(max_examples=20, deadline=None)
    @given(st.floats(0, 1.4), st.floats(0.01, 2))
    def test_a_part_is_that_part_of_the_whole(self, start: float, seconds: float) -> None:
        begin = round(start * 8000)

        for data in (sound("FLAC"), sound("WAV", "PCM_16")):
            whole = decode_sound(data).samples
            np.testing.assert_array_equal(
                whole[begin : begin + round(seconds * 8000)], decode_sound(data, start=start, seconds=seconds).samples
            )

    @pytest.mark.parametrize("rate", [48_000, 16_000])
    def test_so_is_one_of_an_mp3(self, rate: int) -> None:
        """A frame of an MP3 may lie in those before it (ISO/IEC 11172-3, main_data_begin), above all where there is little to hear."""
        data = sound("MP3", None, rate, 0.4 * np.sin(np.arange(4 * rate) / 20))
        whole = decode_sound(data).samples

        for begin in (100, rate // 3, 2 * rate + 7, 3 * rate):
            found = decode_sound(data, start=begin / rate, seconds=0.5).samples
            np.testing.assert_allclose(whole[begin : begin + rate // 2], found, atol=1e-6)

    def test_what_was_written_into_a_pipe_is_read_to_its_end(self) -> None:
        flac, wav = bytearray(sound("FLAC", "PCM_16")), bytearray(sound("WAV", "PCM_16"))
        flac[21], flac[22:26] = flac[21] & 0xF0, bytes(4)
        at = wav.index(b"data") + 4
        wav[4:8] = wav[at : at + 4] = b"\xff" * 4

        for form, data in (("FLAC", bytes(flac)), ("WAV", bytes(wav))):
            whole, found = decode_sound(sound(form, "PCM_16")), decode_sound(data)
            np.testing.assert_array_equal(whole.samples, found.samples)
            np.testing.assert_array_equal(whole.samples[4000:8000], decode_sound(data, start=0.5, seconds=0.5).samples)
            assert 1.5 == found.length

    @pytest.mark.parametrize("form", ["WAV", "FLAC", "AIFF"])
    def test_one_that_is_cut_short_is_an_error(self, form: str) -> None:
        data = sound(form, None, 8000)

        for share in (0.3, 0.6, 0.95):
            with pytest.raises(DataError, match="E_DECODE"):
                decode_sound(data[: int(share * len(data))])

    def test_an_mp3_that_was_cut_is_as_long_as_it_is_now(self) -> None:
        """Tools that cut them leave the count of frames in the first one."""
        data = sound("MP3", None, 8000)
        found = decode_sound(data[: len(data) // 2])

        assert len(found.samples) < 7000
        assert found.length == len(found.samples) / 8000

    def test_a_part_by_av_is_that_part_too(self) -> None:
        data = film_sound("aac", "ipod")
        whole = decode_sound(data).samples

        np.testing.assert_array_equal(whole[1600:4800], decode_sound(data, start=0.1, seconds=0.2).samples)

    def test_one_channel_and_another_rate(self) -> None:
        soxr = pytest.importorskip("soxr", reason="the extra `media`")
        found = decode_sound(sound("WAV", "FLOAT"), rate=16_000, mono=True)

        assert 16_000 == found.rate
        np.testing.assert_allclose(soxr.resample(NOISE.mean(axis=1), 8000, 16_000), found.samples[:, 0], atol=1e-6)

    @pytest.mark.parametrize("data", [b"", b"RIFF\0\0\0\0WAVE", b"fLaC", b"<html>", b"ID3" + bytes(50)])
    def test_what_is_no_sound_is_an_error(self, data: bytes) -> None:
        pytest.importorskip("av", reason="the extra `media`")
        with pytest.raises(DataError, match="E_DECODE"):
            decode_sound(data)

    def test_sound_that_ffmpeg_has_no_decoder_for_is_an_error(self) -> None:
        pytest.importorskip("av", reason="the extra `media`")
        data = bytearray(sound("WAV", "PCM_16"))
        data[20] = 3  # numbers with a point, of 16 bits

        with pytest.raises(DataError, match="E_DECODE"):
            decode_sound(bytes(data))


class TestSpectrograms:
    @pytest.mark.parametrize(("size", "hop"), [(400, 160), (512, 128), (1024, 1000)])
    def test_power_is_that_of_librosa(self, size: int, hop: int) -> None:
        librosa = pytest.importorskip("librosa", reason="librosa is the oracle for spectrograms")
        expected = np.abs(librosa.stft(NOISE.T, n_fft=size, hop_length=hop)) ** 2

        np.testing.assert_allclose(expected.transpose(2, 1, 0), power_spectrogram(NOISE, size=size, hop=hop), rtol=1e-4, atol=1e-4)

    @pytest.mark.parametrize(("rate", "bands", "low", "high"), [(8000, 80, 0, 4000), (16_000, 128, 20, 7600), (44_100, 40, 0, 22_050)])
    def test_bands_are_those_of_librosa(self, rate: int, bands: int, low: float, high: float) -> None:
        librosa = pytest.importorskip("librosa", reason="librosa is the oracle for spectrograms")
        expected = librosa.filters.mel(sr=rate, n_fft=512, n_mels=bands, fmin=low, fmax=high)

        np.testing.assert_allclose(expected.T, mel_bands(rate, 512, bands, low, high), atol=1e-7)

    def test_silence_is_a_hundred_below(self) -> None:
        np.testing.assert_allclose([-100, 0], decibels(np.array([0, 1], np.float32)), atol=1e-4)


class TestChains:
    def test_the_rate_travels_with_the_sound(self) -> None:
        record = {"__key__": "a", "flac": sound()}

        assert 8000 == parse_chain("decode(flac)").run(record)["flac.rate"]
        assert (16_000, (48_000, 1)) == (
            (made := parse_chain("decode(flac, rate=16000, mono=True)|clip(flac, seconds=3)").run(record))["flac.rate"],
            made["flac"].shape,
        )

    def test_a_mel_spectrogram_needs_the_rate_that_only_decode_knows(self) -> None:
        assert {"flac"} == parse_chain("decode(flac)|log_mel(flac)").needs(["flac"])


class TestLimits:
    def test_more_than_the_limit_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        data, whole = sound("FLAC"), 12_000 * 2 * 4
        monkeypatch.setenv("TARVIZ_MAX_MEMBER_BYTES", str(whole))
        assert 12_000 == len(decode_sound(data).samples)
        monkeypatch.setenv("TARVIZ_MAX_MEMBER_BYTES", str(whole - 1))
        with pytest.raises(LimitError, match="12000 samples of 2 channels are more than the limit"):
            decode_sound(data)
        assert 8000 == len(decode_sound(data, seconds=1).samples)
        with pytest.raises(LimitError):
            decode_sound(film_sound("aac", "ipod"))

    def test_no_more_than_the_part_is_decoded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        data = film_sound("aac", "ipod")
        import av

        frames: list[int] = []
        own = av.AudioResampler(format="fltp")

        class Counted:
            def __init__(self, format: str) -> None:
                assert "fltp" == format

            def resample(self, frame: Any) -> Any:
                frames.append(frame.samples)
                return own.resample(frame)

        monkeypatch.setattr(av, "AudioResampler", Counted)

        assert 1600 == len(decode_sound(data, seconds=0.1).samples)
        assert 1600 <= sum(frames) < 1600 + 1024

    def test_of_a_part_by_av_what_it_keeps_is_counted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        data = film_sound("aac", "ipod")
        monkeypatch.setenv("TARVIZ_MAX_MEMBER_BYTES", str(3200 * 2 * 4))

        assert (3200, 2) == decode_sound(data, start=0.3, seconds=0.2).samples.shape
        with pytest.raises(LimitError, match="samples of 2 channels"):
            decode_sound(data, start=0.3, seconds=0.3)

    def test_a_part_ends_with_the_sound(self) -> None:
        data = sound("FLAC")

        assert [12_000, 4000, 0, 1] == [
            len(decode_sound(data, start=start, seconds=seconds).samples) for start, seconds in ((0, 9), (1, None), (3, 1), (1.499875, 1))
        ]

    @pytest.mark.parametrize(
        ("codec", "form"), [("mp2", "mpegts"), ("mp2", "mpeg"), ("aac", "mpegts"), ("aac", "matroska"), ("aac", "mp4")]
    )
    def test_times_begin_where_the_sound_does(self, codec: str, form: str) -> None:
        """MPEG-TS and MPEG-PS begin at a second or more, by their own clock."""
        av = pytest.importorskip("av", reason="the extra `media`")
        file = io.BytesIO()
        with av.open(file, "w", format=form) as out:
            stream = out.add_stream(codec, rate=16_000, layout="mono")
            loud = np.sin(np.arange(64_000) / 5) * np.linspace(0.1, 0.9, 64_000)
            frame = av.AudioFrame.from_ndarray(loud.astype(np.float32)[None], format="fltp", layout="mono")
            frame.rate = 16_000
            own = av.AudioResampler(stream.codec_context.format, "mono", 16_000, frame_size=stream.codec_context.frame_size)
            for piece in (*own.resample(frame), *own.resample(None)):
                out.mux(stream.encode(piece))
            out.mux(stream.encode())
        whole = decode_sound(file.getvalue()).samples

        for start in (0.5, 1.5, 2.25, 3.0):
            begin = round(start * 16_000)
            found = decode_sound(file.getvalue(), start=start, seconds=0.5).samples
            np.testing.assert_allclose(whole[begin : begin + 8000], found, atol=0.02)

    def test_a_part_far_into_a_film_is_that_part(self) -> None:
        """The place that is sought lies before it."""
        av = pytest.importorskip("av", reason="the extra `media`")
        samples = np.repeat(np.linspace(-0.5, 0.5, 64_000, dtype=np.float32)[:, None], 2, axis=1)
        file = io.BytesIO()
        with av.open(file, "w", format="matroska") as out:
            stream = out.add_stream("pcm_f32le", rate=16_000, layout="stereo")
            for at in range(0, 64_000, 1600):
                frame = av.AudioFrame.from_ndarray(
                    np.ascontiguousarray(samples[at : at + 1600].reshape(1, -1)), format="flt", layout="stereo"
                )
                frame.rate, frame.pts = 16_000, at
                for packet in stream.encode(frame):
                    out.mux(packet)
            for packet in stream.encode():
                out.mux(packet)

        for start, seconds in ((2.5, 0.5), (3.25, None), (1.0, 0.25), (0.5, 3)):
            found = decode_sound(file.getvalue(), start=start, seconds=seconds)
            stop = None if seconds is None else round((start + seconds) * 16_000)
            np.testing.assert_allclose(samples[round(start * 16_000) : stop], found.samples, atol=1e-6)
            assert (16_000, 4.0) == (found.rate, found.length)

    def test_facts_of_the_whole_go_along(self) -> None:
        heard = decode_sound(sound("WAV", "PCM_16"), seconds=0.5)

        assert (8000, 1.5, "wav pcm_16") == (heard.rate, heard.length, heard.codec)
        assert resample(heard, 8000) is heard is resample(heard, None)

    def test_sound_that_is_shorter_than_a_frame_is_filled_up(self) -> None:
        assert (1, 33, 2) == power_spectrogram(NOISE[:0], size=64, hop=16).shape
        assert (1, 4, 1) == power_spectrogram(NOISE[:0, :1], size=7, hop=16).shape
