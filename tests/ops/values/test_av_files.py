"""Files opened by PyAV: the first stream of a kind, and one frame of errors."""

from __future__ import annotations

import pytest

from tarviz.model.errors import DataError
from tarviz.ops.values.av_files import av_file
from tarviz.samples import media

pytest.importorskip("av", reason="PyAV is in the extra `media`")


def test_the_stream_is_of_the_kind_asked_for():
    with av_file(media.sound(media.tune(1)[0], "flac"), "sound") as (file, stream):
        assert ("audio", 16_000) == (stream.type, stream.rate)
        assert stream in file.streams


@pytest.mark.parametrize("data", [b"", b"garbage" * 20, b"RIFF\xff\xff\xff\xffWAVEfmt "])
@pytest.mark.parametrize("kind", ["sound", "film"])
def test_what_is_neither_is_a_data_error(kind, data):
    with pytest.raises(DataError, match=kind), av_file(data, kind):
        pass


def test_a_sound_holds_no_film():
    with pytest.raises(DataError, match="no film"), av_file(media.sound(media.tune(1)[0], "flac"), "film"):
        pass
