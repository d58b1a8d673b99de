"""From found to kept: previews, raw copies, tables; checks that become tags; the label doctor."""

from __future__ import annotations

import contextlib
import io
import json
import tarfile
from pathlib import Path

import pytest
from PIL import Image

pytest.importorskip("duckdb", reason="a table needs DuckDB: pip install 'tarviz[table]'")
pytest.importorskip("pyarrow", reason="a table needs pyarrow: pip install 'tarviz[table]'")

import tarviz
from tarviz.model.errors import UsageError
from tarviz.widgets.browse.controller import Browser
from tests.conftest import wait_until
from tests.widgets.browse.test_controller import ask, settle, shown
from tests.widgets.conftest import png, records, tar


@pytest.fixture
def browser(shards):
    found = settle(Browser(shards, cache=False))
    assert found.shards.questions.wait(60)
    yield found
    found.close()


def raw(path):
    """The bytes of each member, header too, by name."""
    data = path.read_bytes()
    with tarfile.open(path) as file:
        return {one.name: data[one.offset : one.offset_data + one.size] for one in file}


def busy_picture(seed, size, quality=90):
    """A picture with edges, the same for a seed at any size."""
    import numpy as np

    small = np.random.default_rng(seed).integers(0, 255, (9, 12, 3), np.uint8)
    out = io.BytesIO()
    Image.fromarray(small).resize(size, Image.Resampling.BICUBIC).save(out, "JPEG", quality=quality)
    return out.getvalue()


def names(path):
    with tarfile.open(path) as file:
        return file.getnames()


class TestKeep:
    def test_members_are_copied_bit_for_bit(self, browser, shards, tmp_path):
        chosen = shown(browser, "cls = 1 and json.w > 300")
        preview, _ = ask(browser, "preview", query=browser.query.number)
        ask(browser, "keep", path=str(tmp_path / "subset-{}.tar"), query=browser.query.number)
        wait_until(lambda: not browser.shards.job.running)
        (path,) = tmp_path.glob("subset-*.tar")
        whole = {name: data for shard in shards for name, data in raw(shard).items()}

        assert chosen == [record.key for record in tarviz.records(path)]
        assert all(whole[name] == data for name, data in raw(path).items())
        assert f"{len(chosen)} records written" in browser.shards.job.text
        assert len(chosen) == preview["count"]
        assert abs(path.stat().st_size - preview["bytes"]) <= 20 * 512

    @pytest.mark.parametrize("name", ["s.csv", "s.parquet", "s.txt", "s.tar"])
    def test_python_writes_every_kind(self, browser, tmp_path, name):
        chosen = shown(browser, "cls = 2")

        assert len(chosen) == browser.write(tmp_path / name)
        if name == "s.parquet":
            import pyarrow.parquet as parquet

            table = parquet.read_table(tmp_path / name)
            assert (sorted(chosen), {"key", "cls", "json"}) == (
                sorted(table.column("key").to_pylist()),
                {"key", "cls", "json"} & set(table.column_names),
            )
        elif name != "s.tar":
            assert all(key in (tmp_path / name).read_text() for key in chosen)

    def test_the_marked_go_before_what_is_shown(self, browser, tmp_path):
        ask(browser, "mark", add=[3, 1])
        ask(browser, "keep", path=str(tmp_path / "keys.txt"), query=0, marked=True)
        wait_until(lambda: not browser.shards.job.running)

        assert "set/n000001\nset/n000003\n" == (tmp_path / "keys.txt").read_text()

    def test_a_table_has_the_columns_in_view(self, browser, tmp_path):
        ask(browser, "keep", path=str(tmp_path / "some.csv"), query=browser.query.number, columns=["cls"])
        wait_until(lambda: not browser.shards.job.running)

        assert "key,shard,index,cls" == (tmp_path / "some.csv").read_text().splitlines()[0]

    @pytest.mark.parametrize("kind", ["tar", "csv", "txt"])
    def test_a_page_gets_what_python_writes(self, browser, tmp_path, kind):
        count = browser.write(tmp_path / f"s.{kind}")
        message, (data,) = ask(browser, "export", query=browser.query.number, kind=kind)
        (tmp_path / f"page.{kind}").write_bytes(data)
        read = names if kind == "tar" else Path.read_text

        assert {"count": count, "size": len(data)} == message
        assert read(tmp_path / f"s.{kind}") == read(tmp_path / f"page.{kind}")

    def test_a_page_overwrites_nothing(self, browser, shards):
        error, _ = ask(browser, "keep", path=str(shards[0]), query=0)

        assert "is there already" in error["msg"]
        assert "nothing to save" in ask(browser, "keep", path="x.tar", query=0, marked=True)[0]["msg"]

    @pytest.mark.parametrize(
        ("there", "name"),
        [("subset-1.tar", "subset-{}.tar"), ("subset-7.tar", "subset-{}.tar"), ("s-000002.tar", "s-%06d.tar"), ("keys.txt", "keys.txt")],
    )
    def test_nothing_that_is_there_is_overwritten(self, browser, tmp_path, there, name):
        folder = tmp_path / "out"
        folder.mkdir()
        (folder / there).write_bytes(b"of somebody")
        wishes = [ask(browser, "keep", path=str(folder / name), query=0)[0]]
        if name.endswith(".tar"):
            wishes.append(ask(browser, "clean", path=str(folder / name))[0])
        with pytest.raises(UsageError, match="is there already"):
            browser.write(folder / name)

        assert all(f"{there} is there already" in error["msg"] for error in wishes)
        assert [(there, b"of somebody")] == [(path.name, path.read_bytes()) for path in folder.iterdir()]

    def test_what_only_looks_like_a_shard_of_the_same_name_is_no_hindrance(self, browser, tmp_path):
        (tmp_path / "subset-old.tar").write_bytes(b"of somebody")

        assert 60 == browser.write(tmp_path / "subset-{}.tar")
        assert b"of somebody" == (tmp_path / "subset-old.tar").read_bytes()

    def test_where_it_is_wished_for_what_is_there_is_replaced(self, browser, tmp_path):
        for name in ("subset-{}.tar", "s.tar", "s.csv"):
            browser.write(tmp_path / name)
            shown(browser, "cls = 1")

            assert 20 == browser.write(tmp_path / name, exists="replace")
        assert 20 == len(list(tarviz.records(tmp_path / "subset-1.tar"))) == len(list(tarviz.records(tmp_path / "s.tar")))

    def test_on_a_store_too(self, browser):
        browser.write("memory://kept/subset-{}.tar")
        with pytest.raises(UsageError, match="is there already"):
            browser.write("memory://kept/subset-{}.tar")

    def test_a_shard_that_was_replaced_is_not_mixed_in(self, browser, shards, tmp_path):
        tar(shards[0], records(100, 30))
        ask(browser, "keep", path=str(tmp_path / "out.tar"), query=0)
        wait_until(lambda: not browser.shards.job.running)

        assert browser.shards.job.bad
        assert not (tmp_path / "out.tar").exists()


class TestChecks:
    @pytest.fixture
    def doubtful(self, tmp_path):
        good = [(f"k{at}", {"jpg": busy_picture(at, (80, 60)), "json": b'{"a": 1}'}) for at in range(6)]
        good[2][1]["jpg"] = b"\xff\xd8broken"
        good[3][1]["json"] = b"{no"
        good.append(("same", dict(good[0][1])))
        good.append(("near", {"jpg": busy_picture(1, (160, 120), 70)}))
        good.append(("array", {"npy": b"\x93NUMPY broken"}))
        return tar(tmp_path / "d.tar", good)

    def test_what_is_found_is_tagged_and_one_click_leaves_it_out(self, doubtful, tmp_path):
        with contextlib.closing(settle(Browser(doubtful, cache=False))) as browser:
            assert browser.shards.questions.wait(60)
            ask(browser, "check")
            wait_until(lambda: not browser.shards.job.running)

            assert ["k2", "k3", "array"] == shown(browser, "is:bad")
            assert ["same", "near"] == shown(browser, "is:dup")
            assert {"bad": 3, "dup": 2} == dict(ask(browser, "tags")[0]["tags"])
            assert "3 bad, 2 duplicates" in browser.shards.job.text

            ask(browser, "clean", path=str(tmp_path / "clean.tar"))
            wait_until(lambda: not browser.shards.job.running)
            assert ["k0", "k1", "k4", "k5"] == [record.key for record in tarviz.records(tmp_path / "clean.tar")]

    @pytest.mark.filterwarnings("ignore:W_", "ignore:E_")
    def test_what_the_scan_refused_is_bad_and_what_it_warned_of_is_not(self, tmp_path):
        apart = [("k0", {"cls": b"1"}), ("k1", {"cls": b"2"}), ("k0", {"txt": b"of k0"})]
        path = tar(tmp_path / "d.tar", [*apart, ("k2", {"cls": b"3", "txt": bytes(600)})])
        path.write_bytes(path.read_bytes()[:5000])
        with contextlib.closing(settle(Browser(path, cache=False))) as browser:
            assert browser.shards.questions.wait(60)
            ask(browser, "check")
            wait_until(lambda: not browser.shards.job.running)
            lines = browser.shards.questions.table.tags.lines()
        assert ["W_SPLIT_RECORD", "E_TRUNCATED"] == [fault.code for fault in browser.shards.rows.shards[0].faults]
        assert [("k2", "bad", "E_TRUNCATED")] == [(line["key"], line["tag"], line["note"]) for line in lines]

    def test_verify_tags_what_it_finds(self, doubtful):
        from tarviz.commands.verify import verify

        verify([str(doubtful)], deep=True, tag=True)
        table = tarviz.table(doubtful)

        assert {"k2", "k3", "array"} == {line["key"] for line in table.tags.lines()}
        assert any(line["note"].startswith("E_DECODE") for line in table.tags.lines())

    def test_it_ends_between_two_records(self, doubtful, monkeypatch):
        from tarviz.table.making import shard_columns

        real, seen = shard_columns._fingerprint, []

        def see(payload):
            seen.append(payload)
            if len(seen) == 3:
                ask(browser, "stop_job")
            return real(payload)

        monkeypatch.setattr(shard_columns, "_fingerprint", see)
        with contextlib.closing(settle(Browser(doubtful, cache=False))) as browser:
            assert browser.shards.questions.wait(60)
            ask(browser, "check")
            wait_until(lambda: not browser.shards.job.running)

            assert (3, "the query was stopped.", False) == (len(seen), browser.shards.job.text, browser.shards.job.bad)
            assert ["k0"] == shown(browser, "k0")
            ask(browser, "check")
            wait_until(lambda: not browser.shards.job.running)
            assert "3 bad, 2 duplicates" in browser.shards.job.text


class TestTags:
    def test_the_marked_get_a_tag_and_a_note_that_survive_a_restart(self, browser, shards):
        answer, _ = ask(browser, "tag", tag="blurred", marked=[0, 2], note="by hand")
        with contextlib.closing(settle(Browser(shards, cache=False))) as again:
            found = shown(again, "is:blurred")
        table = tarviz.table(shards)

        assert (2, [["blurred", 2]]) == (answer["count"], answer["tags"])
        assert ["set/n000000", "set/n000002"] == found == shown(browser, "tag = 'blurred'")
        assert [("set/n000000",), ("set/n000002",)] == table.sql("SELECT key FROM records WHERE tag = 'blurred' ORDER BY n").fetchall()
        joined = "SELECT t.note, count(*) FROM records r JOIN tags t USING (shard, key) GROUP BY ALL"
        assert [("by hand", 2)] == table.sql(joined).fetchall()
        assert found == [record.key for record in tarviz.records(shards, where="is:blurred")]

    def test_they_can_be_taken_away(self, browser):
        ask(browser, "tag", tag="blurred", marked=[0, 2])
        ask(browser, "untag", tag="blurred", marked=[0])

        assert ["set/n000002"] == shown(browser, "is:blurred")

    def test_what_was_changed_is_told_and_can_be_put_back_notes_included(self, browser):
        def notes():
            return {line["key"][-1]: line["note"] for line in browser.shards.questions.table.tags.lines()}

        ask(browser, "tag", tag="blurred", marked=[0, 2], note="by hand")
        again, _ = ask(browser, "tag", tag="blurred", marked=[1, 2], note="seen twice")
        assert [[1, None], [2, "by hand"]] == again["before"]
        ask(browser, "retag", tag="blurred", before=again["before"])
        assert {"0": "by hand", "2": "by hand"} == notes()
        gone, _ = ask(browser, "untag", tag="blurred", marked=[0, 1])
        assert [[0, "by hand"]] == gone["before"]
        assert {"2": "by hand"} == notes()
        ask(browser, "retag", tag="blurred", before=gone["before"])
        assert {"0": "by hand", "2": "by hand"} == notes()

    @pytest.mark.parametrize("tag", ["", "two, three", "x" * 101])
    def test_what_is_no_tag_is_refused_with_what_one_is(self, browser, tag):
        error, _ = ask(browser, "tag", tag=tag, marked=[0])

        assert "is not a tag" in error["msg"]
        assert "a word" in error["hint"].lower()


class TestDoctor:
    @pytest.fixture
    def predicted(self, tmp_path):
        found = []
        for at in range(40):
            guess = {"pred": at % 3 if at % 5 else (at + 1) % 3, "conf": at / 40}
            found.append((f"k{at:02d}", {"png": png(), "cls": str(at % 3).encode(), "json": json.dumps(guess).encode()}))
        return tar(tmp_path / "p.tar", found)

    def test_each_cell_chooses_the_records_it_counts(self, predicted):
        with contextlib.closing(settle(Browser(predicted, cache=False))) as browser:
            assert browser.shards.questions.wait(60)
            browser.first()
            found, _ = ask(browser, "doctor")
            wrong = shown(browser, found["wrong"], sort="label", label=found["confidence"], descending=True)

            assert ("cls", "json.pred", "json.conf") == (found["truth"], found["predicted"], found["confidence"])
            for row, cells in zip(found["counts"], found["cells"], strict=True):
                assert row == [len(shown(browser, cell)) for cell in cells]
            assert [f"k{at:02d}" for at in range(35, -1, -5)] == wrong
            assert 0.8 == found["accuracy"]

    def test_without_predictions_there_is_none_and_columns_to_choose_from(self, browser):
        found, _ = ask(browser, "doctor")

        assert ("", ["cls", "json.w", "json.label", "json.meta.n"]) == (found["predicted"], found["choices"])

    def test_any_column_can_be_chosen(self, browser):
        found, _ = ask(browser, "doctor", truth="cls", predicted="json.label")
        swapped, _ = ask(browser, "doctor", truth="json.label", predicted="cls")

        assert [17, 17, 17] == sorted(count for row in found["counts"] for count in row if count)
        assert [list(row) for row in zip(*found["counts"], strict=True)] == swapped["counts"]
        assert 17 == len(shown(browser, found["cells"][0][found["labels"].index("cat")]))
