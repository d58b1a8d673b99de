"""Every kind of data set in every surface: what a stranger brings is opened, shown, checked, converted and compared."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import warnings
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tarviz
from tarviz import samples
from tarviz.model.errors import TarvizWarning, UsageError
from tarviz.samples import media
from tarviz.samples.kinds import KINDS, MEDIA
from tarviz.widgets.browse.controller import Browser
from tarviz.widgets.compare.controller import Compare
from tests.conftest import made_once

COUNT = 12
NAMES = [*KINDS, "cut"]
FAULTY = ("damaged", "cut")  # these have faults by intention


@pytest.fixture(scope="session")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Every kind that can be written here: name → shard."""
    folder = made_once(tmp_path_factory, "zoo", lambda folder: samples.zoo(folder, count=COUNT))
    return {path.stem: str(path) for path in folder.iterdir()}


@pytest.fixture(params=NAMES)
def kind(request: pytest.FixtureRequest, zoo: dict[str, str]) -> tuple[str, str]:
    if request.param not in zoo:
        pytest.skip("PyAV is not installed (extra `media`)")
    return request.param, zoo[request.param]


class TestZoo:
    @pytest.mark.matrix
    def test_has_every_kind_and_a_tar_that_is_cut(self, zoo: dict[str, str]):
        missing = set() if importlib.util.find_spec("av") else set(MEDIA)

        assert set(NAMES) - missing == set(zoo)
        assert all(Path(path).is_file() for path in zoo.values())

    def test_is_the_same_bytes_every_time(self, zoo: dict[str, str], tmp_path: Path):
        again = samples.zoo(tmp_path, kinds=["coco", "stereo", "cut"], count=COUNT)

        assert all(Path(path).read_bytes() == Path(zoo[name]).read_bytes() for name, path in again.items())

    def test_an_unknown_kind_and_no_records_are_refused(self, tmp_path: Path):
        with pytest.raises(UsageError, match="no kind 'cats'"):
            samples.zoo(tmp_path, kinds=["cats"])
        with pytest.raises(UsageError, match="empty"):
            samples.zoo(tmp_path, count=0)


class TestEverySurface:
    def test_ls_counts_it(self, kind: tuple[str, str]):
        name, path = kind

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TarvizWarning)
            found = tarviz.ls(path)

        assert str(found)
        assert name == "cut" or len(tarviz.index(path)) == COUNT

    def test_show_says_what_is_in_it_as_text_page_and_json(self, kind: tuple[str, str]):
        _, path = kind

        found = tarviz.show(path, count=COUNT)

        assert found.records
        assert str(found)
        assert "<script" not in found.to_html()
        assert "<img src=x" not in found.to_html()
        assert found.to_dict()["records"]

    @pytest.mark.matrix
    def test_verify_finds_faults_where_there_are_some_and_nowhere_else(self, kind: tuple[str, str]):
        name, path = kind

        found = tarviz.verify(path, deep=True)

        assert (name in FAULTY) == bool(found.faults), found

    def test_convert_writes_examples(self, kind: tuple[str, str], tmp_path: Path):
        name, path = kind

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TarvizWarning)
            found = tarviz.convert(path, str(tmp_path / "out-{:04d}.tfrecord"), strict=False, on_error="skip")

        assert found.records or name in FAULTY
        assert name in FAULTY or found.records == COUNT

    def test_eager_yields_every_record(self, kind: tuple[str, str]):
        name, path = kind

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TarvizWarning)
            found = list(tarviz.Pipeline(path, strict=False, on_error="skip"))

        assert found if name == "cut" else len(found) == COUNT

    def test_compare_shows_its_pictures(self, kind: tuple[str, str]):
        _, path = kind
        field = next((ext for ext in tarviz.show(path, count=1).records[0] if ext.endswith(("jpg", "ct.png"))), "")
        if not field:
            pytest.skip("no pictures to compare")

        found = Compare(path, {"a": f"decode({field})|resize({field}, (32, 32))"}, records=2)

        try:
            assert found.first()[0]
        finally:
            found.close()


def opened(path: str, **wish: Any) -> tuple[Browser, dict[str, Any], list[Any]]:
    """A browser on a shard, with the first answer it gives once all is scanned."""
    browser = Browser(path, cache=False, **wish)
    assert browser.wait(COUNT, 60)
    message, buffers = browser.first()
    return browser, message, buffers


class TestBrowse:
    def test_opens_it_with_a_tile_for_every_record(self, kind: tuple[str, str]):
        name, path = kind
        browser, message, _ = opened(path)

        try:
            rows = message["rows"]["rows"]
            assert len(rows) == COUNT or name == "cut"
            refused = [row["tile"]["reason"] for row in rows if row["tile"]["reason"]]
            assert name in FAULTY or not refused
            assert all(row["tile"]["text"] or "buffer" in row["tile"] or row["tile"]["reason"] for row in rows)
        finally:
            browser.close()

    def test_opens_every_field_of_the_first_records(self, kind: tuple[str, str]):
        name, path = kind
        browser, message, _ = opened(path)

        try:
            for row in message["rows"]["rows"][:3]:
                for field in browser.session.records.record(row["id"])[0]["fields"]:
                    answer, _ = browser.session.records.record(row["id"], field["ext"])
                    bad = [block for block in answer["panel"]["blocks"] if block.get("tone") == "bad"]
                    assert name in FAULTY or not bad, (field, bad)
        finally:
            browser.close()


LOOKED_AT = Path(__file__).with_name("zoo.json")


def summed(ext: str, payload: bytes) -> str:
    """What a payload holds, as far as it is the same whatever wrote it: texts by their sum, pictures and arrays by form and mean."""
    from PIL import Image, UnidentifiedImageError

    kind = ext.rpartition(".")[2]
    try:
        if kind in ("jpg", "png", "tif"):
            picture = Image.open(io.BytesIO(payload))
            return f"{picture.mode} {picture.size} {np.nanmean(np.asarray(picture, np.float64)):.0f}"
        if kind == "npy":
            array = np.load(io.BytesIO(payload))
            return f"{array.dtype} {array.shape} {np.nanmean(np.abs(array.astype(np.float64))):.2f}"
    except (OSError, ValueError, UnidentifiedImageError):
        return "damaged"
    return hashlib.sha256(payload).hexdigest()[:12]


def test_every_kind_holds_what_was_looked_at():
    """The first records of each kind, but for sound and film, whose bytes are those of the encoder; more where each is of another form."""
    found = {
        name: {
            key: {ext: summed(ext, payload) for ext, payload in fields.items()}
            for key, fields in map(make, range(COUNT if name in ("text", "chat", "keys", "missing", "damaged") else 3))
        }
        for name, make in KINDS.items()
        if name not in (*MEDIA, "wav")
    }
    if not LOOKED_AT.exists():
        LOOKED_AT.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
        pytest.fail(f"{LOOKED_AT.name} is new: look at it, then keep it")

    assert json.loads(LOOKED_AT.read_text("utf-8")) == found


def test_a_tune_is_mono_of_16_bits_and_as_long_as_it_is_said():
    samples, words = media.tune(3, seconds=1.0)
    with wave.open(io.BytesIO(media.wav(samples))) as file:
        assert (1, 2, 16_000, 16_000) == (file.getnchannels(), file.getsampwidth(), file.getframerate(), file.getnframes())
        assert samples.tobytes() == file.readframes(16_000)

    assert (5, {"do", "re", "mi", "fa", "so", "la", "ti"} | set(words.split())) == (len(words.split()), set(media.NOTES))
    assert (np.dtype(np.int16), 0) == (samples.dtype, samples[0])
    assert 9000 < int(np.abs(samples).max()) < 32_000
