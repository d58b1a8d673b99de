"""What the fields of a record stand for, told by their names: the picture, masks over it, its label, its caption, what lies beside it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

LABELS = (
    "cls", "label", "class", "json.label", "json.class", "json.category", "json.class_name", "json.class_label", "json.name",
    "json.species", "json.meta.label", "meta.json.label",
)  # fmt: skip
"""Where a class is looked for, in this order."""

CAPTIONS = (
    "caption", "json.caption", "txt", "text", "transcript", "sentence.txt", "caption.txt", "prompt", "json.text", "json.sentence",
    "json.transcript", "json.transcription", "json.prompt", "json.title", "json.instruction", "json.question", "json.description",
    "meta.json.instruction", "meta.json.caption", "meta.json.text",
)  # fmt: skip
"""Where a sentence about the record is looked for, in this order."""

TEXTS = (
    "text", "content", "caption", "document", "body", "markdown", "code", "prompt", "instruction", "question", "sentence", "transcript",
)  # fmt: skip
"""Names in a JSON object whose text is what the object is about."""

_MASK = re.compile(
    r"(^|[._\-])(seg|segmentation|semseg|mask|masks|matte|alpha|labels?|labelids|instance|instances|semantic|panoptic|gt|annotation)(?=$|[._\-])"
)
_PLAYED, _DRAWN = ("audio", "video"), ("npy", "cloud", "volume", "structured")
_SEEN = re.compile(r"(^|[._\-])(depth|disp|disparity|flow|heat|heatmap|height|normals?|saliency|attention)(?=$|[._\-])")


@dataclass(frozen=True, slots=True)
class Roles:
    """The fields of a record by what they stand for, each list in file order.

    `pictures` are what is looked at (maps of depth or flow that are arrays too), `masks` pictures that belong over the first of them,
    `written` what may hold boxes or words.
    """

    pictures: tuple[str, ...] = ()
    masks: tuple[str, ...] = ()
    arrays: tuple[str, ...] = ()
    played: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    rest: tuple[str, ...] = ()

    @property
    def beside(self) -> tuple[str, ...]:
        """Pictures that belong side by side: several of them, told apart by a name (`left.jpg`, `right.jpg`, `depth.png`)."""
        named = [ext for ext in self.pictures if "." in ext]
        return tuple(named) if len(named) > 1 and len(named) == len(self.pictures) else self.pictures[:1]


def roles(kinds: Mapping[str, str]) -> Roles:
    """The roles of fields, given each one's kind of viewer (`{"jpg": "image", "seg.png": "image", "json": "json"}`).

    >>> roles({"jpg": "image", "seg.png": "image", "json": "json"}).masks
    ('seg.png',)
    """
    return _roles(tuple(kinds.items()))


@lru_cache(4096)
def _roles(kinds: Sequence[tuple[str, str]]) -> Roles:
    images = [ext for ext, kind in kinds if _is_picture(ext, kind)]
    pictures = [ext for ext in images if not is_mask(ext)] or images  # masks alone are looked at as pictures
    masks = [ext for ext in images if ext not in pictures]
    arrays = [ext for ext in _of(kinds, *_DRAWN) if ext not in images]
    played = _of(kinds, *_PLAYED)
    written = _of(kinds, "json", "text", "cls")
    known = {*images, *arrays, *played, *written}
    rest = [ext for ext, _ in kinds if ext not in known]
    return Roles(*(tuple(part) for part in (pictures, masks, arrays, played, written, rest)))


def _is_picture(ext: str, kind: str) -> bool:
    return kind == "image" or (kind == "npy" and _SEEN.search(ext.rpartition(".")[0]) is not None)


def _of(kinds: Sequence[tuple[str, str]], *which: str) -> list[str]:
    return [ext for ext, kind in kinds if kind in which]


def is_mask(ext: str) -> bool:
    """Whether a field's name says that it is a mask.

    >>> is_mask("seg.png"), is_mask("png"), is_mask("left.mask.png")
    (True, False, True)
    """
    return _MASK.search(ext.rpartition(".")[0]) is not None
