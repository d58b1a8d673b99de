"""What ops on sound share: where the sample rate comes from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tarviz.model.errors import ChainError, SchemaError
from tarviz.model.types import Feature, Schema
from tarviz.ops.clip import Clip

SOUND = Feature("float32", (None, 1))


def test_a_rate_of_the_op_goes_before_that_of_the_field() -> None:
    record = {"__key__": "a", "wav": np.ones((900, 1), np.float32), "wav.rate": np.int32(200)}

    assert (50, 1) == Clip("wav", 0.5, rate=100).run(record)["wav"].shape


def test_the_field_of_the_rate_is_needed_where_the_op_does_not_say_it() -> None:
    assert {"wav", "wav.rate"} == Clip("wav").needs(frozenset(("wav",)))
    assert {"wav"} == Clip("wav", rate=8000).needs(frozenset(("wav",)))


def test_the_rate_goes_where_the_sound_goes() -> None:
    assert ("wav", "wav.rate") == Clip("wav").changed_fields(Schema({"wav": SOUND, "wav.rate": Feature("int32"), "cls": SOUND}))
    assert ("wav",) == Clip("wav", rate=8000).changed_fields(Schema(wav=SOUND))


def test_a_schema_without_a_rate_is_refused_before_a_byte_is_read() -> None:
    with pytest.raises(SchemaError, match="does not know the sample rate"):
        Clip("wav").run_schema(Schema(wav=SOUND))


@pytest.mark.parametrize("rate", [0, -1, 8000.0, True])
def test_a_rate_that_is_none_is_refused(rate: Any) -> None:
    with pytest.raises(ChainError, match="rate as a whole number from 1 on"):
        Clip("wav", rate=rate)


def test_sound_of_16_bits_is_what_a_wav_of_them_is() -> None:
    samples = np.array([[-32768], [0], [16384]], np.int16)

    assert [[-1], [0], [0.5]] == Clip("npy", 0.003, rate=1000).run({"__key__": "a", "npy": samples})["npy"].tolist()
