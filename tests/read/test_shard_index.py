"""Indexes of shards that lie far away: by the fewest bytes."""

from __future__ import annotations

import pytest

import tarviz
from tarviz.samples import write_shard
from tarviz.testing.faults import FaultServer


class TestFromAfar:
    @pytest.mark.parametrize(("size", "whole"), [(3_000_000, False), (10_000, True)])
    def test_only_large_members_have_their_headers_read_alone(self, tmp_path, size, whole):
        write_shard(tmp_path / "a.tar", [(f"{number}", {"bin": bytes(size)}) for number in range(6)])
        with FaultServer() as server:
            url = server.put("/a.tar", tmp_path / "a.tar")
            index = tarviz.index(url, cache=False)

            assert 6 == len(index)
            assert whole == (server.sent > 0.5 * 6 * size)
            assert list(index.keys()) == list(tarviz.index(tmp_path / "a.tar", cache=False).keys())
