"""Runs one peer's reader over shards of 60 records, numbered: `peer_program.py PEER FOLDER` prints, by case, the records it gave as JSON.

The peer's files are those on `PYTHONPATH`. What they import beside, and what prepares pictures, is not what is tried here: empty
stand-ins take its place.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import sys
import tarfile
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import torch

STAND_INS = (
    *("torchvision", "torchvision.datasets", "torchvision.transforms", "cv2", "wandb", "transformers", "yacs", "yacs.config"),
    *("open_clip_train.naflex_data", "hamer.datasets.utils", "diffusers", "diffusers.optimization", "diffusers.utils"),
    *("diffusers.utils.import_utils", "accelerate", "accelerate.logging", "accelerate.utils"),
)
Cases = dict[str, Callable[[], Iterable[Any]]]


def shape(image: Any) -> torch.Tensor:
    """What stands for a prepared picture."""
    return torch.tensor(image.size)


def number(text: str | list[str]) -> torch.Tensor:
    """The number of a record as its only token."""
    return torch.tensor([[int(text.split()[-1])]])  # type: ignore[union-attr]


def open_clip(urls: str) -> Cases:
    data: Any = import_module("open_clip_train.data")
    usual = {"train_data": urls, "val_data": urls, "train_num_samples": 60, "val_num_samples": 60, "workers": 2, "world_size": 1}
    usual |= {"batch_size": 5, "seed": 7, "dataset_resampled": False, "train_data_upsampling_factors": None}

    def read(train: bool, **options: Any) -> list[int]:
        info = data.get_wds_dataset(SimpleNamespace(**usual | options), shape, train, tokenizer=number)
        return [n for batch in info.dataloader for n in batch["text"].flatten().tolist()]

    def resampled() -> list[int]:
        os.environ.update(RANK="1", WORLD_SIZE="3", OPENCLIP_WDS_SAMPLE_SHUFFLE_SIZE="0", OPENCLIP_WDS_SAMPLE_SHUFFLE_INITIAL="0")
        first, rest = urls.replace("{0..5}", "{0..1}"), urls.replace("{0..5}", "{2..5}")
        return read(True, train_data=f"{first}::{rest}", train_data_upsampling_factors="3::1", dataset_resampled=True, workers=1)

    return {"evaluation": lambda: read(False), "training": lambda: read(True), "resampled by weight, rank 1 of 3": resampled}


def texts(batches: Iterable[Any], place: int) -> list[int]:
    columns = (batch[place] for batch in batches)
    return [int(str(text).split()[-1]) for column in columns for text in (column.tolist() if hasattr(column, "tolist") else column)]


def diffusers(urls: str) -> Cases:
    data: Any = import_module("train_controlnet_webdataset")

    def prepared(example: Any, resolution: int) -> Any:
        return {**example, "image": shape(example["image"]), "control_image": 0, "crop_coords": (0, 0)}

    data.canny_image_transform = prepared
    made = data.Text2ImageDataset(urls, urls, 60, 5, 5, 2)
    return {"evaluation": lambda: texts(made.eval_dataloader, 2), "training (counted)": lambda: texts(made.train_dataloader, 2)}


def muse(urls: str) -> Cases:
    data: Any = import_module("training.data")
    data.ImageNetTransform = lambda *_: SimpleNamespace(train_transform=shape)
    made = data.ClassificationDataset(urls, urls, 60, 5, 5, 2)
    return {"evaluation": lambda: texts(made.eval_dataloader, 1), "training (counted)": lambda: texts(made.train_dataloader, 1)}


def timm(urls: str) -> Cases:
    data: Any = import_module("timm.data.readers.reader_wds")
    root, split = os.path.split(urls)

    def read(train: bool) -> list[int]:
        reader = data.ReaderWds(root, split=f"{split}|60", is_training=train, batch_size=5, sample_shuffle_size=1, sample_initial_size=1)
        return [sample[1] for sample in reader]

    return {"evaluation": lambda: read(False), "training": lambda: read(True)}


def dalle2(urls: str) -> Cases:
    data: Any = import_module("dalle2_pytorch.dataloaders.decoder_loader")

    def read(**options: Any) -> list[int]:
        found = data.ImageEmbeddingDataset(urls, extra_keys=["txt"], img_preproc=shape, **options)
        return [int(text.split()[-1]) for _, emb, text in found if emb["img"]]

    return {"in order": lambda: read(shuffle_shards=False), "shards shuffled": read}


def img2dataset(urls: str) -> Cases:
    import pyarrow as pa

    data: Any = import_module("img2dataset.writer")

    def written() -> list[Any]:
        schema = pa.schema([("n", pa.int64())])
        out = data.WebDatasetSampleWriter(7, str(Path(urls).parent), True, 5, schema, "jpg")
        for n in range(20):
            out.write(b"picture %d" % n, f"{n:09d}", f"no {n}", {"n": n})
        out.close()
        with tarfile.open(Path(urls).with_name("00007.tar")) as file:
            return [(member.name, file.extractfile(member).read().decode()) for member in file]  # type: ignore[union-attr]

    return {"writer": written}


def lavis(urls: str) -> Cases:
    data: Any = import_module("lavis.datasets.datasets.laion_dataset")
    made = data.LaionDataset(shape, lambda text: int(text.split()[-1]), urls)
    return {"resampled (counted)": lambda: [sample["text_input"] for sample in itertools.islice(made.inner_dataset, 200)]}


def hamer(urls: str) -> Cases:
    data: Any = import_module("hamer.datasets.image_dataset")
    data.ImageDataset.process_webdataset_tar_item = staticmethod(lambda item, *_, **__: item)
    model = {"IMAGE_SIZE": 8, "IMAGE_MEAN": [0, 0, 0], "IMAGE_STD": [1, 1, 1]}

    class Settings(dict[str, Any]):
        __getattr__ = dict.__getitem__

    settings = Settings(MODEL=Settings(model), DATASETS=Settings(CONFIG=None, FILTER_NUM_KP=0))

    def read() -> list[int]:
        found = data.ImageDataset.load_tars_as_webdataset(settings, urls.replace("s-", "hands-"), train=True)
        return [item["data.pyd"]["n"] for item in found]

    return {"training, annotations pickled": read}


PEERS = {each.__name__.lower(): each for each in (open_clip, diffusers, muse, timm, dalle2, img2dataset, lavis, hamer)}


def outcome(case: Callable[[], Iterable[Any]]) -> Any:
    torch.manual_seed(7)
    random.seed(7)
    try:
        return list(case())
    except Exception as error:  # noqa: BLE001  held beside the other's
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    for name in STAND_INS:
        sys.modules[name] = MagicMock(__spec__=None)
    peer, folder = sys.argv[1:]
    found = PEERS[peer.lower()](f"{folder}/s-{{0..5}}.tar")
    sys.stdout.write(json.dumps({case: outcome(read) for case, read in found.items()}))
