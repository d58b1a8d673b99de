"""Addresses that are no Ray end soon, with a line that says what answers there; Ray itself tries for minutes."""

from __future__ import annotations

import os
import pickle
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

import tarviz
from tarviz.engines.ray import joining
from tarviz.model.errors import UsageError
from tarviz.testing.faults import FaultServer


class TestReach:
    def test_a_web_server_is_none(self):
        with FaultServer() as server:
            address = server.url.removeprefix("http://")

            with pytest.raises(UsageError, match=r"another server answers there, which speaks no gRPC.*8265 is its dashboard's"):
                joining.reach(address)

    def test_what_says_nothing_is_none(self, monkeypatch):
        monkeypatch.setattr(joining, "_ANSWER", 0.2)
        with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(UsageError, match="what listens there says nothing"):
            joining.reach(f"ray://127.0.0.1:{silent.getsockname()[1]}")

    def test_a_port_where_nobody_listens_is_none(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]

        with pytest.raises(UsageError, match="there is no Ray at"):
            joining.reach(f"127.0.0.1:{port}")

    def test_a_server_of_grpc_may_be_one(self):
        grpc = pytest.importorskip("grpc", reason="Ray speaks gRPC: pip install grpcio")
        with ThreadPoolExecutor(1) as pool:
            server = grpc.server(pool)
            port = server.add_insecure_port("127.0.0.1:0")
            server.start()
            try:
                joining.reach(f"127.0.0.1:{port}")
                joining.reach(f"ray://127.0.0.1:{port}")
            finally:
                server.stop(None).wait()

    @pytest.mark.parametrize("address", [None, "auto", "local", "host"])
    def test_what_names_no_port_is_ray_s_to_find(self, address):
        joining.reach(address)


class TestWhatIsSent:
    def test_options_go_along_but_those_of_a_machine(self, monkeypatch):
        for name in ("AIS_ENDPOINT", "TARVIZ_BLOCK_SIZE", "TARVIZ_WORKERS"):
            monkeypatch.delenv(name, raising=False)
        before = joining.home()
        monkeypatch.setenv("AIS_ENDPOINT", "http://ais")
        monkeypatch.setenv("TARVIZ_BLOCK_SIZE", "8192")
        monkeypatch.setenv("TARVIZ_WORKERS", "3")
        home = joining.home()

        assert (os.getcwd(), tarviz.__version__) == (home.folder, home.version)
        assert {"AIS_ENDPOINT": "http://ais", "TARVIZ_BLOCK_SIZE": "8192"} == dict(home.settings.items() - before.settings.items())
        assert not {"TARVIZ_CACHE_DIR", "TARVIZ_WORKERS", "TARVIZ_PROGRESS"} & home.settings.keys()

    def test_functions_travel_and_what_cannot_is_refused(self):
        ray = SimpleNamespace(cloudpickle=pytest.importorskip("cloudpickle", reason="pip install cloudpickle"))

        assert 7 == pickle.loads(joining.pack(ray, lambda: 7))()
        with pytest.raises(UsageError, match="cannot travel to the workers: cannot pickle"):
            joining.pack(ray, threading.Lock())


class TestWords:
    def test_a_worker_that_was_lost(self):
        error = joining.loss(OSError(f"out\n of {'o' * 400}"), 3)

        assert f"the worker was lost 3 times: out of {'o' * 293}." == error.message
        assert ("E_WORKER", "out\n of") == (error.code, str(error.__cause__)[:7])

    @pytest.mark.parametrize("wrapped", [True, False])
    def test_a_worker_that_cannot_begin(self, wrapped):
        cause = RuntimeError("no\ntarviz there")
        error = joining.refusal(SimpleNamespace(cause=cause) if wrapped else cause)

        assert "a worker of the cluster cannot run tasks: no tarviz there." == error.message
        assert ("E_WORKER", "It needs the same tarviz installed.") == (error.code, error.hint)
