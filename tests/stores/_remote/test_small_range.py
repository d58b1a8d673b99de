"""Small ranges by one short exchange: the same bytes, the same promises, and the other reader where anything is out of the ordinary."""

from __future__ import annotations

import gc
import os
import random
import threading
import traceback
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarviz.model.errors import ChangedError, NotFoundError, StoreError, UsageError
from tarviz.model.types import URL
from tarviz.stores._remote import small_range
from tarviz.stores.http import HttpStore
from tarviz.testing.faults import ALWAYS, Fault, FaultServer
from tarviz.testing.stores import open_files
from tests.conftest import each_case, wait_until
from tests.servers.clock import FakeClock
from tests.stores.random_faults import random_fault

DATA = random.Random(11).randbytes(700_000)
XML = b"<Error><Code>SlowDown</Code></Error>"


@pytest.fixture
def store(clock):
    return HttpStore(clock=clock, stall_timeout=0.3)


def asked(server):
    return [request.headers["range"].removeprefix("bytes=") for request in server.requests]


class TestExchange:
    def test_ranges_take_one_request_each_and_one_connection_in_all(self, server, store):
        url = server.put("/a.tar", DATA)
        for at, count in ((0, 1), (5, 70_000), (300_000, 2000), (len(DATA) - 9, 9)):
            assert DATA[at : at + count] == store.read(url, at, count)

        assert ["0-0", "5-70004", "300000-301999", "699991-699999"] == asked(server)
        assert 1 == server.most

    def test_what_goes_past_the_end_is_what_there_is(self, server, store):
        url = server.put("/a.tar", DATA)

        assert DATA[-10:] == store.read(url, len(DATA) - 10, 5000)
        assert b"" == store.read(url, len(DATA), 5000) == store.read(url, len(DATA) + 7, 5000)

    def test_it_asks_in_the_words_of_the_other_reader(self, server, store, monkeypatch):
        monkeypatch.setenv("TARVIZ_HTTP_HEADERS", f'{{"{server.url}": {{"X-Key": "k"}}}}')
        url = URL(server.put("/a b.tar", DATA).replace("http://", "http://me:p%40w@").replace(" ", "%20") + "?v=1&w=%2F")
        server.put("/a%20b.tar", DATA)
        etag = store.stat(url).etag
        store.read(url, 10, 20, etag=etag)
        with store.open(url, offset=10, etag=etag) as stream:
            stream.readinto(memoryview(bytearray(5)))
        head, small, stream = server.requests

        assert small.path == stream.path == head.path == "/a%20b.tar?v=1&w=%2F"
        assert {**stream.headers, "range": "bytes=10-29"} == small.headers
        assert ("k", "Basic bWU6cEB3", etag) == tuple(small.headers[name] for name in ("x-key", "authorization", "if-match"))

    def test_a_change_of_the_environment_is_seen_at_once(self, server, store, monkeypatch):
        url = server.put("/a.tar", DATA)
        for key in ("one", "two"):
            monkeypatch.setenv("TARVIZ_HTTP_HEADERS", f'{{"{server.url}": {{"X-Key": "{key}"}}}}')
            store.read(url, 0, 9)

        assert ["one", "two"] == [request.headers["x-key"] for request in server.requests]

    @pytest.mark.fault("F53")
    def test_a_proxy_is_used(self, server, store, monkeypatch):
        monkeypatch.setenv("http_proxy", server.url)
        server.put("http://data.invalid/a.tar", DATA)

        assert DATA[5:9] == store.read(URL("http://data.invalid/a.tar"), 5, 4)

    def test_threads_share_it(self, server, store):
        url, found = server.put("/a.tar", DATA), {}

        def read(first):
            for at in range(first, len(DATA) - 1000, 30_000):
                found[at] = store.read(url, at, 1000) == DATA[at : at + 1000]

        threads = [threading.Thread(target=read, args=(first,)) for first in range(0, 8000, 1000)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert 8 * 23 <= len(found)
        assert {True} == set(found.values())
        assert server.most <= 8

    @pytest.mark.fault("F52")
    def test_a_child_has_connections_of_its_own(self, server, store):
        url = server.put("/a.tar", DATA)
        store.read(url, 0, 10)
        child = os.fork()
        if child == 0:
            os._exit(0 if store.read(url, 20, 1000) == DATA[20:1020] else 1)

        assert 0 == os.waitpid(child, 0)[1]
        assert DATA[7:20] == store.read(url, 7, 13)
        assert 2 == server.most

    def test_nothing_is_left_when_the_store_goes(self, server):
        url, before = server.put("/a.tar", DATA), open_files()
        store = HttpStore()
        store.read(url, 0, 10)
        assert before < open_files()
        del store
        gc.collect()

        wait_until(lambda: server.connections == 0 and open_files() <= before)


class TestFaults:
    @pytest.mark.parametrize("end", ["close", "reset", "stall"])
    @pytest.mark.fault("F42")
    def test_what_came_before_a_cut_is_not_fetched_again(self, server, store, end):
        url = server.put("/a.tar", DATA, plan=[Fault(cut_after=100_000, end=end)])

        assert DATA[5000:305_000] == store.read(url, 5000, 300_000)
        assert "5000-304999" == asked(server)[0]
        assert all(request.headers.get("if-match") for request in server.requests[1:])
        if end == "close":
            assert ["5000-304999", "105000-304999"] == asked(server)

    def test_what_has_no_version_begins_again(self, server, store):
        url = server.put("/a.tar", DATA, plan=[Fault(cut_after=1000)], etag=None, modified=None)

        assert DATA[5000:9000] == store.read(url, 5000, 4000)
        assert ["5000-8999", "5000-8999"] == asked(server)

    @pytest.mark.parametrize("pin", [False, True])
    @pytest.mark.fault("F33")
    def test_two_versions_are_never_mixed(self, server, store, pin):
        url = server.put("/a.tar", DATA, plan=[Fault(cut_after=1000, then=DATA[::-1])], etag='"v1"')
        etag = '"v1"' if pin else None

        with pytest.raises(ChangedError, match=r'"v1".* now'):
            store.read(url, 5000, 4000, etag=etag)

    def test_another_version_than_the_one_asked_for_is_refused(self, server, store):
        for version in ({"etag": '"v2"'}, {"etag": 'W/"v2"'}, {"etag": None}):
            url = server.put("/a.tar", DATA, **version)
            with pytest.raises(ChangedError):
                store.read(url, 5000, 4000, etag='"v1"')

    def test_another_size_than_the_one_known_is_another_version(self, server, store):
        url = server.put("/a.tar", DATA, etag=None)
        etag = store.stat(url).etag
        modified = etag.removeprefix("modified ").rpartition(";")[0]
        server.put("/a.tar", DATA + b"more", etag=None, modified=modified)

        with pytest.raises(ChangedError):
            store.read(url, 0, 10, etag=etag)

    @each_case(
        ("fault", "code"),
        [
            (Fault(headers={"Content-Range": "bytes 0-99/700000"}, times=ALWAYS), "E_RANGE"),
            (Fault(headers={"Content-Range": None}, times=ALWAYS), "E_RANGE"),
            (Fault(headers={"Content-Range": "bytes 10-3000/700000"}, times=ALWAYS), "E_RANGE"),
            (Fault(lie=-5, times=ALWAYS), "E_LENGTH"),
            (Fault(lie=5, times=ALWAYS), "E_LENGTH"),
            (Fault(status=403, times=ALWAYS), "E_AUTH"),
        ],
    )
    @pytest.mark.fault("F10", "F11")
    def test_lies_and_refusals_are_errors_in_the_words_of_the_other_reader(self, server, store, fault, code):
        url = server.put("/a.tar", DATA, plan=[fault])

        with pytest.raises(StoreError) as caught:
            store.read(url, 10, 2000)
        assert (code, url) == (caught.value.code, caught.value.shard)

    @pytest.mark.fault("F26")
    def test_what_is_missing_is_named(self, server, store, clock):
        with pytest.raises(NotFoundError) as caught:
            store.read(URL(f"{server.url}/none"), 0, 10)
        assert (f"{server.url}/none", []) == (caught.value.shard, clock.waits)

    @pytest.mark.fault("F21")
    def test_patience_is_had(self, server, store, clock):
        url = server.put("/a.tar", DATA, plan=[Fault(status=503, headers={"Retry-After": "7"}, times=2)])

        assert DATA[10:90] == store.read(url, 10, 80)
        assert [7.0, 7.0] == clock.waits

    @pytest.mark.parametrize("fresh", [0.0, 60.0])
    @pytest.mark.fault("F44", "F46")
    def test_a_connection_that_was_closed_meanwhile_is_not_noticed(self, server, store, clock, monkeypatch, fresh):
        monkeypatch.setattr(small_range, "_FRESH", fresh)
        url = server.put("/a.tar", DATA)
        store.read(url, 0, 10)
        for lines in store._ranges._kept.values():
            for line, _ in lines:
                line.shutdown(2)

        assert DATA[5:50] == store.read(url, 5, 45)
        assert [] == clock.waits

    @pytest.mark.parametrize("fault", [Fault(ignore_range=True, times=ALWAYS), Fault(chunked=True, times=ALWAYS)])
    @pytest.mark.fault("F30")
    def test_a_server_that_answers_otherwise_is_left_to_the_other_reader(self, server, store, fault):
        url = server.put("/a.tar", DATA, plan=[fault])
        for at in range(0, 4000, 1000):
            assert DATA[at : at + 100] == store.read(url, at, 100)

        assert len(server.requests) <= (5 if fault.ignore_range else 8)

    @pytest.mark.fault("F39")
    def test_a_redirect_is_followed(self, server, store):
        target = server.put("/b.tar", DATA)
        url = server.put("/a.tar", b"", plan=[Fault(status=307, headers={"Location": target}, times=ALWAYS)])
        for at in range(0, 4000, 1000):
            assert DATA[at : at + 100] == store.read(url, at, 100)

        assert ["/a.tar", "/b.tar"] * 4 == [request.path for request in server.requests]
        assert 1 == server.most

    @pytest.mark.parametrize(("body", "chunked", "taken"), [(b"moved", False, 1), (b"moved", True, 2), (bytes(70_000), False, 2)])
    def test_a_redirect_whose_body_is_long_or_has_no_length_ends_its_connection(self, server, store, body, chunked, taken):
        target = server.put("/b.tar", DATA)
        moved = Fault(status=307, headers={"Location": target}, body=body, chunked=chunked, times=ALWAYS)

        assert DATA[5:50] == store.read(server.put("/a.tar", b"", plan=[moved]), 5, 45)
        assert (["/a.tar", "/b.tar"], taken) == ([request.path for request in server.requests], server.taken)

    def test_names_and_headers_that_break_the_line_are_refused(self, server, store, monkeypatch):
        monkeypatch.setenv("TARVIZ_HTTP_HEADERS", f'{{"{server.url}": {{"X-Key": "planted\\r\\nX-Other: b"}}}}')
        with pytest.raises(UsageError, match="cannot be sent") as caught:
            store.read(server.put("/a.tar", DATA), 0, 10)

        assert [] == server.requests
        assert "planted" not in "".join(traceback.format_exception(caught.value))

    def test_a_bare_end_of_line_is_no_line_of_its_own(self):
        assert b"A: b\r\nC: d\r\n" == small_range._join_lines(["A: b", "C: d"])
        assert [None] * 3 == [small_range._join_lines([f"A: b{end}C: d", "E: f"]) for end in ("\n", "\r", "\r\n")]

    def test_a_body_in_chunks_is_not_taken_by_its_length(self, server, store):
        """Both headers at once is how one answer is made to look like two (RFC 9112 §6.3)."""
        url = server.put("/a.tar", DATA, plan=[Fault(headers={"Transfer-Encoding": "chunked"}, times=ALWAYS)])
        with pytest.raises(StoreError):
            store.read(url, 0, 1000)

    @pytest.mark.parametrize("end", ["close", "stall"])
    def test_a_socket_whose_time_python_keeps_does_as_well(self, server, store, monkeypatch, end):
        monkeypatch.setattr(small_range.sys, "platform", "win32")
        url = server.put("/a.tar", DATA, plan=[Fault(cut_after=100_000, end=end)])

        assert DATA[5000:305_000] == store.read(url, 5000, 300_000) == store.read(url, 5000, 300_000)

    def test_large_ranges_are_the_other_readers(self, server, store, monkeypatch):
        monkeypatch.setattr(small_range.SmallRanges, "read", lambda *_: pytest.fail("a large one"))
        data = bytes(2 << 20)

        assert data[1:] == store.read(server.put("/b.tar", data), 1, 2 << 20)

    @pytest.mark.parametrize("place", ["ftp://127.0.0.1/a.tar", "http://[", ""])
    @pytest.mark.fault("F39")
    def test_a_redirect_to_nowhere_is_said_by_the_other_reader(self, server, store, place):
        url = server.put("/a.tar", b"", plan=[Fault(status=307, headers={"Location": place}, times=ALWAYS)])

        with pytest.raises(StoreError, match="redirects to" if place else "answers 307"):
            store.read(url, 0, 10)
        assert 2 == len(server.requests)

    @pytest.mark.fault("F39")
    def test_redirects_in_a_circle_end(self, server, store):
        url = server.put("/a.tar", b"", plan=[Fault(status=302, headers={"Location": f"{server.url}/a.tar"}, times=ALWAYS)])

        with pytest.raises(StoreError, match="more than 5 times"):
            store.read(url, 0, 10)

    @pytest.mark.parametrize("seed", range(3))
    def test_random_faults(self, server, seed):
        chance = random.Random(seed)
        for _ in range(12):
            plan = [random_fault(chance, 200_000, body=XML, stalls=0.1) for _ in range(4)]
            version = chance.choice([{}, {"etag": 'W/"x"'}, {"etag": None}, {"etag": None, "modified": None}])
            url = server.put("/a.tar", DATA[:200_000], plan=plan, **version)
            store = HttpStore(clock=FakeClock(), stall_timeout=0.1)
            for _ in range(4):
                at, count = chance.randrange(200_000), chance.randrange(1, 60_000)
                assert DATA[at : min(at + count, 200_000)] == store.read(url, at, count), plan


LINE = st.tuples(st.sampled_from(["Date", "Content-Length", "content-range", "ETag", "x-date", "Via"]), st.text("a5: \t", max_size=5))


@given(st.lists(LINE, max_size=8))
def test_headers_are_what_they_are_in_any_order_and_number(lines):
    head = "\r\n".join(["HTTP/1.1 206 OK", *(f"{name}:{value}" for name, value in lines)])
    told, own = small_range._read_head(head.encode())
    expected = {}
    for name, value in lines:
        expected.setdefault(name.lower(), []).append(value.strip())

    assert "HTTP/1.1 206 OK" == told.status
    assert {name: ", ".join(values) for name, values in expected.items()} == {
        **{name.lower(): value for name, value in told.headers.itermerged()},
        **own,
    }
    assert {"date", "content-length", "content-range"} & set(expected) == set(own)


class TestLed:
    """Where a redirect led is asked at once for the next ranges of that version."""

    @pytest.fixture
    def other(self):
        with FaultServer() as other:
            yield other

    def lead(self, server, target):
        answers = [Fault(method=method, status=302, headers={"Location": target}, times=ALWAYS) for method in ("GET", "HEAD")]
        return server.put("/a.tar", b"", plan=answers)

    def test_ranges_of_a_version_ask_the_origin_once(self, server, other, store):
        url = self.lead(server, other.put("/b.tar", DATA))
        etag = store.stat(url).etag
        server.requests.clear()
        for at in range(0, 9000, 1000):
            assert DATA[at : at + 500] == store.read(url, at, 500, etag=etag)

        assert (1, 1 + 9) == (len(server.requests), len(other.requests))
        assert 2 == other.taken  # the other reader's, for `stat`, and one for all ranges

    def test_what_may_be_any_version_asks_the_origin_each_time(self, server, other, store):
        url = self.lead(server, other.put("/b.tar", DATA))
        assert DATA[:50] == store.read(url, 0, 50)
        self.lead(server, other.put("/c.tar", DATA[::-1]))

        assert DATA[::-1][:50] == store.read(url, 0, 50)

    @pytest.mark.parametrize(
        "fault",
        [
            Fault(status=403),
            Fault(status=404),
            Fault(status=410),
            Fault(status=503, headers={"Retry-After": "60"}),
            Fault(before_headers=True, end="reset"),
            Fault(before_headers=True, end="stall"),
            Fault(headers={"Content-Range": None}),
        ],
        ids=lambda fault: str(fault.status or fault.end),
    )
    def test_a_place_that_refuses_is_forgotten_and_the_origin_asked_again(self, server, other, store, clock, fault):
        """An address that was signed for an hour, for one, or a target that has handed the object on."""
        url = self.lead(server, other.put("/b.tar", DATA, etag='"v1"'))
        read = [store.read(url, at, 50, etag='"v1"') for at in (0, 100)]
        other.put("/b.tar", DATA, etag='"v1"', plan=[replace(fault, times=ALWAYS)])
        self.lead(server, other.put("/c.tar", DATA, etag='"v1"'))
        read += [store.read(url, at, 50, etag='"v1"') for at in (200, 300)]

        assert [DATA[at : at + 50] for at in (0, 100, 200, 300)] == read
        assert (2, []) == (len(server.requests), clock.waits)

    def test_a_cut_goes_on_by_the_origin(self, server, other, store):
        url = self.lead(server, other.put("/b.tar", DATA, etag='"v1"'))
        store.read(url, 0, 50, etag='"v1"')
        other.put("/b.tar", DATA, etag='"v1"', plan=[Fault(cut_after=1000)])

        assert DATA[5000:9000] == store.read(url, 5000, 4000, etag='"v1"')
        assert "6000-8999" == asked(other)[-1]

    def test_another_version_there_is_refused(self, server, other, store):
        url = self.lead(server, other.put("/b.tar", DATA, etag='"v1"'))
        store.read(url, 0, 50, etag='"v1"')
        other.put("/b.tar", DATA[::-1], etag='"v2"')

        with pytest.raises(ChangedError, match='"v1" before, ETag "v2" now'):
            store.read(url, 0, 50, etag='"v1"')

    def test_credentials_stay_with_the_origin(self, server, other, store, monkeypatch):
        monkeypatch.setenv("TARVIZ_HTTP_HEADERS", f'{{"{server.url}": {{"X-Key": "secret"}}}}')
        url = self.lead(server, other.put("/b.tar", DATA, etag='"v1"'))
        for at in (0, 100):
            store.read(url, at, 50, etag='"v1"')

        assert "secret" == server.requests[0].headers["x-key"]
        assert [] == [request for request in other.requests if "secret" in str(request.headers)]

    def test_it_is_trusted_for_some_minutes(self, server, other, store, monkeypatch):
        url = self.lead(server, other.put("/b.tar", DATA, etag='"v1"'))
        monkeypatch.setattr(small_range, "_LED", -1.0)
        for at in (0, 100):
            store.read(url, at, 50, etag='"v1"')

        assert 2 == len(server.requests)

    def test_where_an_answer_failed_nothing_is_remembered(self, server, other, store):
        target = other.put("/b.tar", DATA, etag='"v1"', plan=[Fault(headers={"Content-Range": None})])
        url = self.lead(server, target)
        read = [store.read(url, at, 50, etag='"v1"') for at in (0, 100)]

        assert [DATA[:50], DATA[100:150]] == read
        assert 3 == len(server.requests)  # twice for the first: the other reader went the way again

    def test_no_more_than_some_are_remembered(self, server, other, store, monkeypatch):
        monkeypatch.setattr(small_range, "_MOST", 3)
        target = other.put("/b.tar", DATA, etag='"v1"')
        moved = Fault(status=302, headers={"Location": target}, times=ALWAYS)
        for number in range(10):
            store.read(server.put(f"/{number}.tar", b"", plan=[moved]), 0, 50, etag='"v1"')

        assert 1 <= len(store._ranges._ways) <= 3


class TestLines:
    """Which connections wait for the next range."""

    @pytest.mark.parametrize(
        ("fault", "taken"),
        [
            (Fault(), 1),
            (Fault(headers={"Connection": "Close"}), 2),
            (Fault(cut_after=100, end="stall"), 3),
            (Fault(status=500), 3),
        ],
        ids=["whole", "closed by the server", "cut", "refused"],
    )
    def test_only_one_whose_answer_was_whole_does(self, server, store, fault, taken):
        url = server.put("/a.tar", DATA, plan=[fault])

        assert [DATA[:2000], DATA[5000:5100]] == [store.read(url, at, count) for at, count in ((0, 2000), (5000, 100))]
        assert taken == server.taken

    def test_no_more_than_thirty_two_do(self, server, store, monkeypatch):
        monkeypatch.setattr(small_range, "_KEPT", 2)
        url, ready = server.put("/a.tar", DATA, plan=[Fault(delay=0.2, times=4)]), threading.Barrier(4)
        threads = [threading.Thread(target=lambda: (ready.wait(), store.read(url, 0, 10))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert 4 == server.taken
        assert [2] == [len(lines) for lines in store._ranges._kept.values()]


def test_what_proves_who_asks_is_not_shown(server, store, monkeypatch):
    monkeypatch.setenv("TARVIZ_HTTP_HEADERS", f'{{"{server.url}": {{"X-Key": "planted"}}}}')
    target = server.put("/b.tar", DATA)
    moved = [Fault(status=307, headers={"Location": f"{target}?sig=planted"}, times=ALWAYS)]
    url = URL(server.put("/a.tar", DATA, plan=moved).replace("http://", "http://me:planted@") + "?sig=planted")

    assert DATA[:10] == store.read(url, 0, 10, etag=None)
    assert store._ranges._ways
    shown = "".join(map(repr, store._ranges._ways.values()))
    head, _ = small_range._read_head(b"HTTP/1.1 307 Moved\r\nLocation: http://h/?sig=planted")
    assert "planted" not in shown + repr(head) + repr(store.wire)
