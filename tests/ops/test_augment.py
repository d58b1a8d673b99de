"""Augment: another library's augmentation as a step, with the boxes, points and masks of its picture."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
import pytest

from tarviz.looks import runs
from tarviz.model.errors import ChainError, DataError, SchemaError
from tarviz.model.types import Feature, Schema
from tarviz.ops import Augment, Carry, Chain, Flip, draws, parse_chain
from tarviz.testing.ops import OpTests, noise

os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")  # it asks its registry for a newer release when it is imported
COCO = {"annotations": [{"bbox": [1, 2, 3, 3], "segmentation": [[1, 2, 4, 2, 4, 5]], "keypoints": [2, 3, 2], "category": "a"}]}


def mirror(image: Any, keypoints: Any = (), masks: Any = ()) -> dict[str, Any]:
    width = image.shape[1]
    moved = [(width - x, y) for x, y in keypoints]
    return {"image": image[:, ::-1].copy(), "keypoints": moved, "masks": [mask[:, ::-1] for mask in masks]}


class TestAugment(OpTests):
    op = Augment("jpg", mirror, carry=("json", "seg.png"))

    def records(self) -> list[dict[str, Any]]:
        found = super().records()
        for at, record in enumerate(found):
            record["json"] = json.dumps(COCO).encode()
            record["seg.png"] = noise(Feature("int32", (None, None, 1)))[at][:, :, 0]
        return found

    def schema(self) -> Schema:
        return Schema({**super().schema(), "json": Feature("bytes"), "seg.png": Feature("int32", (None, None))})

    def test_its_text_reads_back(self) -> None:
        pytest.skip("a function has no text")

    def test_it_does_what_our_op_does(self) -> None:
        for record in self.records():
            ours = Flip("jpg", p=1, carry=self.op.carry).run(record)
            theirs = self.op.run(record)

            assert ours["json"] == theirs["json"]
            np.testing.assert_array_equal(ours["jpg"], theirs["jpg"])
            np.testing.assert_array_equal(ours["seg.png"], theirs["seg.png"])

    def test_a_carry_before_it_holds_for_it(self) -> None:
        assert "json" == Chain(Carry("jpg", "json"), Augment("jpg", mirror))[1].carry

    def test_a_text_cannot_hold_one(self) -> None:
        with pytest.raises(ChainError, match="text cannot say"):
            parse_chain('augment(jpg, "os:system")')

    @pytest.mark.parametrize(
        "f",
        [
            lambda image, **more: image,
            lambda image, **more: {"image": image},
            lambda image, **more: {"image": image, "keypoints": [(1, 2)]},
        ],
    )
    def test_what_gives_less_back_is_an_error(self, f: Any) -> None:
        with pytest.raises((SchemaError, DataError)):
            Augment("jpg", f, carry=("json", "seg.png")).run(self.records()[0])


def scene() -> dict[str, Any]:
    """A record whose boxes are drawn in its picture and its mask."""
    image = np.zeros((60, 90, 3), np.uint8)
    mask = np.zeros((60, 90), np.int32)
    boxes = [(10, 12, 24, 18), (50, 30, 20, 24)]
    for number, (x, y, w, h) in enumerate(boxes, 1):
        image[y : y + h, x : x + w, number - 1] = 255
        mask[y : y + h, x : x + w] = 1000 * number
    tree = [{"bbox": list(box), "label": f"c{number}"} for number, box in enumerate(boxes)]
    return {"__key__": "a", "__shard__": "s", "__index__": 0, "jpg": image, "json": json.dumps(tree).encode(), "seg.png": mask}


def agrees(result: dict[str, Any], atol: float) -> int:
    """That each box lies round what is bright of it in picture and mask; how many there are."""
    items = json.loads(result["json"])
    for item in items:
        number = int(item["label"][1:])
        for bright in (result["jpg"][:, :, number] > 127, result["seg.png"] == 1000 * (number + 1)):
            rows, columns = np.nonzero(bright)
            found = (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)
            x, y, w, h = item["bbox"]

            np.testing.assert_allclose(found, (x, y, x + w, y + h), atol=atol)
    return len(items)


class TestAlbumentations:
    @pytest.fixture(autouse=True)
    def library(self) -> Any:
        return pytest.importorskip("albumentations", reason="albumentations is not installed")

    @pytest.mark.parametrize(
        "make",
        [
            lambda lib: lib.HorizontalFlip(p=1),
            lambda lib: lib.Resize(45, 80),
            lambda lib: lib.Compose([lib.RandomCrop(50, 70), lib.VerticalFlip(p=0.5)]),
            lambda lib: lib.Affine(rotate=(-20, 20), translate_px=(-5, 5), p=1),
            lambda lib: lib.Blur(blur_limit=3, p=1),
        ],
        ids=["flip", "resize", "compose", "affine", "blur"],
    )
    def test_boxes_and_masks_go_where_the_picture_goes(self, library: Any, make: Any) -> None:
        op = Augment("jpg", make(library), carry=("json", "seg.png"))
        found = 0
        for draw in draws(1, [b"%d" % n for n in range(8)]):
            result = op.run(scene(), draw)
            found += agrees(result, 2.5)

            assert result["jpg"].shape[:2] == result["seg.png"].shape
            assert {0, 1000, 2000} >= set(np.unique(result["seg.png"]).tolist())
        assert found >= 12

    def test_the_same_seed_gives_the_same(self, library: Any) -> None:
        op = Augment("jpg", library.Compose([library.RandomCrop(30, 40), library.Rotate(40, p=1)]), carry="json")
        one, other = (op.run(scene(), np.array([0.3])) for _ in range(2))

        np.testing.assert_array_equal(one["jpg"], other["jpg"])
        assert one["json"] == other["json"]
        assert not np.array_equal(one["jpg"], op.run(scene(), np.array([0.7]))["jpg"])

    def test_the_callable_given_stays_as_it_is(self, library: Any) -> None:
        flip = library.HorizontalFlip(p=1)
        before = str(flip)
        Augment("jpg", flip, carry="json").run(scene())

        assert before == str(flip)

    def test_it_is_a_column_of_a_comparison(self, library: Any, tmp_path: Any) -> None:
        from tarviz.ops import Decode
        from tarviz.widgets.compare.controller import Compare
        from tests.widgets.conftest import png, tar

        boxes = json.dumps([{"bbox": [5, 5, 10, 10], "label": "cat"}]).encode()
        shard = tar(tmp_path / "a.tar", [("n", {"jpg": png((200, 40, 90), (40, 30)), "json": boxes})])
        run = Compare(shard, {"theirs": [Decode("jpg"), Carry("jpg", "json"), Augment("jpg", library.HorizontalFlip(p=1))]}, records=1)
        assert run.wait(30)
        (strip,) = run.columns[0].strips

        assert [(25.0, 5.0, 10.0, 10.0)] == [shape.numbers for shape in strip.tiles[-1].over.shapes]


class TestTorchvision:
    @pytest.fixture(autouse=True)
    def library(self) -> Any:
        return pytest.importorskip("torchvision.transforms.v2", reason="torchvision is not installed")

    @pytest.mark.parametrize(
        ("make", "atol"),
        [
            (lambda v2: v2.RandomHorizontalFlip(p=1), 0.01),
            (lambda v2: v2.Compose([v2.RandomHorizontalFlip(), v2.RandomCrop((50, 70))]), 0.01),
            (lambda v2: v2.Resize((45, 80)), 1.01),
            (lambda v2: v2.RandomAffine(0, translate=(0.1, 0.1)), 1.01),
            (lambda v2: v2.RandomRotation(20), 2.5),
            (lambda v2: v2.ColorJitter(brightness=0.1), 0.01),
        ],
        ids=["flip", "crop", "resize", "affine", "rotate", "colour"],
    )
    def test_boxes_and_masks_go_where_the_picture_goes(self, library: Any, make: Any, atol: float) -> None:
        op = Augment("jpg", make(library), carry=("json", "seg.png"))
        found = 0
        for draw in draws(1, [b"%d" % n for n in range(8)]):
            result = op.run(scene(), draw)
            found += agrees(result, atol)

            assert result["jpg"].shape[:2] == result["seg.png"].shape
            assert {0, 1000, 2000} >= set(np.unique(result["seg.png"]).tolist())
        assert found >= 12

    def test_the_same_seed_gives_the_same_and_others_draw_as_before(self, library: Any) -> None:
        import torch

        op = Augment("jpg", library.RandomCrop((30, 40)), carry="json")
        torch.manual_seed(5)
        expected = torch.rand(1)
        torch.manual_seed(5)
        one, other = (op.run(scene(), np.array([0.3])) for _ in range(2))

        np.testing.assert_array_equal(one["jpg"], other["jpg"])
        assert one["json"] == other["json"]
        assert not np.array_equal(one["jpg"], op.run(scene(), np.array([0.7]))["jpg"])
        assert expected == torch.rand(1)


def test_a_run_length_mask_goes_through_a_callable() -> None:
    record = scene()
    masks = [runs.encode(record["seg.png"] == 1000 * number, {"size": [], "counts": form}) for number, form in ((1, ""), (2, []))]
    items = [{**item, "segmentation": mask} for item, mask in zip(json.loads(record["json"]), masks, strict=True)]
    record["json"] = json.dumps(items).encode()

    assert Flip("jpg", p=1, carry="json").run(record)["json"] == Augment("jpg", mirror, carry="json").run(record)["json"]


def test_a_picture_alone_is_augmented_and_known_to_be_one() -> None:
    op = Augment("jpg", mirror)
    image = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)

    np.testing.assert_array_equal(image[:, ::-1], op.apply(image))
    assert Feature("uint8", (None, None, None)) == op.infer(Feature("uint8", (2, 4, 3)))
    with pytest.raises(SchemaError, match="expects an image"):
        op.infer(Feature("bytes"))
    assert (1, False, "seed 2147483648") == (op.draws, op.typed, op.describe_draw(np.array([0.5])))


def test_a_function_shows_its_module_and_an_object_its_class() -> None:
    class Own:
        def __call__(self, image: Any) -> dict[str, Any]:
            return {"image": image}

    assert 'augment(jpg, "tests:mirror", carry=json)' == str(Augment("jpg", mirror, carry="json"))
    assert str(Augment("jpg", Own())).endswith('Own")')
