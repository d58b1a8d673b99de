"""Carry: said once in a chain, done by every op behind it that moves the picture."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from tarviz.model.errors import ChainError
from tarviz.model.types import Feature, Schema
from tarviz.ops import Carry, Chain, Decode, Flip, Resize, parse_chain
from tarviz.testing.ops import OpTests


class TestCarry(OpTests):
    op = Carry("jpg", "json", "seg.png", visible=0.3)
    fails_on = None

    def records(self) -> list[dict[str, Any]]:
        return [
            {"__key__": f"{at}", "__shard__": "a.tar", "__index__": at, "jpg": np.zeros((8, 9, 3), np.uint8), "json": b"[]"}
            for at in range(3)
        ]

    def schema(self) -> Schema:
        return Schema({"jpg": Feature("uint8", (None, None, 3)), "json": Feature("bytes")})

    @pytest.mark.parametrize("arguments", [("jpg",), ("jpg", "jpg"), ("jpg", 3), (), ("jpg", "json:a")])
    def test_what_is_no_field_is_refused(self, arguments: tuple[Any, ...]) -> None:
        with pytest.raises((ChainError, TypeError)):
            Carry(*arguments)


class TestInAChain:
    TEXT = "decode(jpg)|carry(jpg, json)|resize(jpg, (40, 60))|flip(jpg)"

    def test_it_says_it_for_the_ops_behind_it(self) -> None:
        chain = parse_chain(self.TEXT)

        assert "json" == chain[2].carry == chain[3].carry

    def test_the_text_says_it_once_and_reads_back(self) -> None:
        assert self.TEXT == str(parse_chain(self.TEXT))
        assert parse_chain(self.TEXT) == Chain(Decode("jpg"), Carry("jpg", "json"), Resize("jpg", (40, 60)), Flip("jpg"))

    def test_a_piece_of_the_chain_says_it_at_its_ops(self) -> None:
        piece = parse_chain(self.TEXT)[2:]

        assert "resize(jpg, (40, 60), carry=json)|flip(jpg, carry=json)" == str(piece)
        assert piece == parse_chain(str(piece))

    def test_an_op_before_it_carries_nothing(self) -> None:
        assert () == parse_chain("resize(jpg, (40, 60))|carry(jpg, json)")[0].carry

    def test_another_picture_is_left_alone(self) -> None:
        assert () == parse_chain("carry(jpg, json)|flip(png)")[1].carry

    def test_what_an_op_says_itself_holds(self) -> None:
        text = "carry(jpg, json)|flip(jpg, carry=(json, seg.png), visible=0.5)"

        assert text == str(parse_chain(text))
        assert (("json", ""), ("seg.png", "")) == parse_chain(text)[1].carries

    def test_alternatives_are_one_picture(self) -> None:
        assert "json" == parse_chain('carry("jpg;png", json)|flip("jpg;png")')[1].carry

    def test_fields_carried_are_needed(self) -> None:
        assert {"jpg", "json"} == parse_chain(self.TEXT).needs(["jpg"])

    def test_boxes_and_picture_agree_at_the_end(self) -> None:
        picture = np.zeros((80, 120, 3), np.uint8)
        picture[20:60, 12:48] = 255
        record = {"__key__": "a", "jpg": picture, "json": json.dumps([{"bbox": [12, 20, 36, 40]}]).encode()}
        made = parse_chain(self.TEXT)[1:].run(record, np.array([0.0]))
        rows, columns = np.nonzero(made["jpg"][:, :, 0] > 127)
        ((x, y, w, h),) = (item["bbox"] for item in json.loads(made["json"]))

        assert (x, y, x + w, y + h) == pytest.approx((columns.min(), rows.min(), columns.max() + 1, rows.max() + 1), abs=1)
