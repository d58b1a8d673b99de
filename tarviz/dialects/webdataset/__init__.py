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
    from tarviz.dialects.webdataset.autodecode import (
        Continue,
        Decoder,
        DecodingError,
        gzfilter,
        handle_extension,
        imagehandler,
        pytorch_weights_only,
        torch_audio,
        torch_loads,
        torch_video,
    )
    from tarviz.dialects.webdataset.cache import LRUCleanup, pipe_cleaner
    from tarviz.dialects.webdataset.compat import FluidInterface, FluidWrapper, WebDataset
    from tarviz.dialects.webdataset.extradatasets import MockDataset, with_epoch, with_length
    from tarviz.dialects.webdataset.filters import (
        Cached,
        associate,
        batched,
        decode,
        detshuffle,
        extract_keys,
        getfirst,
        info,
        map,
        map_dict,
        map_tuple,
        pipelinefilter,
        rename,
        rename_keys,
        rsample,
        select,
        shuffle,
        slice,
        to_tuple,
        transform_with,
        unbatched,
        unlisted,
        xdecode,
    )
    from tarviz.dialects.webdataset.gopen import gopen_schemes
    from tarviz.dialects.webdataset.handlers import (
        ignore_and_continue,
        ignore_and_stop,
        reraise_exception,
        warn_and_continue,
        warn_and_stop,
    )
    from tarviz.dialects.webdataset.mix import RandomMix, RoundRobin
    from tarviz.dialects.webdataset.parts.collate import default_collation_fn
    from tarviz.dialects.webdataset.parts.loader import WebLoader
    from tarviz.dialects.webdataset.parts.shard_map import distributed_map_unordered
    from tarviz.dialects.webdataset.pipeline import DataPipeline
    from tarviz.dialects.webdataset.shardlists import (
        ResampledShards,
        SimpleShardList,
        non_empty,
        resampled,
        shardspec,
        single_node_only,
        split_by_node,
        split_by_worker,
    )
    from tarviz.dialects.webdataset.tariterators import tarfile_samples, tarfile_to_samples
    from tarviz.dialects.webdataset.utils import PipelineStage, repeatedly
    from tarviz.dialects.webdataset.writer import ShardWriter, TarWriter, numpy_dumps, torch_dumps

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

__all__ = [
    "Cached",
    "Continue",
    "DataPipeline",
    "Decoder",
    "DecodingError",
    "FluidInterface",
    "FluidWrapper",
    "LRUCleanup",
    "MockDataset",
    "PipelineStage",
    "RandomMix",
    "ResampledShards",
    "RoundRobin",
    "ShardWriter",
    "SimpleShardList",
    "TarWriter",
    "WebDataset",
    "WebLoader",
    "associate",
    "batched",
    "decode",
    "default_collation_fn",
    "detshuffle",
    "distributed_map_unordered",
    "extract_keys",
    "getfirst",
    "gopen",
    "gopen_schemes",
    "gzfilter",
    "handle_extension",
    "ignore_and_continue",
    "ignore_and_stop",
    "imagehandler",
    "info",
    "map",
    "map_dict",
    "map_tuple",
    "non_empty",
    "numpy_dumps",
    "pipe_cleaner",
    "pipelinefilter",
    "pytorch_weights_only",
    "rename",
    "rename_keys",
    "repeatedly",
    "reraise_exception",
    "resampled",
    "rsample",
    "select",
    "shardspec",
    "shuffle",
    "single_node_only",
    "slice",
    "split_by_node",
    "split_by_worker",
    "tarfile_samples",
    "tarfile_to_samples",
    "to_tuple",
    "torch_audio",
    "torch_dumps",
    "torch_loads",
    "torch_video",
    "transform_with",
    "unbatched",
    "unlisted",
    "warn_and_continue",
    "warn_and_stop",
    "with_epoch",
    "with_length",
    "xdecode",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    for module, names in _PLACES.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"tarviz.dialects.webdataset has nothing named {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *_MODULES]
