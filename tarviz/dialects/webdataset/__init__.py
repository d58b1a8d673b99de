"""WebDataset over the engine: `WebDataset`, `DataPipeline`, `WebLoader`, `TarWriter`, `ShardWriter` and the stages.

`import tarviz.dialects.webdataset as wds` in place of `import webdataset as wds`. The API of 2019
(`WebDataset(urls, extensions="jpg cls", decoder="pil", transforms=[…], shuffle=100)`), that of today
(`WebDataset(urls).shuffle(1000).decode("rgb").to_tuple("jpg", "cls").batched(16)`) and pipelines
(`DataPipeline(SimpleShardList(urls), split_by_worker, tarfile_to_samples(), shuffle(1000), decode("rgb"), …)`) are all there, under
the names that webdataset has in its modules (`wds.filters`, `wds.handlers`, `wds.shardlists`, …); docs/dialects/webdataset.md
lists what differs. torch is imported with `WebDataset` where it is installed, and never by the writers.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tarviz.dialects.webdataset.gopen import gopen as gopen  # the function, not the module of that name

if TYPE_CHECKING:
    from tarviz.dialects.webdataset.autodecode import Continue as Continue
    from tarviz.dialects.webdataset.autodecode import Decoder as Decoder
    from tarviz.dialects.webdataset.autodecode import DecodingError as DecodingError
    from tarviz.dialects.webdataset.autodecode import gzfilter as gzfilter
    from tarviz.dialects.webdataset.autodecode import handle_extension as handle_extension
    from tarviz.dialects.webdataset.autodecode import imagehandler as imagehandler
    from tarviz.dialects.webdataset.autodecode import pytorch_weights_only as pytorch_weights_only
    from tarviz.dialects.webdataset.autodecode import torch_audio as torch_audio
    from tarviz.dialects.webdataset.autodecode import torch_loads as torch_loads
    from tarviz.dialects.webdataset.autodecode import torch_video as torch_video
    from tarviz.dialects.webdataset.cache import LRUCleanup as LRUCleanup
    from tarviz.dialects.webdataset.cache import pipe_cleaner as pipe_cleaner
    from tarviz.dialects.webdataset.compat import FluidInterface as FluidInterface
    from tarviz.dialects.webdataset.compat import FluidWrapper as FluidWrapper
    from tarviz.dialects.webdataset.compat import WebDataset as WebDataset
    from tarviz.dialects.webdataset.extradatasets import MockDataset as MockDataset
    from tarviz.dialects.webdataset.extradatasets import with_epoch as with_epoch
    from tarviz.dialects.webdataset.extradatasets import with_length as with_length
    from tarviz.dialects.webdataset.filters import Cached as Cached
    from tarviz.dialects.webdataset.filters import associate as associate
    from tarviz.dialects.webdataset.filters import batched as batched
    from tarviz.dialects.webdataset.filters import decode as decode
    from tarviz.dialects.webdataset.filters import detshuffle as detshuffle
    from tarviz.dialects.webdataset.filters import extract_keys as extract_keys
    from tarviz.dialects.webdataset.filters import getfirst as getfirst
    from tarviz.dialects.webdataset.filters import info as info
    from tarviz.dialects.webdataset.filters import map as map
    from tarviz.dialects.webdataset.filters import map_dict as map_dict
    from tarviz.dialects.webdataset.filters import map_tuple as map_tuple
    from tarviz.dialects.webdataset.filters import pipelinefilter as pipelinefilter
    from tarviz.dialects.webdataset.filters import rename as rename
    from tarviz.dialects.webdataset.filters import rename_keys as rename_keys
    from tarviz.dialects.webdataset.filters import rsample as rsample
    from tarviz.dialects.webdataset.filters import select as select
    from tarviz.dialects.webdataset.filters import shuffle as shuffle
    from tarviz.dialects.webdataset.filters import slice as slice
    from tarviz.dialects.webdataset.filters import to_tuple as to_tuple
    from tarviz.dialects.webdataset.filters import transform_with as transform_with
    from tarviz.dialects.webdataset.filters import unbatched as unbatched
    from tarviz.dialects.webdataset.filters import unlisted as unlisted
    from tarviz.dialects.webdataset.filters import xdecode as xdecode
    from tarviz.dialects.webdataset.gopen import gopen_schemes as gopen_schemes
    from tarviz.dialects.webdataset.handlers import ignore_and_continue as ignore_and_continue
    from tarviz.dialects.webdataset.handlers import ignore_and_stop as ignore_and_stop
    from tarviz.dialects.webdataset.handlers import reraise_exception as reraise_exception
    from tarviz.dialects.webdataset.handlers import warn_and_continue as warn_and_continue
    from tarviz.dialects.webdataset.handlers import warn_and_stop as warn_and_stop
    from tarviz.dialects.webdataset.mix import RandomMix as RandomMix
    from tarviz.dialects.webdataset.mix import RoundRobin as RoundRobin
    from tarviz.dialects.webdataset.parts.collate import default_collation_fn as default_collation_fn
    from tarviz.dialects.webdataset.parts.loader import WebLoader as WebLoader
    from tarviz.dialects.webdataset.parts.shard_map import distributed_map_unordered as distributed_map_unordered
    from tarviz.dialects.webdataset.pipeline import DataPipeline as DataPipeline
    from tarviz.dialects.webdataset.shardlists import ResampledShards as ResampledShards
    from tarviz.dialects.webdataset.shardlists import SimpleShardList as SimpleShardList
    from tarviz.dialects.webdataset.shardlists import non_empty as non_empty
    from tarviz.dialects.webdataset.shardlists import resampled as resampled
    from tarviz.dialects.webdataset.shardlists import shardspec as shardspec
    from tarviz.dialects.webdataset.shardlists import single_node_only as single_node_only
    from tarviz.dialects.webdataset.shardlists import split_by_node as split_by_node
    from tarviz.dialects.webdataset.shardlists import split_by_worker as split_by_worker
    from tarviz.dialects.webdataset.tariterators import tarfile_samples as tarfile_samples
    from tarviz.dialects.webdataset.tariterators import tarfile_to_samples as tarfile_to_samples
    from tarviz.dialects.webdataset.utils import PipelineStage as PipelineStage
    from tarviz.dialects.webdataset.utils import repeatedly as repeatedly
    from tarviz.dialects.webdataset.writer import ShardWriter as ShardWriter
    from tarviz.dialects.webdataset.writer import TarWriter as TarWriter
    from tarviz.dialects.webdataset.writer import numpy_dumps as numpy_dumps
    from tarviz.dialects.webdataset.writer import torch_dumps as torch_dumps

_PLACES = {
    "autodecode": (
        *("Continue", "Decoder", "DecodingError", "gzfilter", "handle_extension", "imagehandler", "pytorch_weights_only"),
        *("torch_audio", "torch_loads", "torch_video"),
    ),
    "cache": ("LRUCleanup", "pipe_cleaner"),
    "compat": ("FluidInterface", "FluidWrapper", "WebDataset"),
    "extradatasets": ("MockDataset", "with_epoch", "with_length"),
    "filters": (
        *("Cached", "associate", "batched", "decode", "detshuffle", "extract_keys", "getfirst", "info", "map", "map_dict", "map_tuple"),
        *("pipelinefilter", "rename", "rename_keys", "rsample", "select", "shuffle", "slice", "to_tuple", "transform_with", "unbatched"),
        *("unlisted", "xdecode"),
    ),
    "gopen": ("gopen_schemes",),
    "handlers": ("ignore_and_continue", "ignore_and_stop", "reraise_exception", "warn_and_continue", "warn_and_stop"),
    "mix": ("RandomMix", "RoundRobin"),
    "parts.collate": ("default_collation_fn",),
    "parts.loader": ("WebLoader",),
    "parts.shard_map": ("distributed_map_unordered",),
    "pipeline": ("DataPipeline",),
    "shardlists": (
        *("ResampledShards", "SimpleShardList", "non_empty", "resampled", "shardspec", "single_node_only", "split_by_node"),
        "split_by_worker",
    ),
    "tariterators": ("tarfile_samples", "tarfile_to_samples"),
    "utils": ("PipelineStage", "repeatedly"),
    "writer": ("ShardWriter", "TarWriter", "numpy_dumps", "torch_dumps"),
}
_MODULES = (
    *("autodecode", "cache", "compat", "extradatasets", "filters", "handlers", "mix", "pipeline", "pytorch", "shardlists"),
    *("tariterators", "tenbin", "utils", "writer"),
)

__all__ = ["gopen", *(name for names in _PLACES.values() for name in names)]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    for module, names in _PLACES.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"tarviz.dialects.webdataset has nothing named {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *_MODULES]
