"""Training loops of others (accelerate, Hugging Face's Trainer, Lightning) on one, two and three processes: every record once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tarviz.dialects.webdataset import TarWriter

pytest.importorskip("torch", reason="the loops of others are torch's")
PROGRAM = Path(__file__).with_name("rank_program.py")
RECORDS = list(range(108))  # a whole number of batches for every number of ranks: none is filled up with records of the first
pytestmark = [pytest.mark.programs, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("shards")
    for shard in range(4):
        numbers = RECORDS[shard * 27 : shard * 27 + 27]
        with TarWriter(folder / f"s-{shard}.tar") as sink:
            for number in numbers:
                sink.write({"__key__": f"{number:04d}", "id": number})
    return f"{folder}/s-{{0..3}}.tar"


def ranks(loop: str, urls: str, world: int, folder: Path) -> list[dict[str, Any]]:
    """What each rank of a loop was given, as torchrun starts them."""
    start = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(world)]
    settings = {"OMP_NUM_THREADS": "1", "TRAINER_OUT": str(folder / "trainer"), "PYTHONPATH": str(PROGRAM.parents[2])}
    done = subprocess.run(
        [*start, str(PROGRAM), loop, urls, str(folder)], capture_output=True, text=True, env=os.environ | settings, check=False
    )
    assert not done.returncode, done.stderr[-4000:]
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(world)]


def together(found: list[dict[str, Any]], case: str) -> list[list[int]]:
    """The records of all ranks, by epoch."""
    return [sorted(number for part in parts for number in part) for parts in zip(*(each[case] for each in found), strict=True)]


@pytest.mark.parametrize("world", [1, 2, 3])
def test_accelerate_gives_every_record_once_in_every_form(urls: str, tmp_path: Path, world: int) -> None:
    pytest.importorskip("accelerate", reason="accelerate is not installed: pip install accelerate")

    found = ranks("accelerate", urls, world, tmp_path)

    refused = [each.pop("refused") for each in found]
    mixes = {
        case: [sorted(set(epoch)) for epoch in together(found, case)] for case in found[0] if case.startswith("mix")
    }  # some come again
    wrong = [case for case in found[0] if mixes.get(case, together(found, case)) != [RECORDS, RECORDS]]
    assert (36, 6) == (len(found[0]), len(mixes))
    assert [] == wrong
    assert all(("" == said) if world == 1 else ("Leave rank= and world_size= out" in said) for said in refused)


@pytest.mark.parametrize("world", [1, 2])
def test_trainer_gives_every_record_once(urls: str, tmp_path: Path, world: int) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed: pip install transformers")

    found = ranks("trainer", urls, world, tmp_path)

    assert {"torch()": [RECORDS], "indexed()": [RECORDS]} == {case: together(found, case) for case in found[0]}


@pytest.mark.parametrize("world", [1, 2])
def test_lightning_gives_every_record_once_an_epoch(urls: str, tmp_path: Path, world: int) -> None:
    pytest.importorskip("lightning", reason="lightning is not installed: pip install lightning")

    found = ranks("lightning", urls, world, tmp_path)

    assert 5 == len(found[0])
    seen = {case: together(found, case) for case in found[0]}
    seen["mix"] = [sorted(set(epoch)) for epoch in seen["mix"]]  # some come again
    assert [] == [case for case, epochs in seen.items() if epochs != [RECORDS, RECORDS]]
