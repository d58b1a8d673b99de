"""Values that are no colours of 8 bits, through every runner: 16 bits, palettes, sound and film are those of the reference."""

from __future__ import annotations

import io
import logging
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tarviz.model.errors import SchemaError
from tarviz.pipeline import Pipeline
from tarviz.samples import write_shard

av = pytest.importorskip("av", reason="the extra `media`")
soundfile = pytest.importorskip("soundfile", reason="the extra `media`")

CHAINS = {
    "depth": ("decode(depth.png, dtype=uint16, channels=1)|center_crop(depth.png, (8, 9))", "depth.png"),
    "mask": ("decode(seg.png, channels=0)", "seg.png"),
    "mask as int32": ("decode(seg.png, channels=0, dtype=int32)", "seg.png"),
    "sound": ("decode(flac, rate=16000, mono=True)|clip(flac, seconds=0.1)", ("flac", "flac.rate")),
    "mel": ("decode(flac)|clip(flac, seconds=0.1)|log_mel(flac, bands=20)", "flac"),
    "film": ("decode(mp4, frames=4)|resize(mp4, (16, 20))|random_crop(mp4, (12, 12))|flip(mp4)|convert(mp4, float32)", "mp4"),
}


def _png(pixels: Any, palette: bool = False) -> bytes:
    image = Image.fromarray(pixels)
    if palette:
        image.putpalette([255 - n for n in range(256) for _ in range(3)])
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def _film(seed: int) -> bytes:
    out = io.BytesIO()
    with av.open(out, "w", format="mp4") as file:
        stream = file.add_stream("libx264", rate=10)
        stream.width, stream.height, stream.pix_fmt = 48, 32, "yuv420p"
        for at in range(12):
            frame = av.VideoFrame.from_ndarray(np.full((32, 48, 3), (20 * at + seed) % 256, np.uint8), format="rgb24")
            file.mux(stream.encode(frame))
        file.mux(stream.encode())
    return out.getvalue()


@pytest.fixture(scope="module")
def shard(tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("values") / "a.tar"
    random = np.random.default_rng(1)
    with tarfile.open(path, "w") as tar:
        for number in range(4):
            sound = io.BytesIO()
            soundfile.write(sound, random.uniform(-0.5, 0.5, (1500 + 200 * number, 2)), 8000, format="FLAC")
            fields = {
                "depth.png": _png(random.integers(0, 65536, (10 + number, 12), np.uint16)),
                "seg.png": _png(random.integers(0, 21, (6, 7 + number), np.uint8), palette=True),
                "flac": sound.getvalue(),
                "mp4": _film(number),
            }
            for ext, payload in fields.items():
                member = tarfile.TarInfo(f"r{number}.{ext}")
                member.size = len(payload)
                tar.addfile(member, io.BytesIO(payload))
    return str(path)


def _same(expected: list[Any], found: list[Any]) -> None:
    assert len(expected) == len(found) == 4
    for one, other in zip(expected, found, strict=True):
        parts = zip(one, other, strict=True) if isinstance(one, tuple) else [(one, other)]
        for a, b in parts:
            assert np.asarray(a).dtype == np.asarray(b).dtype
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", CHAINS)
def test_tf_gives_what_the_reference_gives(name: str, shard: str) -> None:
    pytest.importorskip("tensorflow", reason="TensorFlow: pip install 'tarviz[tensorflow-cpu]'")
    chain, select = CHAINS[name]
    pipeline = Pipeline(shard, chain, select=select)

    _same(list(pipeline), list(pipeline.tf().as_numpy_iterator()))


@pytest.mark.torch
@pytest.mark.parametrize("name", CHAINS)
def test_torch_gives_what_the_reference_gives(name: str, shard: str) -> None:
    pytest.importorskip("torch", reason="torch: pip install 'tarviz[torch]'")
    chain, select = CHAINS[name]
    pipeline = Pipeline(shard, chain, select=select)

    _same(list(pipeline), [tuple(map(np.asarray, one)) if isinstance(one, tuple) else np.asarray(one) for one in pipeline.torch()])


def test_16_bits_are_all_there(shard: str) -> None:
    depths = list(Pipeline(shard, "decode(depth.png, dtype=uint16)", select="depth.png"))

    assert all(len(np.unique(depth)) > 100 for depth in depths)


def _pictures(path: Path, endings: list[str]) -> str:
    with tarfile.open(path, "w") as tar:
        for number, ext in enumerate(endings):
            payload = b"no picture" if ext == "bad.jpg" else _png(np.full((4 + number, 5, 3), number, np.uint8))
            member = tarfile.TarInfo(f"r{number}.{ext.removeprefix('bad.')}")
            member.size = len(payload)
            tar.addfile(member, io.BytesIO(payload))
    return str(path)


@pytest.mark.parametrize("runner", ["eager", "torch", "tf"])
@pytest.mark.parametrize("chain", ["decode(jpg;jpeg;png)", "rename(jpg=jpg;jpeg;png)|decode(jpg)"])
def test_a_picture_of_several_endings_is_one_field(tmp_path: Path, runner: str, chain: str) -> None:
    pytest.importorskip({"tf": "tensorflow"}.get(runner, runner if runner == "torch" else "numpy"), reason=f"the runner {runner}")
    url = _pictures(tmp_path / "a.tar", ["jpg", "png", "jpeg", "jpg"])
    select = "jpg" if chain.startswith("rename") else "jpg;jpeg;png"
    found = list(Pipeline(url, chain, select=select).run(runner))

    assert [(4 + number, 5, 3) for number in range(4)] == [tuple(value.shape) for value in found]


@pytest.mark.parametrize("runner", ["eager", "torch", "tf"])
def test_what_is_left_out_is_told_at_the_end_of_each_epoch(tmp_path: Path, runner: str, caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip({"tf": "tensorflow"}.get(runner, runner if runner == "torch" else "numpy"), reason=f"the runner {runner}")
    url = _pictures(tmp_path / "a.tar", ["jpg", "bad.jpg", "jpeg", "jpg"])
    made = Pipeline(url, "decode(jpg)", select="jpg", on_error="skip").run(runner)
    with caplog.at_level(logging.WARNING, "tarviz"):
        assert 2 == len(list(made))
        assert 2 == len(list(made))

    assert {"E_SCHEMA": 1, "E_DECODE": 1} == made.report.left_out
    assert 2 == sum('2 left out so far (on_error="skip")' in line for line in caplog.messages), caplog.messages


@pytest.mark.parametrize("runner", ["eager", "torch", "tf"])
def test_a_picture_of_another_ending_is_named_in_the_hint(tmp_path: Path, runner: str) -> None:
    pytest.importorskip({"tf": "tensorflow"}.get(runner, runner if runner == "torch" else "numpy"), reason=f"the runner {runner}")
    url = _pictures(tmp_path / "a.tar", ["jpg", "jpeg"])
    with pytest.raises(SchemaError) as found:
        list(Pipeline(url, "decode(jpg)", select="jpg").run(runner))

    assert "jpg;jpeg" in str(found.value.hint)


@pytest.mark.parametrize("runner", ["eager", "torch", "tf"])
def test_a_first_array_that_is_damaged_is_left_out(tmp_path: Path, runner: str) -> None:
    pytest.importorskip({"tf": "tensorflow"}.get(runner, runner if runner == "torch" else "numpy"), reason=f"the runner {runner}")
    arrays = io.BytesIO()
    np.save(arrays, np.eye(2))
    write_shard(tmp_path / "a.tar", [("0", {"npy": b"damaged"}), ("1", {"npy": arrays.getvalue()})])

    found = list(Pipeline(tmp_path / "a.tar", "decode(npy)", select="npy", on_error="skip").run(runner))

    assert [(2, 2)] == [tuple(array.shape) for array in found]


def test_text_that_utf_8_cannot_say_is_named_in_tf(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow", reason="TensorFlow: pip install 'tarviz[tensorflow-cpu]'")
    write_shard(tmp_path / "a.tar", [("0", {"json": b'"a"'}), ("1", {"json": b'"\\ud800"'})])

    with pytest.raises(SchemaError, match="text that UTF-8 cannot say"):
        list(Pipeline(tmp_path / "a.tar", "decode(json)", select="json").tf())


def test_a_class_of_8_bits_is_the_same_in_tf(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow", reason="TensorFlow: pip install 'tarviz[tensorflow-cpu]'")
    write_shard(tmp_path / "a.tar", [("0", {"cls": b"255"}), ("1", {"cls": b"7\n"})])
    pipeline = Pipeline(tmp_path / "a.tar", "decode(cls, dtype=uint8)", select="cls")

    assert [(np.uint8, 255), (np.uint8, 7)] == [(value.dtype, value) for value in pipeline.tf().as_numpy_iterator()]
