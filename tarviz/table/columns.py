"""Which columns the fields of a data set give, and what has to be read to make each.

A part is what is made together: `names` comes from the index, `head` from the first bytes of payloads, `value` from small
payloads, `content`, `quality` and `vector` from whole ones.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

Tier: TypeAlias = Literal["names", "head", "value", "content", "quality", "vector"]
Kind: TypeAlias = Literal["number", "text", "json", "picture", "sound", "array", "tensors", "bytes"]

_TEXTS = (  # what the text viewer takes
    "txt", "text", "transcript", "caption", "md", "rst", "csv", "tsv", "html", "htm", "xml", "svg", "yaml", "yml", "toml",
    "ini", "log", "srt", "vtt", "py", "js", "css", "sh", "tex", "prompt", "url", "hocr", "alto", "smi", "label", "label_2",
)  # fmt: skip
_KINDS: dict[Kind, frozenset[str]] = {
    "number": frozenset({"cls", "cls2", "class", "index", "id"}),
    "text": frozenset(_TEXTS),
    "json": frozenset({"json", "jsonl", "ndjson", "geojson"}),
    "picture": frozenset({"jpg", "jpeg", "png", "gif", "bmp", "webp", "ppm", "pgm", "pbm", "tif", "tiff"}),
    "sound": frozenset({"wav", "flac", "mp3", "ogg", "opus", "m4a", "mp4", "webm", "mov", "mkv", "avi"}),
    "array": frozenset({"npy"}),
    "tensors": frozenset({"safetensors"}),
}
_HEAD: dict[Kind, tuple[str, ...]] = {"picture": ("width", "height", "mode"), "sound": ("duration", "rate"), "array": ("dtype", "shape")}
_WHOLE: dict[Kind, dict[str, Tier]] = {
    "picture": {"decodable": "content", "mean": "content", "phash": "content", "brightness": "quality", "sharpness": "quality"},
    "text": {"length": "quality"},
    "array": {"vector": "vector"},
    "tensors": {"vector": "vector"},
}
ON_REQUEST = frozenset({"content", "quality", "vector"})  # tiers of whole payloads; `SELECT *` leaves them out
MAX_FIELDS = 256  # extensions of a shard that get columns
RECORD = ("key", "shard", "n", "size")  # columns every record has


class Part(NamedTuple):
    """What is made together: a tier, and the extension it is of (empty for what is of the whole record)."""

    tier: Tier
    ext: str = ""


NAMES = Part("names")


def kind(ext: str) -> Kind:
    """What a field holds, by the last part of its extension.

    >>> kind("seg.png"), kind("cls"), kind("bin")
    ('picture', 'number', 'bytes')
    >>> kind("json.gz"), kind("csv"), kind("png.gz")
    ('json', 'text', 'bytes')
    """
    last = ext.removesuffix(".gz").rpartition(".")[2]
    if last != ext.rpartition(".")[2] and last not in _KINDS["json"] | _KINDS["text"]:
        return "bytes"
    return next((name for name, exts in _KINDS.items() if last in exts), "bytes")


def of_field(ext: str) -> dict[str, Part]:
    """The columns of a field, and the part that makes each.

    >>> sorted(of_field("npy"))
    ['npy.checksum', 'npy.dtype', 'npy.shape', 'npy.size', 'npy.vector']
    """
    found = {f"{ext}.size": NAMES}
    what = kind(ext)
    if what in ("number", "text", "json"):
        found[ext] = Part("value", ext)
    if what == "json":
        found[f"{ext}.bad"] = Part("value", ext)
    found |= {f"{ext}.{name}": Part("head", ext) for name in _HEAD.get(what, ())}
    found[f"{ext}.checksum"] = Part("content", ext)
    return found | {f"{ext}.{name}": Part(tier, ext) for name, tier in _WHOLE.get(what, {}).items()}


def text_of(ext: str) -> str:
    """The column that keeps the documents of a JSON field as they were written; no question sees it."""
    return f"{ext}:text"


def small_of(ext: str) -> str:
    """The column that keeps pictures small and grey, to be compared; no question sees it."""
    return f"{ext}:small"


def is_hidden(column: str) -> bool:
    """Whether this is a column that no question sees."""
    return column.endswith((":text", ":small"))


def of_fields(exts: list[str]) -> dict[str, Part]:
    """Every column that records with these fields have or can be given, in the order they are shown."""
    found = dict.fromkeys(RECORD, NAMES)
    for ext in exts:
        found.update(of_field(ext))
    return found
