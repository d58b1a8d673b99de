"""`webdataset.compat`: the classes with a fluid interface."""

from __future__ import annotations

from typing import Any

from tarviz.dialects.webdataset.filters import pipelinefilter as pipelinefilter
from tarviz.dialects.webdataset.parts.dataset import WebDataset as WebDataset
from tarviz.dialects.webdataset.parts.fluid import FluidInterface as FluidInterface
from tarviz.dialects.webdataset.pipeline import DataPipeline


class FluidWrapper(DataPipeline, FluidInterface):
    """A source of any kind with the methods of a `WebDataset`.

    >>> list(FluidWrapper([1, 2, 3]).map(lambda n: n * n))
    [1, 4, 9]
    """

    def __init__(self, initial: Any) -> None:
        super().__init__()
        self.append(initial)
