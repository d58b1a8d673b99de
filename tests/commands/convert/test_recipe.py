"""Values keep their kind on the way into TFRecord files, under whatever name."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarviz.commands.convert import convert
from tarviz.commands.convert.recipe import ConversionProgress, Recipe
from tarviz.formats import example, tfrecord
from tarviz.model.errors import UsageError
from tarviz.model.types import URL
from tarviz.ops import Chain, Func, Rename
from tarviz.read.chosen import Chosen
from tarviz.read.stream import ReadOptions
from tarviz.samples import write_shard
from tarviz.selection import SelectJSON, parse

_WHOLE, _REAL = st.integers(-(2**63), 2**63 - 1), st.floats(width=32, allow_nan=False, allow_infinity=False)
JSON = st.one_of(
    *(kind for one in (_WHOLE, _REAL, st.booleans(), st.text(max_size=9)) for kind in (one, st.lists(one, min_size=1, max_size=5))),
    st.lists(_WHOLE.filter(lambda one: abs(one) < 1 << 24) | _REAL, min_size=1, max_size=5),
    st.lists(st.lists(st.integers(-9, 9), min_size=2, max_size=2), min_size=1, max_size=3),
)


def as_feature(value: Any) -> list[Any]:
    """What a value of JSON is in an Example: bytes, int or float32 values, lists flat; with one float in a list, all are."""
    flat = np.asarray(value).ravel().tolist() if isinstance(value, list) and isinstance(value[0], list) else value
    items = flat if isinstance(flat, list) else [flat]
    if any(isinstance(each, float) for each in items):
        return [float(each) for each in items]
    return [each.encode() if isinstance(each, str) else int(each) for each in items]


def examples(path: str) -> list[dict[str, list[Any]]]:
    return [example.decode(record) for record in tfrecord.read(Path(path).read_bytes())]


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"chain": "rename(label=cls)"}, "label"),
        ({"chain": "rename(label=cls)|rename(y=label)|keep(y)"}, "y"),
        ({"chain": "rename(label=cls, keep=True)", "select": {"z": "label"}}, "z"),
        ({"select": {"label": "cls", "jpg": "jpg"}}, "label"),
        ({"chain": "drop(jpg)", "select": {"label": "cls"}}, "label"),
    ],
    ids=str,
)
def test_a_class_is_an_integer_under_any_name(tmp_path: Path, options: dict[str, Any], name: str) -> None:
    records = [(f"k{at:02d}", {"jpg": b"?", "cls": b"%d" % at}) for at in range(30)]
    path = tmp_path / "a.tar"
    write_shard(path, records)
    (out,) = convert(path, tmp_path / "o", **options)
    (text,) = convert(path, tmp_path / "t", types={name: "bytes"}, **options)

    assert [[int(fields["cls"])] for _, fields in records] == [record[name] for record in examples(out)]
    assert [[fields["cls"]] for _, fields in records] == [record[name] for record in examples(text)]


def test_what_is_renamed_to_no_class_is_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    write_shard(path, [("a", {"txt": b"7", "cls": b"8"})])
    (mixed,) = convert(path, tmp_path / "m", chain="rename(label=cls;txt)")
    (other,) = convert(path, tmp_path / "o", chain="rename(label=txt)")

    assert [b"7"] == examples(mixed)[0]["label"] == examples(other)[0]["label"]


@settings(max_examples=15)
@given(st.lists(JSON, min_size=1, max_size=6))
def test_json_and_classes_keep_their_type_through_renaming_and_back(tmp_path_factory: pytest.TempPathFactory, values: list[Any]) -> None:
    folder = tmp_path_factory.mktemp("types")
    path = folder / "a.tar"
    write_shard(path, [(f"k{at}", {"json": json.dumps({"v": value}).encode()}) for at, value in enumerate(values)])

    def put(record: dict[str, Any]) -> None:
        record["cls"] = json.loads(record["json"])["v"]

    plain = {"types": {}, "key": False}
    (one,) = convert(path, folder / "a", select={"x": SelectJSON("json", "v")}, **plain)
    (two,) = convert(path, folder / "b", chain=[Func(put), Rename(x="cls")], select="x", **plain)
    (three,) = convert(path, folder / "c", chain=[Func(put), Rename(y="cls"), Rename(x="y")], select=["x"], **plain)
    expected = [{"x": as_feature(value)} for value in values]

    for out in (one, two, three):
        found = examples(out)
        assert expected == found
        assert [[type(each) for each in record["x"]] for record in expected] == [[type(each) for each in record["x"]] for record in found]


def recipe(select: Any = None, chain: Any = None, **more: Any) -> Recipe:
    given = {"types": {}, "key": True, "seed": 0, "options": ReadOptions()} | more
    return Recipe(Chain.of(chain), parse(select), **given)


def test_blocks_are_encoded_as_they_are_where_nothing_but_names_matters():
    for select, chain, renames in [
        (None, None, {}),
        ("jpg", None, {"jpg": "jpg"}),
        (("jpg", "cls"), None, {"jpg": "jpg", "cls": "cls"}),
        ({"image": "jpg", "y": "cls"}, None, {"jpg": "image", "cls": "y"}),
        ({"a": "jpg", "b": "jpg"}, None, None),
        (("jpg;png", "cls"), None, None),
        (("__key__", "cls"), None, None),
        ((SelectJSON("json", "w"), "cls"), None, None),
        (("jpg", "cls"), "decode(cls)", None),
        (None, "keep(jpg)", None),
    ]:
        assert renames == recipe(select, chain).renames
        assert recipe(select, chain, record_to_example=dict).renames is None


def test_a_feature_is_named_by_its_field_or_the_last_name_in_json() -> None:
    select = ("jpg", SelectJSON("json", ["boxes", 0, "label"]), SelectJSON("txt", []))

    assert [("jpg", "jpg"), ("label", "json"), ("txt", "txt")] == [(name, leaf.ext) for name, leaf in recipe(select).leaves().items()]
    assert {} == recipe().leaves()
    with pytest.raises(UsageError, match="an Example is flat"):
        recipe({"a": ("jpg", "cls")})


def test_what_holds_a_class_under_another_name():
    for select, chain, types, numbered in [
        (None, None, {}, set()),
        (None, "rename(label=cls)", {}, {"label"}),
        (None, "rename(label=cls)", {"label": "bytes"}, set()),
        (None, "rename(label='cls;index')", {}, {"label"}),
        (None, "rename(label='cls;jpg')", {}, set()),
        (None, "rename(label=jpg)|rename(y=label)", {}, set()),
        ({"y": "cls", "z": "jpg", "cls": "cls"}, None, {}, {"y"}),
        ({"y": SelectJSON("cls", [])}, None, {}, set()),
    ]:
        assert numbered == recipe(select, chain, types=types).numbered


def test_what_a_manifest_says_of_it_is_all_there_is_to_say() -> None:
    plain, all_of_it = (
        recipe(),
        recipe(
            {"y": "cls"},
            "flip(jpg)",
            types={"jpg": "bytes"},
            key=False,
            seed=3,
            options=ReadOptions(strict=False, key_split="last-dot", group="shard", duplicates="last", concatenated=True, on_error="skip"),
        ),
    )

    reading = {
        "strict": True,
        "key_split": "first-dot",
        "group": "adjacent",
        "duplicates": "error",
        "concatenated": False,
        "on_error": "raise",
    }
    assert {"chain": "", "select": None, "types": {}, "key": True, "seed": None, **reading} == plain.to_dict()
    reading = {"strict": False, "key_split": "last-dot", "group": "shard", "duplicates": "last", "concatenated": True, "on_error": "skip"}
    assert {
        "chain": "flip(jpg)",
        "select": "{'y': 'cls'}",
        "types": {"y": "int64", "jpg": "bytes"},
        "key": False,
        "seed": 3,
        **reading,
    } == all_of_it.to_dict()
    assert [True, True, False, False] == [
        each.provable for each in (plain, all_of_it, recipe(record_to_example=dict), recipe(chain=[Func(dict)]))
    ]


def test_what_a_condition_chose_is_said_by_the_records(tmp_path: Path) -> None:
    chosen = [Chosen("cls = 1", {"b": np.array(rows), "a": np.array([7])}, {}) for rows in ([1, 2], [1, 3])]
    one, other = (recipe(options=ReadOptions(where=each)).to_dict() for each in chosen)

    assert ("cls = 1", "cls = 1", 64) == (one["where"], other["where"], len(one["chosen"]))
    assert one["chosen"] != other["chosen"]
    turned = replace(chosen[0], rows=dict(reversed(chosen[0].rows.items())))
    assert one == recipe(options=ReadOptions(where=turned)).to_dict()


@pytest.mark.parametrize("chain", [None, "rename(image=jpg)"])
def test_a_batch_says_up_to_which_record_the_shard_was_looked_at(tmp_path: Path, chain: Any) -> None:
    records = [(f"k{at:02d}", {"jpg": bytes(1500), "cls": b"cat" if at in (3, 7, 11) else b"1"}) for at in range(12)]
    write_shard(tmp_path / "a.tar", records)
    work = recipe(chain=chain, options=ReadOptions(on_error="skip", block_size=4096))
    found = list(work.batches(URL(str(tmp_path / "a.tar")), progress := ConversionProgress(lambda size: None)))

    assert [at for at in range(12) if at not in (3, 7, 11)] == [number for batch in found for number in batch.numbers.tolist()]
    stops = [batch.stop for batch in found]
    assert ([*range(1, 13)], 3) == (stops, len(progress.report.skipped))
    rest = list(work.batches(URL(str(tmp_path / "a.tar")), ConversionProgress(lambda size: None), 7))
    assert [8, 9, 10] == [number for batch in rest for number in batch.numbers.tolist()]
