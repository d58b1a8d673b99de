"""Sample shards: the same bytes every time, what they promise to hold."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
from pathlib import Path

import pytest

import tarviz
from tarviz import samples
from tarviz.model.errors import MissingPackageError, UsageError
from tarviz.samples.scenes import Scene


def digest(folder: Path) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(folder.iterdir()))).hexdigest()


class TestDigits:
    def test_are_split_into_train_and_test(self, digits: Path):
        assert [f"train-000{n}.tar" for n in range(4)] == sorted(path.name for path in digits.glob("train-*"))
        assert 1500 == len(tarviz.index(str(digits / "train-{0000..0003}.tar")))
        assert 297 == len(tarviz.index(str(digits / "test-0000.tar")))

    def test_keys_count_through_the_shards(self, digits: Path):
        keys = list(tarviz.index(str(digits / "train-{0000..0003}.tar")).keys())

        assert [f"train/n{n:08d}" for n in range(1500)] == keys

    def test_a_record_is_a_picture_and_its_class(self, digits: Path):
        from PIL import Image

        record = next(tarviz.records(str(digits / "train-0000.tar")))

        picture = Image.open(io.BytesIO(record["png"]))
        assert ((28, 28), "L", (0, 255)) == (picture.size, picture.mode, picture.getextrema())
        assert ["png", "cls"] == list(record)

    def test_every_class_is_in_train_and_test(self, digits: Path):
        for name in ("train-{0000..0003}.tar", "test-0000.tar"):
            assert set(b"0123456789") == {record["cls"][0] for record in tarviz.records(str(digits / name))}
        assert b"04484926848249512461" == b"".join(bytes(record["cls"]) for record in tarviz.records(str(digits / "test-0000.tar")))[:20]

    def test_are_the_same_bytes_every_time(self, digits: Path, tmp_path: Path):
        samples.digits(tmp_path)

        assert digest(digits) == digest(tmp_path)

    def test_size_and_shards_can_be_chosen(self, tmp_path: Path):
        paths = samples.digits(tmp_path, shards=1, size=32)

        assert [str(tmp_path / "train-0000.tar"), str(tmp_path / "test-0000.tar")] == paths

    def test_no_shards_is_refused(self, tmp_path: Path):
        with pytest.raises(UsageError, match="shards"):
            samples.digits(tmp_path, shards=0)


class TestPhotos:
    def test_a_record_has_four_fields(self, photos: Path):
        from PIL import Image

        record = next(tarviz.records(str(photos / "photos-0000.tar")))

        facts = json.loads(bytes(record["json"]))
        picture = Image.open(io.BytesIO(record["jpg"]))
        assert ["jpg", "cls", "json", "txt"] == list(record)
        assert (facts["width"], facts["height"]) == picture.size
        assert samples.CAPTIONS[int(bytes(record["cls"]))].encode() == bytes(record["txt"])

    def test_are_the_same_bytes_every_time(self, photos: Path, tmp_path: Path):
        samples.photos(tmp_path, count=24, shards=2)

        assert digest(photos) == digest(tmp_path)

    def test_crops_and_classes_stay_as_they_are(self, photos: Path):
        records = list(tarviz.records(str(photos / "photos-{0000..0001}.tar")))

        facts = b"".join(bytes(record[ext]) for record in records for ext in ("json", "cls"))

        assert [f"photo/n{number:08d}" for number in range(24)] == [record.key for record in records]
        assert "8f457cd9bbcb" == hashlib.sha256(facts).hexdigest()[:12]

    def test_another_seed_makes_other_pictures(self, photos: Path, tmp_path: Path):
        samples.photos(tmp_path, count=24, shards=2, seed=1)

        assert digest(photos) != digest(tmp_path)


def test_without_scikit_learn_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "sklearn" else found(name, *rest))

    with pytest.raises(MissingPackageError, match=r"tarviz\[demo\]"):
        samples.digits(tmp_path)


def test_a_scene_says_what_it_shows():
    scene = Scene(3)
    thing = scene.things[-1]  # the nearest, over which nothing lies
    x, y, w, h = thing.box

    assert thing.cls + 1 == scene.ids[y + h // 2, min(x + w // 2, scene.width - 1)]
    assert thing.name in scene.caption.lower()
    assert (180, 240, 3) == scene.picture().shape
    assert scene.picture().tobytes() == Scene(3).picture().tobytes()
