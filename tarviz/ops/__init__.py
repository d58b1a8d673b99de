"""Ops: what can be done to a record, one file per op, and chains of them.

A file here holds one frozen dataclass, the op: its fields are the arguments, `apply` its meaning on NumPy
and PIL, `infer` what it does to dtype and shape, `apply_tf` (optional) the same inside a TensorFlow graph.
A field op works on one field (`FieldOp`), a record op on the whole record (`RecordOp`). The file's name is
the op's name in chain text; the class has the same name in capitals (`center_crop` → `CenterCrop`).

Random ops say how many numbers they need (`draws`); `ops.draws` makes these from seed, epoch and key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tarviz.ops.base import Draw, FieldOp, Op, RecordOp, unpack
from tarviz.ops.chains import Chain, Step, parse_chain
from tarviz.ops.random_draws import draws

if TYPE_CHECKING:
    from tarviz.ops.augment import Augment
    from tarviz.ops.carry import Carry
    from tarviz.ops.center_crop import CenterCrop
    from tarviz.ops.clip import Clip
    from tarviz.ops.convert import Convert
    from tarviz.ops.decode import Decode
    from tarviz.ops.drop import Drop
    from tarviz.ops.encode import Encode
    from tarviz.ops.flip import Flip
    from tarviz.ops.func import Func
    from tarviz.ops.keep import Keep
    from tarviz.ops.log_mel import LogMel
    from tarviz.ops.mix_down import MixDown
    from tarviz.ops.normalize import Normalize
    from tarviz.ops.random_clip import RandomClip
    from tarviz.ops.random_crop import RandomCrop
    from tarviz.ops.rename import Rename
    from tarviz.ops.resize import Resize
    from tarviz.ops.rotate import Rotate
    from tarviz.ops.spectrogram import Spectrogram
    from tarviz.selection import Select, SelectDict, SelectJSON, SelectList

SUPPORT = ("base", "chain_text", "chains", "joints", "random_draws", "values")  # what ops are built with, not ops

__all__ = [  # ops are imported on first use
    "Augment", "Carry", "CenterCrop", "Chain", "Clip", "Convert", "Decode", "Draw", "Drop", "Encode", "FieldOp", "Flip", "Func", "Keep",
    "LogMel", "MixDown", "Normalize", "Op", "RandomClip", "RandomCrop", "RecordOp", "Rename", "Resize", "Rotate", "Select", "SelectDict",
    "SelectJSON", "SelectList", "Spectrogram", "Step", "draws", "parse_chain", "unpack",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """The class of an op, imported on first use; a package elsewhere that adds an op is found here too."""
    if name.startswith("Select"):
        from tarviz import selection

        return getattr(selection, name)
    from tarviz.ops.chains import class_of, plugin_of

    plugin = plugin_of(name)
    if plugin is None:
        raise AttributeError(f"tarviz.ops has nothing named {name!r}")
    return class_of(plugin)


def __dir__() -> list[str]:
    return __all__
