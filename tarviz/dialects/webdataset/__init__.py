"""WebDataset over the engine: `WebDataset`, `WebLoader`, `TarWriter`, `ShardWriter`.

`import tarviz.dialects.webdataset as wds` in place of `import webdataset as wds`. The API of 2019
(`WebDataset(urls, extensions="jpg cls", decoder="pil", transforms=[…], shuffle=100)`) and that of today
(`WebDataset(urls).shuffle(1000).decode("rgb").to_tuple("jpg", "cls").batched(16)`) are both there; docs/dialects/webdataset.md
lists what differs. torch is imported with `WebDataset` where it is installed, and never by the writers.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tarviz.dialects.webdataset._dataset import WebDataset
    from tarviz.dialects.webdataset._decode import Continue, Decoder, gzfilter, handle_extension, imagehandler
    from tarviz.dialects.webdataset._handlers import (
        ignore_and_continue,
        ignore_and_stop,
        reraise_exception,
        warn_and_continue,
        warn_and_stop,
    )
    from tarviz.dialects.webdataset._loader import WebLoader
    from tarviz.dialects.webdataset._map import distributed_map_unordered
    from tarviz.dialects.webdataset._source import single_node_only, split_by_node, split_by_worker
    from tarviz.dialects.webdataset._stages import default_collation_fn
    from tarviz.dialects.webdataset._writer import ShardWriter, TarWriter

_PLACES = {
    "_dataset": ("WebDataset",),
    "_loader": ("WebLoader",),
    "_map": ("distributed_map_unordered",),
    "_writer": ("TarWriter", "ShardWriter"),
    "_decode": ("Continue", "Decoder", "gzfilter", "handle_extension", "imagehandler"),
    "_handlers": ("ignore_and_continue", "ignore_and_stop", "reraise_exception", "warn_and_continue", "warn_and_stop"),
    "_source": ("single_node_only", "split_by_node", "split_by_worker"),
    "_stages": ("default_collation_fn",),
}

__all__ = [
    "Continue",
    "Decoder",
    "ShardWriter",
    "TarWriter",
    "WebDataset",
    "WebLoader",
    "default_collation_fn",
    "distributed_map_unordered",
    "gzfilter",
    "handle_extension",
    "ignore_and_continue",
    "ignore_and_stop",
    "imagehandler",
    "reraise_exception",
    "single_node_only",
    "split_by_node",
    "split_by_worker",
    "warn_and_continue",
    "warn_and_stop",
]


def __getattr__(name: str) -> Any:
    for module, names in _PLACES.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"tarviz.dialects.webdataset has nothing named {name!r}")


def __dir__() -> list[str]:
    return __all__
