"""Every remote store under the same faults: one reader is behind them all. F… are the scenarios of the fault list."""

from __future__ import annotations

import gc
import json
import logging
import os
import pickle
import random
import threading
import time
import traceback
from dataclasses import dataclass, replace

import pytest

from tarviz import stores
from tarviz.model.errors import ChangedError, NotFoundError, StoreError
from tarviz.model.types import URL
from tarviz.testing.faults import ALWAYS, Fault, FaultServer
from tarviz.testing.stores import open_files
from tests.servers.clock import FakeClock
from tests.servers.local import google_pool
from tests.stores.random_faults import random_fault
from tests.stores.streams import children, drain

KINDS = ("http", "s3", "gs", "az", "ais", "hf")
DATA = random.Random(3).randbytes(1_500_000)
SECRET = "planted-secret-0123456789"
PLANS = int(os.environ.get("TARVIZ_PLANS", "12"))  # on a shard of 64 MiB: 500 take some minutes for each store
KEY = "cGxhbnRlZC1zZWNyZXQtMDEyMzQ1Njc4OQ=="


@dataclass
class Place:
    """A store and the server behind it."""

    kind: str
    server: FaultServer
    front: FaultServer

    def put(self, data, plan=(), name="a.tar", **version):
        """Serve an object; its URL as a user of this store writes it."""
        folders = {"http": "/", "az": "/account/data/", "ais": "/v1/objects/data/", "gs": "/download/storage/v1/b/data/o/"}
        path = folders.get(self.kind, "/data/") + name + ("?alt=media" if self.kind == "gs" else "")
        if self.kind == "ais" and not version:
            version = {"etag": None, "modified": None, "headers": {"ais-checksum-type": "none", "ais-checksum-value": "v{version}"}}
        url = self.server.put(path, data, plan=list(plan), **version)
        if self.kind == "gs":
            self.server.put(f"/storage/v1/b/data/o/{name}?alt=json", b"", plan=[fault for fault in plan if fault.times == ALWAYS])
        if self.kind in ("ais", "hf"):
            front = path if self.kind == "ais" else f"/datasets/org/name/resolve/main/{name}"
            answers = [Fault(method=method, status=307, headers={"Location": url}, times=ALWAYS) for method in ("GET", "HEAD")]
            self.front.put(front, b"", plan=answers)
        return URL(url if self.kind == "http" else f"{'hf://datasets/org/name' if self.kind == 'hf' else f'{self.kind}://data'}/{name}")

    def store(self, **options):
        return type(stores.of(f"{self.kind}://data/x" if self.kind != "hf" else "hf://datasets/org/name/x"))(**options)

    @property
    def asked(self):
        return [request for request in self.server.requests if request.method == "GET"]


@pytest.fixture(params=KINDS)
def place(request, monkeypatch, tmp_path):
    if request.param == "gs":
        pytest.importorskip("google.auth", reason="identities are google-auth's: pip install 'tarviz[cloud]'")
    with FaultServer() as server, FaultServer() as front:
        for name, value in settings(server, front, tmp_path).items():
            monkeypatch.setenv(name, value)
        yield Place(request.param, server, front)


def settings(server, front, folder):
    """Every store's server and credentials, each with a secret in it."""
    login = google_pool(folder, f"{front.url}/t", SECRET)
    token = {"access_token": SECRET, "expires_in": 3600, "token_type": "Bearer", "issued_token_type": "access_token"}
    for method in ("GET", "POST"):
        front.put("/t", json.dumps(token).encode(), plan=[Fault(method=method)])
    return {
        "AWS_ENDPOINT_URL": server.url,
        "AWS_ACCESS_KEY_ID": "AKID",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_SESSION_TOKEN": SECRET,
        "STORAGE_EMULATOR_HOST": server.url,
        "GOOGLE_APPLICATION_CREDENTIALS": str(login),
        "AZURE_STORAGE_ACCOUNT": "account",
        "AZURE_STORAGE_KEY": KEY,
        "AZURE_STORAGE_ENDPOINT": f"{server.url}/account",
        "AIS_ENDPOINT": front.url,
        "AIS_AUTHN_TOKEN": SECRET,
        "HF_ENDPOINT": front.url,
        "HF_TOKEN": SECRET,
        "TARVIZ_HTTP_HEADERS": json.dumps({server.url: {"Authorization": f"Bearer {SECRET}"}}),
    }


XML = b"<?xml version='1.0'?><Error><Code>SlowDown</Code></Error>"


class TestFaults:
    @pytest.mark.fault("F01", "F02", "F06", "F08", "F12", "F13", "F16", "F17", "F21", "F23", "F24", "F25", "F30", "F44")
    @pytest.mark.parametrize(
        "plan",
        [
            [],  # F01
            [Fault(cut=500_000)],  # F02
            [Fault(cut=500_000, end="reset")],  # F16
            [Fault(cut=500_000, end="stall")],  # F13
            [Fault(chunked=True, cut=500_000)],  # F08
            [Fault(before_headers=True, end="reset"), Fault(before_headers=True, end="close")],  # F17, F44
            [Fault(before_headers=True, end="stall")],  # F12
            [Fault(cut_after=1 << 17, times=ALWAYS)],  # F06
            [Fault(status=503, headers={"Retry-After": "1"}, times=2)],  # F21
            [Fault(status=status) for status in (500, 502, 504, 429)],  # F23
            [Fault(cut=1000), Fault(status=503, resumed=True)],  # F24
            [Fault(status=200, body=XML)],  # F25
            [Fault(cut=1000), Fault(ignore_range=True)],  # F30
        ],
        ids=lambda plan: "+".join(sorted({str(fault.status or fault.end) for fault in plan})) or "none",
    )
    def test_the_bytes_are_the_same(self, place, plan):
        url = place.put(DATA, plan)

        assert DATA == drain(place.store(clock=FakeClock(), stall_timeout=0.2), url)
        assert place.server.sent < len(DATA) * (2.1 if plan and plan[-1].ignore_range else 1.6)

    @pytest.mark.fault("F21")
    def test_retry_after_is_waited(self, place):
        clock = FakeClock()
        drain(place.store(clock=clock), place.put(DATA, [Fault(status=503, headers={"Retry-After": "7"}, times=2)]))

        assert [7.0, 7.0] == clock.waits

    @pytest.mark.fault("F05")
    def test_no_progress_is_given_up(self, place):
        url = place.put(DATA, [Fault(cut=1000, times=ALWAYS)])

        with pytest.raises(StoreError, match="without progress") as caught:
            drain(place.store(clock=FakeClock()), url)
        assert ("E_NETWORK", url) == (caught.value.code, caught.value.shard)

    @pytest.mark.fault("F26")
    def test_what_is_not_there_is_said_at_once(self, place):
        clock = FakeClock()
        url = URL(place.put(DATA).replace("a.tar", "none.tar"))

        for ask in (place.store(clock=clock).open, place.store(clock=clock).stat):
            with pytest.raises(NotFoundError) as caught:
                ask(url)
            assert url == caught.value.shard
        assert [] == clock.waits

    @pytest.mark.parametrize("status", [401, 403])
    @pytest.mark.fault("F27", "F28")
    def test_a_refusal_is_said_at_once(self, place, status):
        clock = FakeClock()
        url = place.put(DATA, [Fault(method=method, status=status, times=ALWAYS) for method in ("GET", "HEAD")])

        for ask in (place.store(clock=clock).open, place.store(clock=clock).stat):
            with pytest.raises(StoreError, match="refuses access") as caught:
                ask(url)
            assert ("E_AUTH", True) == (caught.value.code, bool(caught.value.hint))
        assert [] == clock.waits

    @pytest.mark.fault("F27", "F28")
    @pytest.mark.parametrize("place", ["s3", "gs"], indirect=True)
    def test_credentials_that_end_midway_are_renewed_once(self, place):
        ended = {"s3": Fault(status=403, body=b"<Error><Code>ExpiredToken</Code></Error>", resumed=True)}
        fault = ended.get(place.kind, Fault(status=401, resumed=True))
        store = place.store(clock=FakeClock())

        assert DATA == drain(store, place.put(DATA, [Fault(cut=500_000), fault]))
        with pytest.raises(StoreError, match="refuses access"):
            drain(store, place.put(DATA, [Fault(cut=500_000), replace(fault, times=2)]))

    @pytest.mark.fault("F33")
    def test_a_replaced_object_is_never_spliced(self, place):
        for cut in (1, 1000, 700_000, len(DATA) - 1):
            url = place.put(DATA, [Fault(cut=cut, then=DATA[::-1])])

            with pytest.raises(ChangedError, match=r"before, .* now"):
                drain(place.store(clock=FakeClock()), url)

    def test_ranges_are_exact_and_one_request(self, place):
        url = place.put(DATA)
        store = place.store()

        assert DATA[1000:5000] == store.read(url, 1000, 4000)
        assert 1 == len(place.asked)
        assert DATA[-10:] == store.read(url, len(DATA) - 10, 50)

    def test_eight_ranges_are_in_flight(self, place):
        store, found = place.store(), {}
        url = place.put(DATA)
        threads = [threading.Thread(target=lambda at=at: found.update({at: store.read(url, at, 1000)})) for at in range(0, 80_000, 10_000)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert {at: DATA[at : at + 1000] for at in range(0, 80_000, 10_000)} == found

    @pytest.mark.fault("F52")
    def test_a_child_goes_on_with_a_connection_of_its_own(self, place):
        store, url = place.store(), place.put(DATA)
        with store.open(url) as stream:
            stream.readinto(memoryview(bytearray(1000)))
            child = os.fork()
            if child == 0:
                os._exit(0 if drain(store, url) == DATA else 1)
            assert 0 == os.waitpid(child, 0)[1]
            rest = bytearray(len(DATA))
            assert len(DATA) - stream.offset == stores.fill(stream, memoryview(rest))

    def test_it_pickles_and_is_equal(self, place):
        store = place.store(stall_timeout=3.0)

        assert store == pickle.loads(pickle.dumps(store))
        assert store != place.store()


class TestLeaks:
    def breaks(self, place, count):
        store, url = place.store(stall_timeout=60), place.put(DATA)
        for number in range(count):
            with store.open(url) as stream:
                for _ in range(number % 3):
                    stream.readinto(memoryview(bytearray(1000)))

    @pytest.mark.parametrize("count", [40, pytest.param(1000, marks=pytest.mark.slow)])
    def test_open_and_break_leaves_nothing(self, place, count):
        self.breaks(place, 10)
        gc.collect()
        files, threads, processes = self.held(place)
        self.breaks(place, count)
        later = self.held(place)

        assert (later[0] <= files, later[1] - threads, later[2]) == (True, set(), processes)

    def held(self, place):
        """Descriptors, threads and children, but for the servers' and both ends of the connections that are kept to them."""
        seen = []
        while len(seen) < 5 or len(set(map(str, seen[-5:]))) > 1:  # servers end some time after their connections
            time.sleep(0.02)
            ends = 2 * (place.server.connections + place.front.connections)
            threads = {thread for thread in threading.enumerate() if thread.name != "FaultServer"}
            seen.append((open_files() - ends, threads, children()))
        return seen[-1]


class TestSecrets:
    def test_nothing_that_is_printed_holds_one(self, place, caplog):
        caplog.set_level(logging.DEBUG)
        store = place.store(clock=FakeClock())
        url = place.put(DATA, [Fault(cut=1000), Fault(status=503), Fault(status=403, body=SECRET.encode())])
        with pytest.raises(StoreError) as caught:
            drain(store, url)
        shown = [repr(store), repr(store.wire), repr(store.wire.access), caplog.text, str(caught.value), repr(caught.value)]
        shown += [str(caught.value.to_dict()), "".join(traceback.format_exception(caught.value))]

        assert caplog.records
        assert [] == [text for text in shown if SECRET in text or KEY in text]


class TestPlans:
    """P14, P15: random faults at random places."""

    @pytest.mark.parametrize("seed", range(2))
    def test_some_plans(self, place, seed):
        self.run(place, random.Random(seed), 8)

    @pytest.mark.slow
    @pytest.mark.timeout(3600)
    def test_five_hundred_plans(self, place):
        self.run(place, random.Random(100), 500)

    @pytest.mark.slow
    @pytest.mark.timeout(3600)
    def test_plans_on_a_large_shard(self, place):
        self.run(place, random.Random(200), PLANS, random.Random(2).randbytes(1 << 20) * 64)

    def run(self, place, chance, count, data=DATA + DATA[::-1]):
        asked, sent, faults = 0, 0, 0
        for _ in range(count):
            plan = [remote_fault(chance, len(data)) for _ in range(chance.randrange(1, 9))]
            version = chance.choice([{}, {}, {"etag": 'W/"x"'}, {"etag": None}])
            url = place.put(data, plan, **version)
            before = place.server.sent
            store = place.store(clock=FakeClock(), stall_timeout=0.1)

            assert len(data) == same(store, url, data, chance.choice([4096, 1 << 18, 1 << 21])), plan
            if not any(fault.ignore_range for fault in plan):
                assert place.server.sent - before <= len(data) * 1.01 + len(plan) * (1 << 22), plan
                asked, sent, faults = asked + len(data), sent + place.server.sent - before, faults + len(plan)
        more = sent / max(asked, 1) - 1
        print(f"{place.kind}: {count} plans; {faults} faults where ranges are obeyed, {more:.2%} more bytes than there are")

    @pytest.mark.slow
    def test_two_hundred_replacements(self, place):
        chance = random.Random(7)
        for _ in range(200):
            new = chance.randbytes(1) + DATA[1:]
            version = chance.choice([{}, {"etag": None}])
            url = place.put(DATA, [Fault(cut=chance.randrange(1, len(DATA)), then=new, ignore_range=chance.random() < 0.3)], **version)
            try:
                found = drain(place.store(clock=FakeClock()), url)
            except ChangedError as error:
                assert " before, " in error.message
                continue
            assert found in (DATA, new)


def same(store, url, data, size):
    """How many bytes a stream gives, each of them the one of `data` at its place."""
    view = memoryview(data)
    with store.open(url) as stream:
        done, buffer = 0, memoryview(bytearray(size))
        while count := stream.readinto(buffer):
            assert view[done : done + count] == buffer[:count], done
            done += count
    return done


def remote_fault(chance, size):
    """As `random_fault` draws it; an answer that stalls has its length, so that it can be told from a whole one."""
    fault = random_fault(chance, size, body=XML, stalls=0.2)
    return replace(fault, chunked=False) if fault.end == "stall" else fault
