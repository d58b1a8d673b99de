"""Addresses that are no Ray end soon, with a line that says what answers there; Ray itself tries for minutes."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

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
