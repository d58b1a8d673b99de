"""Comparing chains: one pass, every step, differences, new seeds, errors in their tiles; no GUI."""

from __future__ import annotations

import itertools
import json
import threading
from pathlib import Path

import numpy as np
import pytest

from tarviz.model import plugins
from tarviz.model.errors import ChainError, UsageError
from tarviz.ops import Chain, Convert, Decode, Func, Resize
from tarviz.widgets.compare import value_picture
from tarviz.widgets.compare.chain_preview import Room, apart, largest_difference
from tarviz.widgets.compare.controller import MOST, Compare
from tarviz.widgets.compare.named_chains import name_chains
from tarviz.widgets.compare.text import align
from tarviz.widgets.host.rpc import answer
from tests.widgets.conftest import png, records, tar


@pytest.fixture
def shard(tmp_path: Path) -> Path:
    return tar(
        tmp_path / "a.tar", [(f"p/n{number}", {"png": png((number * 20, 40, 90), (40, 30)), "cls": b"%d" % number}) for number in range(6)]
    )


class Counted:
    """An op that counts how often it was run, by key."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def __call__(self, record: dict) -> dict:
        self.calls.append(record["__key__"])
        return record


def done(*args: object, **options: object) -> Compare:
    run = Compare(*args, **options)  # type: ignore[arg-type]
    assert run.wait(60)
    return run


class TestOnePass:
    def test_each_op_runs_once_per_record(self, shard: Path):
        """3 chains × 4 records × 5 steps: an op in the first place and one in the last are both called once a record."""
        first, last = [Counted() for _ in range(3)], [Counted() for _ in range(3)]
        chains = {
            f"c{at}": [Func(first[at]), Decode("png"), Resize("png", (16 + at, 16)), Convert("png", "float32"), Func(last[at])]
            for at in range(3)
        }

        run = done(shard, chains, records=4)

        keys = [f"p/n{number}" for number in range(4)]
        assert [keys] * 3 == [each.calls for each in first] == [each.calls for each in last]
        assert [[5] * 4] * 3 == [[len(strip.tiles) for strip in column.done] for column in run.columns]

    def test_looking_at_everything_runs_nothing_again(self, shard: Path):
        counted = Counted()
        run = done(shard, {"a": [Decode("png"), Func(counted)]}, records=2)
        run.first(), run.poll(), run.text(), run.picture(), run.step(0, 0, 1), run.difference(0, [0, -1], [0, 1]), list(run.likely())

        assert ["p/n0", "p/n1"] == counted.calls

    def test_a_new_seed_runs_its_column_only(self, shard: Path):
        counted = Counted(), Counted()
        run = done(
            shard, {"a": [Func(counted[0]), "decode(png)", "rotate(png)"], "b": [Func(counted[1]), "decode(png)", "rotate(png)"]}, records=2
        )
        before = [strip.tiles[-1].drawn for strip in run.columns[1].done]
        same = [strip.tiles[-1].drawn for strip in run.columns[0].done]
        run.reroll(1)
        run.wait(60)

        assert [2, 4] == [len(each.calls) for each in counted]
        assert [0, 1] == [column.seed for column in run.columns]
        assert before != [strip.tiles[-1].drawn for strip in run.columns[1].done]
        assert same == [strip.tiles[-1].drawn for strip in run.columns[0].done]

    def test_all_columns_draw_alike_from_one_seed(self, shard: Path):
        run = done(shard, ["decode(png)|rotate(png)", "decode(png)|resize(png, (9, 9))|rotate(png)"], records=1, seed=3)

        one, other = (column.done[0].tiles[-1].drawn for column in run.columns)
        assert one == other


class TestWhatATileSays:
    def test_dtype_shape_range_time_and_draw(self, shard: Path):
        run = done(shard, "decode(png)|convert(png, float32)|rotate(png)", records=1)
        tiles = run.columns[0].done[0].tiles

        assert ["uint8[30, 40, 3]", "float32[30, 40, 3]", "float32[30, 40, 3]"] == [tile.look.feature for tile in tiles]
        assert "0…90" == tiles[0].look.range
        assert "as it is" == tiles[0].look.mapping
        assert "×255" == tiles[1].look.mapping
        assert "turned by" in tiles[2].drawn
        assert all(tile.seconds > 0 for tile in tiles)

    def test_the_original_is_shown_by_its_viewer(self, shard: Path):
        run = done(shard, "decode(png)", records=1)

        assert "bytes" == run.originals[0].look.feature
        assert run.originals[0].picture[:4] == b"\x89PNG"

    def test_a_failing_op_says_why_in_its_tile_and_the_others_go_on(self, shard: Path):
        run = done(
            shard,
            {"bad": "decode(png)|random_crop(png, (99, 99))|resize(png, (4, 4))", "good": "decode(png)|resize(png, (4, 4))"},
            records=2,
        )
        bad, good = run.columns

        assert ["decode(png)", "random_crop(png, (99, 99))"] == [tile.op for tile in bad.done[0].tiles]
        assert "E_SCHEMA" == bad.done[0].tiles[1].error.code  # type: ignore[union-attr]
        assert 2 == run.failures
        assert "2 failed" in run.status
        assert all(strip.error is None for strip in good.done)

    def test_what_a_function_raises_is_in_its_tile(self, shard: Path):
        def boom(record: dict) -> dict:
            raise RuntimeError("<script>alert(1)</script>")

        run = done(shard, {"a": [Func(boom)]}, records=1)
        message, _ = answer(run, {"name": "poll", "id": 1})

        assert "RuntimeError" in message["r"]["strips"][0]["tiles"][0]["error"]

    def test_a_value_that_cannot_be_looked_at_is_said_and_ends_nothing_else(self, shard: Path):
        class Wordless:
            def __repr__(self) -> str:
                raise ValueError("no words")

        run = done(shard, {"bad": [Func(lambda record: {**record, "cls": Wordless()})], "good": "keep(cls)"}, records=1)

        assert "E_INTERNAL: comparing bad: ValueError: no words." in run.status
        assert [None, ["0"]] == [strips and [tile.text for tile in strips.tiles] for strips in (c.strips[0] for c in run.columns)]

    def test_an_op_on_the_record_shows_the_field_that_stands_for_it(self, shard: Path):
        run = done(shard, "decode(png)|rename(image=png)|keep(cls)", records=1)

        assert ["png", "image", "cls"] == [tile.ext for tile in run.columns[0].done[0].tiles]

    @pytest.mark.parametrize(
        ("value", "mapping"),
        [
            (np.full((4, 4, 3), 0.5, np.float32), "×255"),
            (np.full((4, 4, 3), 200.0, np.float32), "as 0…255"),
            (np.linspace(-2, 2, 48, dtype=np.float32).reshape(4, 4, 3), "stretched from −2…2"),
            (np.concatenate([np.zeros(199), [1.5]]).reshape(10, 20, 1).astype("f4"), "×255, clipped 0.5 %"),
            (np.zeros((4, 4), np.int32), "as it is"),
            (np.full((4, 4), 70_000, np.int32), "70000…70000 as dark…bright"),
            (np.zeros((4, 4), bool), "×255"),
            (np.zeros((3, 8, 9), np.float32), "×255, channels first"),
            (np.where(np.arange(16).reshape(4, 4) == 5, np.nan, 0.5), "×255, NaN pink (6.2 %)"),
        ],
    )
    def test_the_mapping_to_a_picture_is_said(self, value: np.ndarray, mapping: str):
        look = value_picture.look_at(value)

        assert mapping == look.mapping
        assert look.pixels is not None
        assert np.uint8 == look.pixels.dtype

    @pytest.mark.parametrize("value", [3, "text", np.float32(1.5), np.arange(5), np.array([]), None, {"a": 1}, np.zeros((0, 3)), b"raw"])
    def test_what_is_no_picture_is_words(self, value: object):
        look = value_picture.look_at(value)

        assert look.pixels is None
        assert look.text or look.range


class TestDifference:
    def test_of_the_values_where_the_dtype_is_the_same(self, shard: Path):
        run = done(
            shard,
            {"a": "decode(png)", "b": ["decode(png)", Func(lambda record: {**record, "png": record["png"] + np.uint8(3)})]},
            records=1,
        )
        found = run.difference(0, [0, 0], [1, 1])

        assert ("uint8", 3.0, 3.0, 1.0) == (found["kind"], found["max"], found["mean"], found["share"])

    def test_of_what_is_shown_where_the_dtype_differs(self, shard: Path):
        run = done(shard, {"a": "decode(png)", "b": "decode(png)|convert(png, float32)"}, records=1)
        found = run.difference(0, [0, 0], [1, 1])

        assert ("as shown, 0…255", 0.0) == (found["kind"], found["max"])

    def test_shapes_that_differ_are_named(self, shard: Path):
        run = done(shard, {"a": "decode(png)", "b": "decode(png)|resize(png, (5, 7))"}, records=1)

        assert "shapes differ: [30, 40, 3] and [5, 7, 3]" in run.difference(0, [0, 0], [1, 1])["text"]

    def test_nan_and_a_number_are_infinitely_far_apart(self):
        assert np.isinf(apart(np.array([np.nan]), np.array([1.0]))).all()
        assert 0.0 == apart(np.array([np.nan]), np.array([np.nan]))[0]

    def test_other_values_are_equal_or_not(self):
        assert 0.0 == largest_difference({"a": "x", "n": 1}, {"a": b"x", "n": 1})
        assert float("inf") == largest_difference({"a": b"x"}, {"a": b"y"})
        assert largest_difference({"a": 1}, {"b": 1}) is None


class TestColumns:
    @pytest.mark.matrix
    def test_tf_data_beside_eager_with_the_largest_difference(self, shard: Path):
        pytest.importorskip("tensorflow")
        run = done(shard, {"a": "decode(png)|rotate(png)|resize(png, (12, 12))|convert(png, float32)"}, records=3, columns=["tf.data"])
        graph = run.columns[1]

        assert ("tf.data", 3) == (graph.title, len(graph.done))
        assert graph.difference is not None
        assert graph.difference <= 1.01 / 255
        assert "a, tf.data" in run.status

    @pytest.mark.matrix
    def test_a_record_the_graph_refuses_fails_alone(self, tmp_path: Path):
        pytest.importorskip("tensorflow")
        shard = tar(tmp_path / "a.tar", [("a", {"png": png()}), ("b", {"png": b"no picture"}), ("c", {"png": png()})])
        run = done(shard, {"a": "decode(png)"}, records=3, columns=["tf.data"])

        assert [False, True, False] == [strip.error is not None for strip in run.columns[1].done]

    def test_an_unknown_runner_is_named(self, shard: Path):
        with pytest.raises(UsageError, match=r"no runner 'spark'.*tf\.data"):
            Compare(shard, "decode(png)", columns=["spark"])

    @pytest.mark.parametrize("runner", ["eager", "ray_data", "torch"])
    def test_what_runs_the_same_ops_is_not_offered(self, shard: Path, runner: str):
        with pytest.raises(UsageError, match=rf"no runner '{runner}' to compare with.*tf\.data"):
            Compare(shard, "decode(png)", columns=[runner])

        assert ["tf"] == [name for name, *_ in Compare(shard, "decode(png)").first()[0]["config"]["runners"]]

    def test_a_column_can_be_added_later(self, shard: Path):
        pytest.importorskip("tensorflow")
        run = done(shard, {"a": "decode(png)"}, records=1)
        run.add("tf.data")
        run.wait(60)

        assert ["eager", "tf.data"] == [column.title for column in run.columns]
        assert 0.0 == run.columns[1].difference


class TestDraws:
    def test_one_record_is_shown_with_twelve_seeds(self, shard: Path):
        run = done(shard, {"turned": "decode(png)|rotate(png)"}, records=["p/n2"], draws=12, seed=5)
        shown = [column.strips[0].tiles[-1].drawn for column in run.columns]
        alone = done(shard, {"turned": "decode(png)|rotate(png)"}, records=["p/n2"], seed=9)

        assert [(f"turned #{at}", 4 + at) for at in range(1, 13)] == [(column.name, column.seed) for column in run.columns]
        assert 12 == len(set(shown))
        assert alone.columns[0].strips[0].tiles[-1].drawn == shown[4]  # seed 9 draws what it draws alone

    def test_draws_of_several_chains_stand_side_by_side(self, shard: Path):
        run = done(shard, ["a = decode(png)|rotate(png)", "decode(png)"], records=1, draws=2)

        assert ["a #1", "a #2", "chain 2 #1", "chain 2 #2"] == [column.name for column in run.columns]

    @pytest.mark.parametrize("draws", [0, -1, 25])
    def test_too_few_or_many_are_refused(self, shard: Path, draws: int):
        with pytest.raises(UsageError, match=f"{draws} draws cannot be shown; 1 to 24 can"):
            Compare(shard, "decode(png)", draws=draws)


class TestRecords:
    def test_by_key_number_and_mark(self, shard: Path):
        from tarviz.widgets.browse.controller import RecordRef

        run = done(shard, "decode(png)", records=["p/n3", 1, "#4", RecordRef(str(shard), 2, "p/n2")])

        assert ["p/n3", "p/n1", "p/n4", "p/n2"] == [values["__key__"] for values in run.records]

    def test_more_are_read_when_asked_for(self, shard: Path):
        run = done(shard, "decode(png)", records=4)
        found = run.more(9)
        run.wait(60)

        assert {"found": 2, "count": 6} == found
        assert 6 == len(run.columns[0].done)

    @pytest.mark.parametrize("records", [0, MOST + 1, []])
    def test_too_few_or_many_are_refused(self, shard: Path, records: object):
        with pytest.raises(UsageError, match="cannot be compared"):
            Compare(shard, "decode(png)", records=records)  # type: ignore[arg-type]

    def test_a_key_that_is_not_there(self, shard: Path):
        with pytest.raises(UsageError, match="There is no record 'nope' among 6"):
            Compare(shard, "decode(png)", records=["nope"])

    def test_damage_ends_the_records_and_is_said(self, shard: Path, tmp_path: Path):
        cut = tmp_path / "cut.tar"
        cut.write_bytes(shard.read_bytes()[:2700])
        run = done(cut, "decode(png)", records=4)

        assert 0 < len(run.records) < 4
        assert "W_TRUNCATED" in run.status or "E_" in run.status

    def test_an_empty_shard_is_refused(self, tmp_path: Path):
        with pytest.raises(UsageError, match="no records"):
            Compare(tar(tmp_path / "e.tar", []), "decode(png)")


class TestChains:
    def test_however_they_are_written(self):
        chain = Chain.of("decode(png)|flip(png)")

        for written in (chain, str(chain), [chain], [str(chain)], {"chain 1": chain}, f"# remark\n{chain}\n"):
            assert {"chain 1": chain} == name_chains(written)  # type: ignore[arg-type]

    def test_an_equal_sign_within_a_chain_names_nothing(self):
        assert ["chain 1"] == list(name_chains("decode(png, channels=1)"))

    def test_which_one_cannot_be_read_is_said(self):
        with pytest.raises(ChainError, match="small: there is no op named 'decod'"):
            name_chains("big = decode(png)\nsmall = decod(png)")

    @pytest.mark.parametrize("chains", ["", [], {}, "a = decode(png)\na = decode(png)"])
    def test_none_or_twice_is_refused(self, chains: object):
        with pytest.raises(UsageError):
            name_chains(chains)  # type: ignore[arg-type]


class TestRequests:
    def test_the_first_picture_needs_no_question(self, shard: Path):
        run = done(shard, {"a": "decode(png)|resize(png, (8, 8))"}, records=2)
        message, buffers = run.first()
        tiles = [tile for strip in message["poll"]["strips"] for tile in strip["tiles"]]

        assert json.dumps(message)
        assert all(tile["buffer"] is not None for tile in tiles)
        assert len(buffers) == len({bytes(buffer) for buffer in buffers})  # none twice

    def test_a_poll_tells_what_is_new(self, shard: Path):
        run = done(shard, {"a": "decode(png)", "b": "decode(png)|rotate(png)"}, records=2)
        version = run.poll()[0]["version"]
        run.reroll(1)
        run.wait(60)
        message, _ = run.poll(version)

        assert {(1, 0), (1, 1)} == {(strip["column"], strip["record"]) for strip in message["strips"]}
        assert "records" not in message

    def test_a_step_comes_in_full(self, shard: Path):
        run = done(shard, "decode(png)|resize(png, (100, 200))", records=1)
        message, buffers = run.step(0, 0, 1)

        assert (200, 100) == (message["width"], message["height"])
        assert b"\x89PNG" == bytes(buffers[0])[:4]

    def test_a_step_without_a_picture_is_words_which_stay_unless_its_value_is_let_go(self, shard: Path):
        run = done(shard, {"a": "keep(cls)|decode(cls)", "b": "decode(png)|random_crop(png, (99, 99))"}, records=1)
        words, failed = (column.done[0].tiles[1] for column in run.columns)

        assert words.text
        assert ({"picture": False, "text": words.text}, []) == run.step(0, 0, 1)
        assert ({"picture": False, "text": failed.text}, []) == run.step(0, 1, 1)
        words.value = None
        assert ({"picture": False, "text": "No longer held: too many values, too large."}, []) == run.step(0, 0, 1)

    @pytest.mark.parametrize(
        "request_",
        [{"name": "step", "msg": {"record": 9}}, {"name": "step", "msg": {"record": 0, "step": 7}}, {"name": "close"}, {"name": "wait"}],
    )
    def test_what_cannot_be_asked_is_answered(self, shard: Path, request_: dict):
        run = done(shard, "decode(png)", records=1)
        message, _ = answer(run, {**request_, "id": 1})

        assert "err" in message

    def test_likely_requests_are_answered(self, shard: Path):
        run = done(shard, {"a": "decode(png)|flip(png)"}, records=2)

        for name, message in run.likely():
            assert "r" in answer(run, {"name": name, "msg": message, "id": 1})[0]

    def test_values_beyond_the_room_keep_their_thumbnail(self):
        room = Room(100)
        small, large = np.zeros(60, np.uint8), np.zeros(60, np.uint8)

        assert room.keep(small) is small
        assert room.keep(small) is small
        assert room.keep(large) is None


class TestStaticForms:
    def test_a_picture_within_the_budget(self, tmp_path: Path):
        noise = np.random.default_rng(0)
        pictures = [(f"n{at}", {"png": png(tuple(noise.integers(0, 255, 3).tolist()), (64, 64))}) for at in range(8)]
        run = done(tar(tmp_path / "a.tar", pictures), {"a": "decode(png)", "b": "decode(png)|rotate(png)"}, records=8)
        picture = run.picture()

        assert b"\x89PNG" == picture[:4]
        assert len(picture) <= 150_000

    def test_the_text_names_every_step(self, shard: Path):
        run = done(shard, {"a": "decode(png)|flip(png)"}, records=1)

        for word in ("p/n0", "decode(png)", "flip(png)", "uint8[30, 40, 3]", "flipped"):
            assert word in run.text()

    def test_the_call_reads_back(self, shard: Path):
        run = done(shard, {"a": "decode(png)"}, records=2, seed=4)

        assert f"tarviz.compare({str(shard)!r}, {{'a': 'decode(png)'}}, records=2, seed=4)" == run.spec

    def test_columns_of_text_line_up(self):
        assert ["a   1", "bb  22"] == align([("a", "1"), ("bb", "22")])


def test_hostile_records_are_shown_without_harm(tmp_path: Path):
    """Every payload of D00: a bad one is a bad tile, the rest goes on."""
    from tests.conftest import DATA

    hostile = next((DATA / "corpora" / "generated").glob("D00*"), None)
    if hostile is None:
        pytest.skip("the corpus has no D00 here")
    run = Compare(hostile, {"a": [Func(lambda record: record)]}, records=MOST)

    assert run.wait(60)
    assert {"found": 0, "count": MOST} == run.more(3)
    assert b"\x89PNG" == run.picture()[:4]
    run.close()


def test_closing_while_it_works(tmp_path: Path):
    gate = threading.Event()
    shard = tar(tmp_path / "a.tar", records(0, 4))
    run = Compare(shard, {"a": [Func(lambda record: (gate.wait(60), record)[1])]}, records=4)
    run.close()
    gate.set()

    assert run.wait(60)
    assert sum(strip is not None for strip in run.columns[0].strips) <= 1  # the one that was being made
    assert list(itertools.islice(run.columns[0].done, 4)) != [None] * 4


def test_the_runners_offered_exist(tmp_path: Path):
    run = done(tar(tmp_path / "a.tar", records(0, 1)), "decode(png)", records=1)

    assert {name for name, *_ in run.first()[0]["config"]["runners"]} <= set(plugins.names("runners"))
