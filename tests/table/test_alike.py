"""What looks or reads alike: pictures that were changed, captions with a word more."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageEnhance, ImageFont, ImageOps

import tarviz
from tarviz.model.errors import MissingPackageError
from tarviz.table import alike
from tarviz.table.findings import near


def scene(seed: int) -> Image.Image:
    rough = np.random.default_rng(seed).integers(0, 255, (9, 9, 3), np.uint8)
    return Image.fromarray(rough).resize((128, 128), Image.Resampling.BICUBIC)


def jpeg(picture: Image.Image) -> bytes:
    out = io.BytesIO()
    picture.save(out, "JPEG", quality=88)
    return out.getvalue()


def png(picture: Image.Image, form: str = "PNG") -> bytes:
    out = io.BytesIO()
    picture.save(out, form)
    return out.getvalue()


def page(seed: int) -> Image.Image:
    draw, made = np.random.default_rng(seed), np.full((200, 160), 255, np.uint8)
    for y in range(12, 186, 10):
        x = 12
        while x < 150:
            word = int(draw.integers(4, 22))
            made[y : y + 6, x : min(x + word, 150)] = 20
            x += word + 4
    return Image.fromarray(made)


def written(seed: int, noise: float = 0) -> Image.Image:
    draw, font = np.random.default_rng(seed), ImageFont.load_default()
    made = Image.new("L", (400, 520), 255)
    for at in range(16):
        letters = "".join(draw.choice([*"abcdefghijklmnopqrstuvwxyz   "], 52))
        ImageDraw.Draw(made).text((40, 30 + 28 * at), letters, fill=10, font=font)
    if not noise:
        return made
    return Image.fromarray(np.clip(np.asarray(made) * 0.85 + draw.normal(15, noise, (520, 400)), 0, 255).astype(np.uint8))


def scanned(seed: int) -> Image.Image:
    return written(seed, 12)


def drawing(seed: int) -> Image.Image:
    made, draw = Image.new("L", (240, 200), 255), np.random.default_rng(seed)
    for _ in range(5):
        ImageDraw.Draw(made).line([tuple(point) for point in draw.integers(0, 200, (3, 2)).tolist()], fill=0, width=2)
    return made


def photo(seed: int) -> Image.Image:
    draw = np.random.default_rng(seed)
    made = sum(
        np.asarray(Image.fromarray(draw.normal(128, 60, (side, side)).astype(np.float32)).resize((320, 240), Image.Resampling.BICUBIC)) / 5
        for side in (3, 9, 27, 81, 200)
    )
    return Image.fromarray(np.clip(np.asarray(made), 0, 255).astype(np.uint8))


def line(seed: int) -> Image.Image:
    made = Image.new("L", (28, 28))
    points = np.random.default_rng(seed).integers(5, 23, (4, 2)).tolist()
    ImageDraw.Draw(made).line([tuple(point) for point in points], fill=255, width=3)
    return made


def cropped(picture: Image.Image) -> Image.Image:
    edge = round(0.03 * picture.width)
    return picture.crop((edge, edge, picture.width - edge, picture.height - edge))


def cut(picture: Image.Image) -> Image.Image:
    x, y = round(0.03 * picture.width), round(0.03 * picture.height)
    return picture.crop((x, y, picture.width - x, picture.height - y))


CHANGES: dict[str, Callable[[Image.Image], Image.Image]] = {
    "mirrored": ImageOps.mirror,
    "rotated": lambda picture: picture.transpose(Image.Transpose.ROTATE_90),
    "brightened": lambda picture: ImageEnhance.Brightness(picture).enhance(1.15),
    "cropped": cropped,
    "cut": cut,
}


class TestPictures:
    @pytest.mark.parametrize("drawn", [scene, photo, written, scanned, drawing])
    @pytest.mark.parametrize("change", CHANGES)
    def test_pictures_that_were_changed_are_found(self, make, change, drawn):
        content = [(f"p{at:03}", {"jpg": jpeg(drawn(at))}) for at in range(40)]
        planted = [(f"q{at:03}", {"jpg": jpeg(CHANGES[change](drawn(at)))}) for at in range(0, 40, 4)]

        found = near(tarviz.table(make([*content, *planted])), "jpg")

        assert [[f"p{at:03}", f"q{at:03}"] for at in range(0, 40, 4)] == [[each.key for each in group] for group in found.groups]

    @pytest.mark.parametrize("draw", ["page", "line"])
    def test_pages_of_text_and_lines_are_not_alike_by_their_layout(self, make, draw):
        drawn = {"page": page, "line": line}[draw]
        content = [(f"p{at:03}", {"png": png(drawn(at))}) for at in range(60)]
        again = [(f"q{at:03}", {"png": png(ImageOps.mirror(drawn(at)))}) for at in (3, 30)]

        found = near(tarviz.table(make([*content, *again])), "png")

        assert [["p003", "q003"], ["p030", "q030"]] == [[each.key for each in group] for group in found.groups]

    @pytest.mark.parametrize("levels", [np.uint16(257), np.uint16(16), np.float32(1 / 255)])
    def test_pictures_of_more_than_8_bits_are_compared_as_they_are_shown(self, make, levels):
        deep = [Image.fromarray(np.asarray(scene(at).convert("L")) * levels) for at in (0, 1, 2, 0)]

        found = near(tarviz.table(make([(str(at), {"tif": png(each, "TIFF")}) for at, each in enumerate(deep)])), "tif")

        assert [["0", "3"]] == [[each.key for each in group] for group in found.groups]

    @pytest.mark.slow
    @pytest.mark.parametrize(("drawn", "count", "most"), [(scene, 10_000, 5), (photo, 2000, 0), (written, 2000, 0), (scanned, 2000, 0),
                                                          (page, 2000, 0), (line, 2000, 10), (drawing, 2000, 0)])  # fmt: skip
    def test_few_of_thousands_of_others_are_said_to_be_alike(self, make, drawn, count, most):
        found = near(tarviz.table(make([(str(at), {"png": png(drawn(at))}) for at in range(count)])), "png")

        assert len(found) <= most

    def test_comparing_in_blocks_finds_what_comparing_at_once_does(self, monkeypatch):
        draw = np.random.default_rng(0)
        small = draw.integers(0, 255, (60, alike.CUTS, alike.SIDE, alike.SIDE)).astype(np.uint8)
        small[40:50] = np.rot90(small[:10], 3, (2, 3))
        small[50:] = 7  # says nothing
        whole = [part.tolist() for part in alike.pictures(small)]
        monkeypatch.setattr(alike, "_BLOCK", 7)

        assert [list(range(10)), list(range(40, 50))] == whole
        assert whole == [part.tolist() for part in alike.pictures(small)]

    @pytest.mark.parametrize("seed", range(3))
    def test_the_pairs_are_those_that_comparing_every_turn_of_all_pictures_finds(self, monkeypatch, seed):
        draw = np.random.default_rng(seed)
        monkeypatch.setattr(alike, "_BLOCK", 5)

        def turns(picture):
            return [np.rot90(way, times) for way in (picture, picture.T) for times in range(4)]

        def rough(side):
            return draw.integers(60, 190, (side, side)).repeat(24 // side, 0).repeat(24 // side, 1)

        small = np.array([[rough(6) for _ in range(alike.CUTS)] for _ in range(24)])
        for at in range(12):  # as a whole, and either in a middle of the other
            changed = turns(small[at, at % 3 % 2])[at % 8] + np.mean(turns(rough(12) - 125), 0) * draw.random() * 0.6
            small[12 + at, 2 * (at % 3 == 2)] = changed.clip(0, 255)
        small = small.astype(np.uint8)

        def apart(one, other):
            """Of the means of all turns of two pictures of half the size."""
            halves = [each.reshape(12, 2, 12, 2).mean((1, 3)) for each in (one, other)]
            means = [np.mean(turns((half - half.mean()) / np.linalg.norm(half - half.mean())), 0) for half in halves]
            return np.linalg.norm(means[0] - means[1])

        def like(one, other):
            return max(np.corrcoef(one.ravel(), way.ravel())[0, 1] for way in turns(other))

        expected = {
            (min(a, b), max(a, b))
            for a, b in itertools.permutations(range(len(small)), 2)
            for cut in range(alike.CUTS)
            if apart(small[a, cut], small[b, 0]) <= 0.13 and like(small[a, cut], small[b, 0]) >= alike.LIKE
        }

        assert sorted(expected) == list(zip(*(part.tolist() for part in alike.pictures(small)), strict=True))
        assert 4 <= len(expected) < 12


class TestTexts:
    def test_captions_with_a_word_more_and_the_same_captions_are_found(self, make):
        pytest.importorskip("datasketch")
        draw = np.random.default_rng(0)
        words = [f"{first}{last}" for first in ("boat", "sea", "tree", "cat") for last in ("s", "", "like", "less", "ward", "man")]
        captions = [" ".join(draw.choice(words, 14)) for _ in range(80)]
        again = [captions[0], captions[1].upper() + "!", *(f"{captions[at]} too" for at in range(2, 10))]
        content = [(f"{at:03}", {"txt": text.encode()}) for at, text in enumerate([*captions, *again])]

        found = near(tarviz.table(make(content)), "txt")

        assert [[f"{at:03}", f"{80 + at:03}"] for at in range(10)] == [[each.key for each in group] for group in found.groups]

    def test_four_of_five_shingles_in_common_are_enough(self):
        pytest.importorskip("datasketch")
        one = "abcdefghijklmnopqrstuvwxyz0123456789"  # 32 shingles

        assert [(0, 1)] == list(zip(*alike.texts([one, one + "αβγδεζηθ"]), strict=True))
        assert [] == list(zip(*alike.texts([one, one + "αβγδεζηθι"]), strict=True))

    def test_short_texts_are_alike_where_they_are_the_same(self):
        pytest.importorskip("datasketch")
        found = ["猫が好き", "a", "猫が好き", "", "", "!!!", "👍", "été", "A", "e\u0301te\u0301", "犬が好き"]

        assert [(0, 2), (1, 8), (7, 9)] == sorted(zip(*(part.tolist() for part in alike.texts(found)), strict=True))

    def test_one_text_that_is_there_very_often_makes_no_square(self):
        pytest.importorskip("datasketch")
        one, other = alike.texts(["the same words"] * 500)

        assert (set(range(1, 500)), {0}) == (set(other.tolist()), set(one.tolist()))

    def test_without_the_package_the_extra_is_named(self, monkeypatch):
        monkeypatch.setitem(__import__("sys").modules, "datasketch", None)
        with pytest.raises(MissingPackageError, match="datasketch") as caught:
            alike.texts(["a boat at sea"])

        assert "near" in str(caught.value)


def test_of_pictures_without_contrast_none_are_alike():
    flat = np.full((3, alike.CUTS, alike.SIDE, alike.SIDE), 9, np.uint8)

    assert [0, 0] == [len(found) for found in alike.pictures(flat)]
