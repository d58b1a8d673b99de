"""Ops that carry boxes, masks and points along with a picture: the same in every runner, refused where it cannot be right."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from tarviz import samples
from tarviz.model.errors import ChainError, DataError, SchemaError
from tarviz.model.types import Feature, Schema
from tarviz.ops import CenterCrop, Chain, Flip, RandomCrop, Resize, Rotate, parse_chain
from tarviz.pipeline import Pipeline
from tarviz.testing.ops import OpTests, noise

COCO = {"annotations": [{"bbox": [1, 1, 3, 3], "category": "a"}, {"bbox": [0, 2, 4, 4], "category": "b"}]}


class CarryingTests(OpTests):
    """What a geometric op keeps to when it carries JSON, a mask and boxes in an array."""

    accepts = Feature("uint8", (None, None, 3))

    def records(self) -> list[dict[str, Any]]:
        found = super().records()
        for at, record in enumerate(found):
            record["json"] = json.dumps(COCO).encode()
            record["seg.png"] = noise(Feature("int32", (None, None, 1)))[at][:, :, 0]
            record["box.npy"] = np.array([[1, 1, 3, 3, 7], [0, 0, 2, 2, 8]], np.float32)
        return found

    def schema(self) -> Schema:
        more = {"json": Feature("bytes"), "seg.png": Feature("int32", (None, None)), "box.npy": Feature("float32", (None, 5))}
        return Schema({**super().schema(), **more})


CARRY = ("json", "seg.png", "box.npy:xyxy")


class TestResizeCarrying(CarryingTests):
    op = Resize("jpg", (20, 30), carry=CARRY)


class TestCenterCropCarrying(CarryingTests):
    op = CenterCrop("jpg", (6, 4), carry=CARRY, visible=0.2)


class TestRandomCropCarrying(CarryingTests):
    op = RandomCrop("jpg", (6, 4), carry=CARRY, visible=None)


class TestFlipCarrying(CarryingTests):
    op = Flip("jpg", carry=CARRY)

    def test_numbers_are_floats_whether_it_flips_or_not(self) -> None:
        for draw in (0.1, 0.9):
            made = json.loads(self.op.run(self.records()[0], np.array([draw]))["json"])

            assert all(isinstance(n, float) for one in made["annotations"] for n in one["bbox"])


class TestRotateCarrying(CarryingTests):
    op = Rotate("jpg", 30, carry=CARRY)


class TestRefused:
    RECORD: dict[str, Any] = {"jpg": np.zeros((8, 8, 3), np.uint8), "seg.png": np.zeros((4, 4), np.uint8), "json": b"{}"}

    @pytest.mark.parametrize(
        ("carry", "error", "words"),
        [
            ("jsn", SchemaError, "expects a field 'jsn'"),
            ("seg.png", DataError, "not as large as the picture: 8 x 8 and 4 x 4"),
        ],
    )
    def test_a_field_that_cannot_go_along_is_an_error(self, carry, error, words):
        with pytest.raises(error, match=words):
            Flip("jpg", p=1, carry=carry).run(self.RECORD)

    def test_a_mask_has_to_be_decoded(self):
        with pytest.raises(SchemaError, match=r"Put decode\(seg\.png\) before it"):
            Flip("jpg", p=1, carry="seg.png").run({**self.RECORD, "seg.png": b"\x89PNG\r\n\x1a\n"})

    @pytest.mark.parametrize("carry", ["jpg", "", ("json", 3), "json:xyz", 7])
    def test_names_that_are_none_are_refused(self, carry):
        with pytest.raises(ChainError):
            Flip("jpg", carry=carry)

    @pytest.mark.parametrize("visible", [True, -0.1, 1.1, "half"])
    def test_shares_that_are_none_are_refused(self, visible):
        with pytest.raises(ChainError, match="visible"):
            Flip("jpg", carry="json", visible=visible)


CHAIN = (
    "decode(jpg)|decode(seg.png, channels=1)|carry(jpg, json, seg.png, visible=0.1)|resize(jpg, (96, 128))|random_crop(jpg, (80, 80))"
    "|flip(jpg)|rotate(jpg, 20)"
)


@pytest.fixture(scope="module")
def shard(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Records with a picture, COCO boxes and a mask of ids."""
    import io

    from PIL import Image

    from tarviz.formats.tar_header import TAR_END, tar_member

    path = tmp_path_factory.mktemp("carrying") / "a.tar"
    rng = np.random.default_rng(3)
    with path.open("wb") as out:
        for at in range(6):
            (picture,) = noise(Feature("uint8", (120, 160, 3)), at, ((120, 160),))
            for ext, pixels in (("jpg", picture), ("seg.png", rng.integers(0, 4, (120, 160)).astype(np.uint8))):
                made = io.BytesIO()
                Image.fromarray(pixels).save(made, "PNG" if ext == "seg.png" else "JPEG", quality=95)
                out.write(b"".join(tar_member(f"{at:03d}.{ext}".encode(), made.getvalue())))
            boxes = [{"bbox": [float(n) for n in rng.integers(5, 60, 4)], "category": f"c{n}"} for n in range(5)]
            out.write(b"".join(tar_member(f"{at:03d}.json".encode(), json.dumps({"annotations": boxes}).encode())))
        out.write(TAR_END)
    return str(path)


class TestRunners:
    @pytest.mark.matrix
    def test_the_graph_gives_what_eager_gives(self, shard):
        pytest.importorskip("tensorflow", reason="TensorFlow: pip install 'tarviz[tensorflow-cpu]'")
        pipeline = Pipeline(shard, CHAIN, seed=5)

        for graph in (None, True, False):
            for ours, theirs in zip(pipeline.eager(), pipeline.tf(graph=graph), strict=True):
                assert ours["json"] == theirs["json"].numpy()
                np.testing.assert_array_equal(ours["seg.png"], theirs["seg.png"].numpy())
                assert np.abs(ours["jpg"].astype(int) - theirs["jpg"].numpy().astype(int)).max() <= 2

    def test_torch_gives_what_eager_gives(self, shard):
        pytest.importorskip("torch", reason="PyTorch: pip install torch")
        pipeline = Pipeline(shard, CHAIN, seed=5)

        for ours, theirs in zip(pipeline.eager(), pipeline.torch(), strict=True):
            assert ours["json"] == theirs["json"]
            np.testing.assert_array_equal(ours["seg.png"], np.asarray(theirs["seg.png"]))

    def test_a_tree_goes_along_as_its_bytes_do(self, shard):
        carried = [json.loads(record["json"]) for record in Pipeline(shard, CHAIN, seed=5).eager()]
        trees = [record["json"] for record in Pipeline(shard, f"decode(json)|{CHAIN}", seed=5).eager()]

        assert carried == trees

    def test_the_picture_is_the_same_as_without(self, shard):
        alone = Pipeline(shard, Chain(*(op for op in parse_chain("decode(jpg)|resize(jpg, (96, 128))|flip(jpg)|rotate(jpg, 20)"))), seed=5)
        along = Pipeline(shard, "decode(jpg)|carry(jpg, json)|resize(jpg, (96, 128))|flip(jpg)|rotate(jpg, 20)", seed=5)

        for one, other in zip(alone.eager(), along.eager(), strict=True):
            np.testing.assert_array_equal(one["jpg"], other["jpg"])


class TestZoo:
    @pytest.mark.parametrize(
        ("kind", "chain"),
        [
            ("coco", "decode(jpg)|carry(jpg, json)|flip(jpg, p=1)|flip(jpg, p=1)"),
            ("yolo", "decode(jpg)|carry(jpg, txt)|flip(jpg, p=1)|flip(jpg, p=1)"),
        ],
    )
    def test_two_flips_leave_the_boxes_of_every_record(self, tmp_path, kind, chain):
        from tarviz.looks import shapes

        (shard,) = samples.zoo(tmp_path, kinds=[kind]).values()
        field = "txt" if kind == "yolo" else "json"
        for before, after in zip(Pipeline(shard).eager(), Pipeline(shard, chain).eager(), strict=True):
            height, width = after["jpg"].shape[:2]
            old, new = (shapes.read(one[field], field, width, height) for one in (before, after))

            assert [shape.kind for shape in old] == [shape.kind for shape in new]
            for one, other in zip(old, new, strict=True):
                np.testing.assert_allclose(one.numbers, other.numbers, atol=0.02)


def test_what_is_carried_has_to_be_there() -> None:
    op = Flip("jpg", carry=("json", "seg.png"))
    schema = Schema(jpg=Feature("uint8", (4, 6, 3)), json=Feature("bytes"))

    with pytest.raises(SchemaError, match=r"expects a field 'seg\.png'; there are jpg, json"):
        op.run_schema(schema)
    assert {"jpg", "json", "seg.png"} == op.needs(frozenset({"jpg"})) == op.named
    assert ("jpg", "json", "seg.png") == op.changed_fields(schema)


@pytest.mark.parametrize("head", [b"\x89PNG\r\n\x1a\n", b"II*\0", b"RIFF\0\0\0\0WEBP", b"\xff\xd8\xff", b"GIF8", b"BM"])
def test_a_mask_that_is_still_a_file_is_refused_with_the_cure(head: bytes) -> None:
    record = {"jpg": np.zeros((4, 6, 3), np.uint8), "seg": head + bytes(30)}

    with pytest.raises(SchemaError, match=r"expects the mask seg as an array\. Put decode\(seg\) before it"):
        Flip("jpg", p=1, carry="seg").run(record)


def test_a_mask_of_another_size_is_an_error_that_says_both() -> None:
    image = np.zeros((4, 6, 3), np.uint8)
    for mask, said in ((np.zeros((4, 5)), "4 x 6 and 4 x 5"), (np.zeros(6), r"shape \(6,\)")):
        with pytest.raises(DataError, match=f"the mask seg is not as large as the picture: {said}") as caught:
            Flip("jpg", p=1, carry="seg").run({"jpg": image, "seg": mask})
        assert 'carry="seg:xyxy"' in str(caught.value.hint)


def test_what_is_known_of_the_carried_follows_the_picture() -> None:
    fields = {"jpg": Feature("uint8", (9, 9, 3)), "m": Feature("int32", (9, 9, 2)), "b": Feature("int64", (5, 4)), "o": Feature("object")}
    made = Resize("jpg", (3, 4), carry=("m", "b:xyxy", "o")).run_schema(Schema(fields))

    assert "jpg: uint8[3, 4, 3], m: int32[3, 4, 2], b: float32[?, 4], o: object" == str(made)
