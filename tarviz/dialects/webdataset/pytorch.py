"""`webdataset.pytorch`: torch's classes under the names that they have there; classes of nothing where torch is not installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["DataLoader", "IterableDataset", "TorchTensor"]


class IterableDataset:
    """An iterable and no more; where torch is installed, its `IterableDataset` stands here."""


class DataLoader:
    """Stands in for torch's `DataLoader`."""


class TorchTensor:
    """Stands in for torch's `Tensor`."""


if not TYPE_CHECKING:
    try:
        from torch import Tensor as TorchTensor
        from torch.utils.data import DataLoader, IterableDataset
    except ImportError:
        pass
