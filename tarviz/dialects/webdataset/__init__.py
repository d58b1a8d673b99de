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
    from tarviz.dialects.webdataset.autodecode import *  # noqa: F403
    from tarviz.dialects.webdataset.cache import *  # noqa: F403
    from tarviz.dialects.webdataset.compat import *  # noqa: F403
    from tarviz.dialects.webdataset.extradatasets import MockDataset as MockDataset
    from tarviz.dialects.webdataset.extradatasets import with_epoch as with_epoch
    from tarviz.dialects.webdataset.extradatasets import with_length as with_length
    from tarviz.dialects.webdataset.filters import *  # noqa: F403
    from tarviz.dialects.webdataset.gopen import *  # noqa: F403
    from tarviz.dialects.webdataset.handlers import *  # noqa: F403
    from tarviz.dialects.webdataset.mix import *  # noqa: F403
    from tarviz.dialects.webdataset.parts.loader import *  # noqa: F403
    from tarviz.dialects.webdataset.parts.shard_map import *  # noqa: F403
    from tarviz.dialects.webdataset.pipeline import *  # noqa: F403
    from tarviz.dialects.webdataset.shardlists import *  # noqa: F403
    from tarviz.dialects.webdataset.tariterators import *  # noqa: F403
    from tarviz.dialects.webdataset.utils import *  # noqa: F403
    from tarviz.dialects.webdataset.writer import *  # noqa: F403

_NAMES = {
    "autodecode": "Continue Decoder DecodingError gzfilter handle_extension imagehandler pytorch_weights_only torch_audio torch_loads "
    "torch_video",
    "cache": "LRUCleanup pipe_cleaner",
    "compat": "FluidInterface FluidWrapper WebDataset",
    "extradatasets": "MockDataset with_epoch with_length",
    "filters": "Cached associate batched decode default_collation_fn detshuffle extract_keys getfirst info map map_dict map_tuple "
    "pipelinefilter rename rename_keys rsample select shuffle slice to_tuple transform_with unbatched unlisted xdecode",
    "gopen": "gopen_schemes",
    "handlers": "ignore_and_continue ignore_and_stop reraise_exception warn_and_continue warn_and_stop",
    "mix": "RandomMix RoundRobin",
    "parts.loader": "WebLoader",
    "parts.shard_map": "distributed_map_unordered",
    "pipeline": "DataPipeline",
    "shardlists": "ResampledShards SimpleShardList non_empty resampled shardspec single_node_only split_by_node split_by_worker",
    "tariterators": "tarfile_samples tarfile_to_samples",
    "utils": "PipelineStage repeatedly",
    "writer": "ShardWriter TarWriter numpy_dumps torch_dumps",
}
_PLACES = {name: module for module, names in _NAMES.items() for name in names.split()}
_MODULES = (
    *("autodecode", "cache", "compat", "extradatasets", "filters", "handlers", "mix", "pipeline", "pytorch", "shardlists"),
    *("tariterators", "tenbin", "utils", "wids", "writer"),
)

__all__ = ["gopen", *_PLACES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _PLACES:
        return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
    raise AttributeError(f"tarviz.dialects.webdataset has nothing named {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *_MODULES]
