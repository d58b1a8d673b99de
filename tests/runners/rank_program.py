"""What one rank of a training loop of others does: `torchrun rank_program.py LOOP SHARDS OUT` leaves the records it was given as JSON.

LOOP is `accelerate`, `trainer` or `lightning`. Each rank writes `OUT/RANK.json`: by case, the records of each epoch.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader

import tarviz
import tarviz.dialects.webdataset as wds
from tarviz.model.errors import UsageError

BATCH = 6  # of all ranks where batches are split, so that two and three of them can have it
RANK = int(os.environ["RANK"])
Case = Callable[[], Any]


def number(data: bytes) -> torch.Tensor:
    return torch.tensor(int(data))


def datasets(urls: str, workers: int = 0) -> dict[str, Case]:
    """Loaders of the same records, each as its own documentation makes it."""
    pipeline = tarviz.Pipeline(urls, "decode(id)", select=("id",))
    sources = {urls.replace("{0..3}", part): 0.5 for part in ("{0..1}", "{2..3}")}
    mixed = tarviz.Pipeline(tarviz.mix(sources, stop="longest"), "decode(id)", select=("id",))

    def of_dialect(**options: Any) -> Any:
        return wds.WebDataset(urls, shardshuffle=True, **options).shuffle(20).to_tuple("id").map_tuple(number)

    return {
        "DataLoader(torch())": lambda: DataLoader(pipeline.torch(shuffle=50), batch_size=BATCH, num_workers=workers),
        "loader()": lambda: pipeline.torch(shuffle=50).loader(BATCH, num_workers=workers),
        "indexed()": lambda: DataLoader(pipeline.indexed(), batch_size=BATCH, shuffle=True, num_workers=workers),
        "mix": lambda: DataLoader(mixed.torch(shuffle=50, even=True), batch_size=BATCH, num_workers=workers),
        "WebDataset": lambda: DataLoader(of_dialect(), batch_size=BATCH, num_workers=workers),
        "WebDataset by node": lambda: DataLoader(of_dialect(nodesplitter=wds.split_by_node), batch_size=BATCH, num_workers=workers),
    }


def accelerate(urls: str) -> dict[str, Any]:
    """`Accelerator.prepare`: by defaults with workers too, then every form of dispatching and splitting; and what is refused."""
    from accelerate import Accelerator, DataLoaderConfiguration

    seen: dict[str, Any] = {}
    forms = [("defaults", None, False, 0), ("defaults, a worker", None, False, 1)]
    forms += [(f"dispatch {d}, split {s}", d, s, 0) for d, s in itertools.product((True, False), (False, True))]
    for form, dispatch, split, workers in forms:
        accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(dispatch_batches=dispatch, split_batches=split))
        for name, make in datasets(urls, workers).items():
            loader = accelerator.prepare(make())
            epochs = [[value for (batch,) in loader for value in batch.tolist()] for _ in range(2)]
            seen[f"{name}: {form}"] = epochs
    asked = tarviz.Pipeline(urls, "decode(id)", select=("id",)).torch(rank=RANK, world_size=int(os.environ["WORLD_SIZE"]))
    try:
        list(accelerator.prepare(DataLoader(asked, batch_size=BATCH)))
        seen["refused"] = ""
    except UsageError as error:
        seen["refused"] = str(error)
    return seen


def trainer(urls: str) -> dict[str, Any]:
    """Hugging Face's Trainer over one epoch of 108 records."""
    from transformers import Trainer, TrainingArguments

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(1))
            self.seen: list[int] = []

        def forward(self, id: torch.Tensor) -> dict[str, torch.Tensor]:
            self.seen += id.tolist()
            return {"loss": (self.weight * id).sum()}

    pipeline = tarviz.Pipeline(urls, "decode(id)", select={"id": "id"})
    seen = {}
    for name, data in {"torch()": pipeline.torch(shuffle=50), "indexed()": pipeline.indexed()}.items():
        model = Model()
        steps = 108 // (BATCH * int(os.environ["WORLD_SIZE"]))
        settings = {"output_dir": os.environ["TRAINER_OUT"], "report_to": [], "use_cpu": True, "save_strategy": "no", "disable_tqdm": True}
        arguments = TrainingArguments(per_device_train_batch_size=BATCH, max_steps=steps, logging_strategy="no", **settings)
        Trainer(model, arguments, train_dataset=data).train()
        seen[name] = [model.seen]
    return seen


def lightning(urls: str) -> dict[str, Any]:
    """Lightning's Trainer, which leaves an iterable data set alone and gives a numbered one its DistributedSampler."""
    import lightning

    class Model(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(1))
            self.seen: list[list[int]] = []

        def on_train_epoch_start(self) -> None:
            self.seen.append([])

        def training_step(self, batch: Any, at: int) -> torch.Tensor:
            self.seen[-1] += batch[0].tolist()
            return (self.weight * batch[0]).sum()

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.0)

    seen = {}
    for name, make in datasets(urls).items():
        if name == "WebDataset":
            continue  # refuses several nodes unless it is told how to split
        model = Model()
        quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
        world = int(os.environ["WORLD_SIZE"])
        lightning.Trainer(accelerator="cpu", devices=world, strategy="ddp" if world > 1 else "auto", max_epochs=2, **quiet).fit(
            model, make()
        )
        seen[name] = model.seen
    return seen


if __name__ == "__main__":
    loop, shards, out = sys.argv[1:]
    found = {"accelerate": accelerate, "trainer": trainer, "lightning": lightning}[loop](shards)
    Path(out, f"{RANK}.json").write_text(json.dumps(found))
