"""`webdataset.compat`: the classes with a fluid interface."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tarviz.dialects.webdataset.filters import pipelinefilter
from tarviz.dialects.webdataset.parts.dataset import WebDataset
from tarviz.dialects.webdataset.parts.fluid import FluidInterface
from tarviz.dialects.webdataset.pipeline import DataPipeline
from tarviz.dialects.webdataset.shardlists import check_empty

if TYPE_CHECKING:
    from tarviz.dialects.webdataset.parts.loader import WebLoader

__all__ = ["FluidInterface", "FluidWrapper", "WebDataset", "WebLoader", "check_empty", "pipelinefilter"]


class FluidWrapper(DataPipeline, FluidInterface):
    """A source of any kind with the methods of a `WebDataset`.

    >>> list(FluidWrapper([1, 2, 3]).map(lambda n: n * n))
    [1, 4, 9]
    """

    def __init__(self, initial: Any) -> None:
        super().__init__()
        self.append(initial)


def __getattr__(name: str) -> Any:
    if name == "WebLoader":  # needs torch
        from tarviz.dialects.webdataset.parts.loader import WebLoader

        return WebLoader
    raise AttributeError(f"webdataset.compat has nothing named {name!r}")
