"""The readers of open_clip, diffusers, muse, timm, DALLE2, img2dataset, LAVIS and HaMeR, as they are but for the import of webdataset.

Each runs over the same shards with the dialect, with webdataset 0.2.86, which most of them pin, and with 1.0.2; what it gave is compared.
`make test-peers` fetches their files.
"""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.dialects.webdataset.beside import picture, same, tar
from tests.dialects.webdataset.peers import PEERS, PLACE, right

ROOT = Path(__file__).parents[3]
IMPORT = re.compile(r"^(\s*)(from|import) webdataset\b", re.MULTILINE)
# Loops written for 0.2 stop at the mark that 1.x sets at the end of a shard; the dialect's is one that loops of both pass over.
STOPS_IN_1 = {("open_clip", "training"), ("open_clip", "resampled by weight, rank 1 of 3"), ("diffusers", "training (counted)")}
# Pickles run what they say: the dialect loads those that are named (docs/dialects/webdataset.md).
REFUSED = {("HaMeR", "training, annotations pickled"): "pyd"}

pytestmark = [pytest.mark.programs, pytest.mark.torch, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shards")
    for shard in range(6):
        numbers = range(shard * 10, shard * 10 + 10)
        files: list[tuple[str, bytes]] = []
        hands: list[tuple[str, bytes]] = []
        for n in numbers:
            about = {"original_width": 600, "original_height": 600, "pwatermark": 0.1, "caption": f"no {n}"}
            fields = {
                "cls": b"%d" % n,
                "img_emb": b"%d" % n,
                "jpg": picture(n, "JPEG"),
                "json": json.dumps(about).encode(),
                "txt": b"no %d" % n,
            }
            files += [(f"{n:09d}.{ext}", data) for ext, data in fields.items()]
            found = [{"n": n, "extra_info": {}, "keypoints_2d": np.ones((21, 3))}]
            hands += [(f"{n:09d}.data.pyd", pickle.dumps(found)), (f"{n:09d}.jpg", picture(n, "JPEG"))]
        tar(folder / f"s-{shard}.tar", files)
        tar(folder / f"hands-{shard}.tar", hands)
    return folder


def copied(peer: str, folder: Path, *, dialect: bool, loads: str = "") -> Path:
    """The files of a peer where Python finds them; for the dialect with its import in place of webdataset's."""
    for name in PEERS[peer]["files"]:  # type: ignore[attr-defined]
        text = (PLACE / peer / name).read_text("utf-8")
        if dialect:
            text = IMPORT.sub(r"\1\2 tarviz.dialects.webdataset", text)
        if loads:
            text = text.replace("decode('rgb8')", f"decode('rgb8', unsafe=['{loads}'])")
        path = folder / name.removeprefix("src/").removeprefix("examples/research_projects/controlnet/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def outcomes(peer: str, files: Path, shards: Path, webdataset: Path | None = None) -> dict[str, Any]:
    places = [str(files), *([] if webdataset is None else [str(webdataset)]), str(ROOT)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(places), "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    command = [sys.executable, str(Path(__file__).with_name("peer_program.py")), peer, str(shards)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert not done.returncode, done.stderr[-4000:]
    return dict(json.loads(done.stdout))


def multiset(case: str, records: list[Any]) -> Any:
    """What has to agree: the records however they are ordered, or how many they are where shards are drawn by chance."""
    return len(records) if case.endswith("(counted)") else Counter(map(str, records))


@pytest.mark.parametrize("peer", PEERS)
def test_a_peer_gets_the_same_records(peer: str, shards: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    if not right(peer) or not (PLACE / "webdataset-0.2.86").is_dir():
        pytest.skip("the readers of others are not here: make test-peers")
    pytest.importorskip("webdataset", reason="webdataset is not installed")
    as_it_is = copied(peer, tmp_path / "theirs", dialect=False)

    ours = outcomes(peer, copied(peer, tmp_path / "ours", dialect=True), shards)
    before = outcomes(peer, as_it_is, shards, PLACE / "webdataset-0.2.86")
    today = outcomes(peer, as_it_is, shards)

    for case, expected in before.items():
        assert not isinstance(expected, str), expected
        if kind := REFUSED.get((peer, case)):
            assert "unsafe" in ours[case]
            loading = copied(peer, tmp_path / "loading", dialect=True, loads=kind)
            ours[case] = outcomes(peer, loading, shards)[case]
        assert multiset(case, expected) == multiset(case, ours[case]), case
        if (peer, case) in STOPS_IN_1:
            assert "KeyError" in today[case]
            assert "'fname'" in today[case]
        else:
            assert multiset(case, today[case]) == multiset(case, ours[case]), case


class TestWids:
    """`tarviz.dialects.webdataset.wids` beside the last `wids` there was."""

    @pytest.fixture
    def theirs(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
        pytest.importorskip("torch", reason="torch is not installed")
        if not (PLACE / "webdataset-0.2.111").is_dir():
            pytest.skip("the readers of others are not here: make test-peers")
        monkeypatch.syspath_prepend(str(PLACE / "webdataset-0.2.111"))
        monkeypatch.setenv("WIDS_CACHE", str(tmp_path))
        import wids  # type: ignore[import-not-found]

        return wids

    @pytest.mark.filterwarnings("ignore:String specifications", "ignore:unclosed file:ResourceWarning")
    @pytest.mark.parametrize("form", ["PIL", "numpy"])
    def test_samples_are_the_same(self, theirs: Any, shards: Path, form: str) -> None:
        from tarviz.commands.index import index
        from tarviz.dialects.webdataset import wids

        index(f"{shards}/s-{{0..5}}.tar", wids=shards / "list.json")
        expected, found = (each.ShardListDataset(str(shards / "list.json"), transformations=form) for each in (theirs, wids))

        assert len(expected) == len(found) == 60
        for n in range(60):
            mine, other = found[n], expected[n]
            other["__shardindex__"] = int(other["__shardindex__"])  # a number of NumPy there
            other[".img_emb"], mine[".img_emb"] = other[".img_emb"].read(), mine[".img_emb"].read()
            if form == "PIL":
                assert mine[".jpg"].mode == other[".jpg"].mode
                mine[".jpg"], other[".jpg"] = np.asarray(mine[".jpg"]), np.asarray(other[".jpg"])
            assert same(mine, other), n
        expected.close()

    @pytest.mark.filterwarnings("ignore:DistributedChunkedSampler is called")
    @pytest.mark.parametrize("seed", [0, 5])
    @pytest.mark.parametrize("first", [False, True])
    def test_samplers_draw_the_same(self, theirs: Any, seed: int, first: bool) -> None:
        from tarviz.dialects.webdataset import wids

        class Data:
            lengths = (30, 40, 0, 25)

            def __len__(self) -> int:
                return 95

        options = {"seed": seed, "shufflefirst": first}
        for name, more in (
            ("ShardedSampler", {}),
            ("ChunkedSampler", {"chunksize": 20}),
            ("ChunkedSampler", {"chunksize": 20, "shuffle": False}),
            ("ChunkedSampler", {"chunksize": 7, "num_samples": (10, 50)}),
            ("DistributedChunkedSampler", {"chunksize": 30}),
        ):
            expected, found = (getattr(each, name)(Data(), **options, **more) for each in (theirs, wids))
            assert [list(expected) for _ in range(3)] == [list(found) for _ in range(3)], name
            if name != "ShardedSampler":  # theirs has no length
                assert len(expected) == len(found)
