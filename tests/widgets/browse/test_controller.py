"""The browser without any browser: what a view gets for each request, and what Python gets to know."""

from __future__ import annotations

import contextlib
import io
import json
import os
import tarfile
import threading

import pytest
from PIL import Image

from tarviz import stores, viewers
from tarviz.model.errors import UsageError
from tarviz.read.stream import ReadOptions
from tarviz.stores import memory
from tarviz.widgets.browse.controller import Browser, RecordRef
from tarviz.widgets.browse.rows import row_id
from tarviz.widgets.host.contact_sheet import Cell, printable, sheet
from tarviz.widgets.host.rpc import answer
from tests.conftest import DATA, wait_until
from tests.widgets.conftest import png, records, tar


@pytest.fixture
def browser(shards):
    found = Browser(shards, cache=False)
    found.wait(60, 60)
    settle(found)
    yield found
    found.close()


def settle(browser, seconds=60.0):
    wait_until(lambda: browser.shards.rows.finished and (browser.query.done or browser.query.wish.plain), seconds)
    return browser


def shown(browser, where="", **wish):
    browser.session.search(where, **wish)
    settle(browser)
    return [browser.shards.rows.row(row).key for row in browser.query.ids(0, 1000)]


def ask(browser, name, **message):
    reply, buffers = answer(browser, {"k": "tvz:req", "id": "1", "name": name, "msg": message})
    json.dumps(reply, allow_nan=False).encode("utf-8")
    return reply.get("r", reply.get("err")), buffers


def test_one_beside_it_shows_other_shards_in_the_same_way(shards):
    options = ReadOptions(group="shard")
    with (
        contextlib.closing(Browser(shards[:2], cache=False, px=96, options=options)) as one,
        contextlib.closing(one.beside(str(shards[2]))) as other,
    ):
        assert [str(shards[2])] == [shard.url for shard in other.shards.rows.shards]
        assert options == other.shards.questions.options
        assert 96 == other.session.look.px


def test_standard_input_is_read_from_the_front(shards, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(shards[0].read_bytes())))
    with contextlib.closing(settle(Browser("-"))) as browser:
        assert [f"set/n{number:06d}" for number in range(20)] == shown(browser)


class TestRows:
    def test_a_request_gives_at_most_a_hundred_and_twenty(self, tmp_path):
        path = tar(tmp_path / "many.tar", [(f"k{n:04d}", {"txt": b"x"}) for n in range(300)])
        with contextlib.closing(settle(Browser(path, cache=False))) as browser:
            found, _ = ask(browser, "fetch", query=browser.query.number, start=100, stop=300)

        assert [f"k{n:04d}" for n in range(100, 220)] == [row["key"] for row in found["rows"]]

    def test_a_new_search_ends_the_one_before(self, browser):
        before = browser.session.look.query
        shown(browser, "cls = 1")

        assert before is not browser.session.look.query
        assert before._stop.is_set()

    def test_a_shard_with_fields_twice_says_so_each_time(self, tmp_path, monkeypatch):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        path = tmp_path / "twice.tar"
        with tarfile.open(path, "w") as archive:
            for name, data in (("a.txt", b"1"), ("a.txt", b"2"), ("b.txt", b"3")):
                member = tarfile.TarInfo(name)
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
        for _ in range(2):  # the second would take an index that was kept, which knows nothing of it
            with contextlib.closing(settle(Browser(path))) as browser:
                assert ["W_DUP_FIELD"] == [fault.code for shard in browser.shards.rows.shards for fault in shard.faults]

    def test_the_first_picture_needs_no_request(self, browser):
        first, buffers = browser.first()

        assert 24 == len(first["rows"]["rows"])
        assert 24 == len(buffers)
        assert "cls" == first["rows"]["label"]
        assert 60 == first["poll"]["total"]
        assert first["poll"]["exact"]

    def test_rows_come_with_key_fields_label_and_picture(self, browser):
        message, buffers = ask(browser, "fetch", query=0, start=19, stop=22)
        row = message["rows"][1]

        assert ["set/n000019", "set/n000020", "set/n000021"] == [one["key"] for one in message["rows"]]
        assert (1, 0, "2", ["png", "cls", "json"]) == (row["s"], row["n"], row["label"], row["fields"])
        assert (12, 8) == Image.open(io.BytesIO(buffers[row["tile"]["buffer"]])).size

    def test_only_what_is_asked_for_is_made(self, browser, monkeypatch):
        made, tile = [], viewers.tile
        monkeypatch.setattr(viewers, "tile", lambda blob, meta, size: made.append(meta.key) or tile(blob, meta, size))
        ask(browser, "fetch", query=0, start=30, stop=42)
        ask(browser, "fetch", query=0, start=30, stop=42)

        assert [f"set/n{number:06d}" for number in range(30, 42)] == sorted(made)

    def test_no_more_than_120_rows_at_once(self, browser):
        assert 60 == len(ask(browser, "fetch", query=0, start=0, stop=10**9)[0]["rows"])

    def test_rows_of_an_old_query_are_not_sent(self, browser):
        browser.session.search("cls == 1")

        assert ask(browser, "fetch", query=0, start=0, stop=5)[0]["stale"]

    def test_the_label_may_be_a_json_path(self, shards):
        browser = settle(Browser(shards, label="json:label", cache=False))
        message, _ = ask(browser, "fetch", query=0, start=1, stop=3)
        browser.close()

        assert ["dog", "owl"] == [row["label"] for row in message["rows"]]

    @pytest.mark.parametrize("classes", [["cat", "dog", "owl"], {1: "dog", 0: "cat"}, "names.txt"])
    def test_class_numbers_get_their_names(self, shards, classes, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "names.txt").write_text("cat\ndog\nowl\n")
        browser = settle(Browser(shards, classes=classes, cache=False))
        message, _ = ask(browser, "fetch", query=0, start=0, stop=2)
        browser.close()

        assert ["0 cat", "1 dog"] == [row["label"] for row in message["rows"]]


class TestPoll:
    def test_it_sends_what_changed_since_the_last_time(self, browser):
        whole, _ = ask(browser, "poll", since=-1)
        later, _ = ask(browser, "poll", since=whole["version"])

        assert [20, 20, 20] == [shard["count"] for shard in whole["shards"]]
        assert [["png", 60], ["cls", 60], ["json", 51]] == whole["summary"]["fields"]
        assert [[["png", "cls", "json"], 51], [["png", "cls"], 9]] == whole["summary"]["sets"]
        assert [] == later["shards"]
        assert "summary" not in later

    def test_damage_is_named_with_its_byte(self, tmp_path):
        data = tar(tmp_path / "whole.tar", records(0, 20)).read_bytes()
        (tmp_path / "cut.tar").write_bytes(data[: 5 * 1024 + 512 + 20])
        browser = settle(Browser(tmp_path / "cut.tar", cache=False))
        message, _ = ask(browser, "poll")
        browser.close()

        fault = message["summary"]["faults"][0]
        assert "E_TRUNCATED" == fault["code"]
        assert 0 < fault["offset"] < 10_000
        assert "1 shard damaged" in message["status"]

    def test_an_empty_shard_has_one_clear_line(self, tmp_path):
        (tmp_path / "empty.tar").write_bytes(bytes(10_240))
        browser = settle(Browser(tmp_path / "empty.tar", cache=False))

        assert "scanned · 0 records · nothing in here" == ask(browser, "poll")[0]["status"]
        assert [] == browser.first()[0]["rows"]["rows"]
        assert isinstance(browser.picture(), bytes)
        browser.close()

    @pytest.mark.parametrize("change", ["grow", "shrink", "vanish"])
    def test_a_shard_that_changes_is_noticed_and_scanned_again(self, shards, browser, change):
        if change == "grow":
            tar(shards[0], records(100, 25))
        elif change == "shrink":
            tar(shards[0], records(0, 5))
        else:
            shards[0].unlink()
        message, _ = ask(browser, "poll", since=10**6, idle=True)

        assert "s-0.tar changed since the scan: scan again" in message["status"]
        ask(browser, "again", shard=0)
        settle(browser)
        assert {"grow": 65, "shrink": 45, "vanish": 40}[change] == len(browser.query)
        assert "changed" not in ask(browser, "poll")[0]["status"]


class TestSearch:
    @pytest.mark.matrix
    def test_by_key_label_json_path_and_presence(self, browser):
        assert ["set/n000007"] == shown(browser, "n000007")
        assert 20 == len(shown(browser, "cls == 1"))
        assert ["set/n000058", "set/n000059"] == shown(browser, "json.w > 570")
        assert ["set/n000000", "set/n000007"] == shown(browser, "not has:json")[:2]
        assert ["set/n000010"] == shown(browser, "json.meta.n == 10 and size(png) > 20")
        assert [] == shown(browser, "wav == 3")

    def test_sorted_by_key_size_label_or_at_random(self, browser, tmp_path):
        everything = shown(browser)

        assert sorted(everything) == shown(browser, sort="key")
        assert "0" * 3 == "".join(
            browser.shards.labels.text(browser.shards.rows.row(row), "cls", *_cls(browser, row)) for row in _after(browser, "label")[:3]
        )
        assert everything != shown(browser, sort="random", seed=1)
        assert shown(browser, sort="random", seed=1) == shown(browser, sort="random", seed=1)
        assert sorted(everything) == sorted(shown(browser, sort="random", seed=2))
        sizes = [sum(browser.shards.rows.row(row).sizes.values()) for row in _after(browser, "size")]
        assert sorted(sizes, reverse=True) == sizes

    def test_within_one_shard_and_among_the_marked(self, browser):
        ask(browser, "mark", add=[row_id(2, 1), row_id(0, 3)])

        assert [f"set/n{number:06d}" for number in range(20, 40)] == shown(browser, shard=1)
        assert ["set/n000003", "set/n000041"] == shown(browser, only=True)

    def test_what_cannot_be_read_is_said_and_the_old_rows_stay(self, browser):
        error, _ = ask(browser, "search", where="cls ==")

        assert "UsageError" == error["type"]
        assert "has:json" in error["hint"]
        assert 60 == len(browser.query)
        assert "UsageError" == ask(browser, "search", sort="colour")[0]["type"]

    def test_a_search_can_be_stopped_and_keeps_what_it_found(self, browser):
        browser.session.search("cls == 1")
        ask(browser, "stop")
        settle(browser)

        assert len(browser.query) <= 20

    def test_hostile_payloads_do_not_end_a_search(self, tmp_path):
        path = tar(tmp_path / "h.tar", [("a", {"json": b"[" * 50_000}), ("b", {"json": b'{"w": 1}'}), ("c", {"json": b"\xff"})])
        browser = settle(Browser(path, cache=False))

        assert ["b"] == shown(browser, "json.w == 1")
        browser.close()


def _after(browser, sort):
    shown(browser, sort=sort)
    return browser.query.ids(0, 60)


def _cls(browser, row):
    from tarviz.formats.field_path import field_path

    found = browser.shards.rows.row(row)
    return field_path("cls"), browser.shards.tiles.get([found], "", 96, frozenset({"cls"}))[1][0]


class TestFind:
    def test_a_key_a_part_of_a_key_and_a_number(self, browser):
        for text, key in (("set/n000033", "set/n000033"), ("000033", "set/n000033"), ("#33", "set/n000033"), (" #0 ", "set/n000000")):
            found, _ = ask(browser, "find", text=text)
            assert key == browser.shards.rows.row(found["row"]).key

    def test_where_it_shows_depends_on_the_rows_shown(self, browser):
        shown(browser, "cls == 0")

        assert 1 == ask(browser, "find", text="set/n000003")[0]["position"]
        assert ask(browser, "find", text="set/n000004")[0]["position"] is None

    def test_of_records_of_one_key_it_is_the_one_at_its_place(self, tmp_path):
        twins = [tar(tmp_path / f"{name}.tar", records(0, 20)) for name in "ab"]
        with contextlib.closing(Browser(twins, cache=False)) as browser:
            settle(browser)
            first, second = (ask(browser, "find", text="set/n000003", at=at)[0] for at in (3, 23))
            other = ask(browser, "find", text="set/n000003", at=4)[0]

        assert (3, 23) == (first["position"], second["position"])
        assert first == other
        assert first["row"] != second["row"]

    def test_what_is_not_there_is_said_with_how_much_was_looked_at(self, browser):
        assert "No record 'nobody' among 60." == ask(browser, "find", text="nobody")[0]["msg"]

    def test_what_a_page_without_a_kernel_asks_first_is_answered_beforehand(self, shards):
        with contextlib.closing(Browser(shards, cache=False, start="#17")) as browser:
            settle(browser)
            row = browser.session.find("#17")["row"]
            asked = list(browser.likely())

        assert ("find", {"text": "#17", "at": 0}) == asked[1]
        assert ("record", {"row": row, "ext": "", "options": {}}) == asked[2]


class TestRecord:
    def test_a_record_comes_with_the_panel_of_its_picture(self, browser):
        message, buffers = ask(browser, "record", row=row_id(1, 1))

        assert ("set/n000021", "png", "image") == (message["key"], message["ext"], message["panel"]["viewer"])
        assert {"ext": "png", "kind": "image"}.items() <= message["fields"][0].items()
        assert png((21, 80, 120)) == bytes(buffers[0])

    def test_fields_are_chosen_by_name(self, browser):
        message, _ = ask(browser, "record", row=row_id(0, 1), ext="json")

        assert "tree" == message["panel"]["blocks"][0]["type"]

    def test_bytes_come_in_parts(self, browser):
        whole = png((0, 80, 120))
        message, buffers = ask(browser, "part", row=0, ext="png", start=10, length=5)

        assert whole[10:15] == bytes(buffers[0])
        assert len(whole) == message["size"]
        assert b"" == bytes(ask(browser, "part", row=0, ext="png", start=10**9, length=5)[1][0])

    def test_the_example_is_what_tensorflow_would_read(self, browser):
        from tarviz.formats import example

        message, buffers = ask(browser, "example", row=1)

        assert ["__key__", "cls", "json", "png"] == sorted(row[0] for row in message["features"])
        assert [1] == example.decode(buffers[0])["cls"]
        assert message["frame"][0][1] in f"{len(buffers[0]):,} bytes"

    def test_a_class_that_is_no_number_travels_as_bytes(self, tmp_path):
        browser = settle(Browser(tar(tmp_path / "c.tar", [("a", {"cls": b"cat"})]), cache=False))
        message, _ = ask(browser, "example", row=0)
        browser.close()

        assert "bytes_list[1]" == {row[0]: row[1] for row in message["features"]}["cls"]
        assert message["notes"]

    def test_the_tar_header_is_shown_field_by_field(self, browser):
        message, buffers = ask(browser, "header", row=1, ext="cls")
        rows = {row[0]: row[1] for row in message["rows"]}

        assert "set/n000001.cls" == rows["name"]
        assert "ustar" == rows["format"]
        assert "644 (octal)   '0000644'" == rows["mode"]
        assert 512 == len(buffers[0])

    def test_pax_records_and_long_names_are_shown(self, tmp_path):
        browser = settle(Browser(tar(tmp_path / "p.tar", [("d/" * 60 + "ü" * 60, {"txt": b"x"})]), cache=False))
        rows = ask(browser, "header", row=0, ext="txt")[0]["rows"]
        path = tmp_path / "gnu.tar"
        with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as file:
            file.addfile(tarfile.TarInfo("y" * 200 + ".txt"))
        other = settle(Browser(path, cache=False))
        gnu = ask(other, "header", row=0, ext="txt")[0]["rows"]
        browser.close()
        other.close()

        assert ["PAX path", "d/" * 60 + "ü" * 60 + ".txt"] in rows
        assert ["long name", "y" * 200 + ".txt"] in gnu

    def test_the_digest_is_sha256(self, browser):
        import hashlib

        assert hashlib.sha256(png((0, 80, 120))).hexdigest() == ask(browser, "digest", row=0, ext="png")[0]["sha256"]

    def test_python_loads_the_record(self, browser):
        place = {}
        exec(ask(browser, "record", row=row_id(1, 2))[0]["python"], place)

        assert b"1" == bytes(place["record"]["cls"])

    def test_a_row_that_is_not_there_is_an_error_of_the_request(self, browser):
        for name in ("record", "example"):
            assert "IndexError" == ask(browser, name, row=row_id(7, 7))[0]["type"]

    def test_media_are_served_by_row_and_field(self, browser):
        assert browser.media("0/nothing") is None
        assert browser.media("x/png") is None
        assert browser.media(f"{row_id(8, 8)}/png") is None
        media = browser.media("0/png")
        assert png((0, 80, 120))[4:9] == media.read(4, 5)
        assert "application/octet-stream" == media.mime


class TestPython:
    def test_what_is_selected_and_marked_is_known(self, browser, shards):
        heard = []
        browser.changed = lambda: heard.append(browser.selected)
        browser.remember({"selected": row_id(1, 3), "px": 96, "image": "png"})
        ask(browser, "mark", add=[row_id(2, 1), 0])

        assert RecordRef(str(shards[1]), 3, "set/n000023") == browser.selected
        assert ["set/n000000", "set/n000041"] == [ref.key for ref in browser.marked]
        assert [browser.selected] * 2 == heard
        assert "IndexError" == ask(browser, "mark", add=[row_id(9, 9)])[0]["type"]

    def test_the_spec_shows_the_same_again(self, shards):
        browser = settle(Browser(str(shards[0]), where="cls == 1", sort="random", seed=4, label="json.label", px=96, cache=False))
        browser.remember({"selected": row_id(0, 4), "px": 96})
        spec = browser.spec
        again = eval(spec, {"tarviz": type("tarviz", (), {"browse": staticmethod(lambda *a, **k: Browser(*a, **k, cache=False))})})
        settle(again)

        assert "where='cls == 1', sort='random', seed=4, label='json.label', px=96, start='set/n000004'" in spec
        assert browser.query.ids(0, 99) == again.query.ids(0, 99)
        browser.close()
        again.close()

    def test_records_are_those_that_show(self, browser):
        shown(browser, "cls == 2 and not has:json")

        assert ["set/n000014", "set/n000035", "set/n000056"] == [record.key for record in browser.records()]

    def test_secrets_of_a_url_are_not_shown(self):
        store = stores.of(memory_url := stores.URL("memory://bucket/a.tar"))
        with store.create(memory_url) as sink:
            sink.write(bytes(1024))
        browser = Browser("memory://bucket/a.tar", cache=False)
        browser.shards.urls = ["https://me:secret@host/a.tar?X-Amz-Signature=abc"]

        assert "secret" not in browser.spec + browser.title + browser.text()
        assert "abc" not in browser.spec + browser.title + browser.text()
        browser.close()
        assert memory is not None

    def test_wrong_wishes_are_refused_at_once(self, shards):
        for wish in ({"px": 100}, {"where": "cls =="}, {"sort": "colour"}, {"label": "(("}):
            with pytest.raises(UsageError):
                Browser(shards, **wish)


class TestStatic:
    def test_the_contact_sheet_stays_within_its_budget(self, browser):
        picture = browser.picture()

        assert picture.startswith(b"\x89PNG")
        assert len(picture) <= 150_000

    def test_of_a_saved_page_as_many_records_have_tiles_as_its_budget_allows(self, browser):
        message, buffers = browser.still(0)
        each = sum(map(len, buffers)) // 24 + 300

        assert 24 == len(message["rows"]["rows"])
        assert [30, 60] == [len(browser.still(budget)[0]["rows"]["rows"]) for budget in (30 * each, 1 << 30)]

    def test_noise_is_cut_to_fit_and_says_so(self):
        noise = io.BytesIO()
        Image.frombytes("RGB", (160, 160), os.urandom(160 * 160 * 3)).save(noise, "PNG")
        cells = [Cell(noise.getvalue(), "", "noise")] * 24

        assert 0 < len(sheet("title", "foot", cells, budget=40_000)) <= 40_000

    def test_strange_text_is_drawn_as_far_as_a_font_can(self):
        assert sheet("שלום 🎉\x1b[31m\udcff", "", [Cell(b"", "a\nb\x00", "\u202e")])
        assert "·[31m?" == printable("\x1b[31m\udcff")

    def test_the_text_names_shards_fields_and_records(self, browser):
        text = browser.text()

        assert "60 records" in text
        assert "fields: png 60, cls 60, json 51" in text
        assert "set/n000000, set/n000001" in text


@pytest.mark.parametrize("name", ["D00-hostile-payloads", "S13-xss", "S12-shell-hostile-keys"])
def test_one_bad_tile_and_the_rest_goes_on(name):
    path = DATA / "corpora" / "generated" / f"{name}.tar"
    if not path.is_file():
        pytest.skip("the corpus is not here")
    browser = settle(Browser(path, cache=False))
    message, _ = browser.first()
    rows = ask(browser, "fetch", query=0, start=0, stop=100)[0]["rows"]

    assert len(browser.query) == len(rows)
    assert all(row["tile"]["reason"] or row["tile"]["text"] or "buffer" in row["tile"] or not row["fields"] for row in rows)
    assert [row["key"] for row in rows][:3] == [row["key"] for row in message["rows"]["rows"]][:3]
    for row in rows:
        for ext in row["fields"]:
            ask(browser, "record", row=row["id"], ext=ext)
        ask(browser, "header", row=row["id"], ext=row["fields"][0])
        ask(browser, "example", row=row["id"])
    browser.close()
    assert "TARVIZ_CANARY" not in os.environ


def test_requests_from_many_threads_agree(browser):
    found = []

    def work(start):
        for at in range(start, start + 10):
            rows = ask(browser, "fetch", query=0, start=at, stop=at + 6)[0]["rows"]
            found.append([row["key"] for row in rows] == [f"set/n{number:06d}" for number in range(at, at + 6)])

    threads = [threading.Thread(target=work, args=(start,)) for start in range(0, 40, 8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert 50 == len(found)
    assert all(found)


def test_closing_while_it_scans_ends_its_threads(tmp_path):
    path = tar(tmp_path / "l.tar", [(f"k{number:05d}", {"cls": b"1"}) for number in range(3000)])
    browser = Browser(path, cache=False)
    browser.session.search("cls == 1")
    thread = browser.shards.scan._thread
    browser.close()

    wait_until(lambda: thread is None or not thread.is_alive())
