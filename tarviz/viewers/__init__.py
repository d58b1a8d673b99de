"""A file here shows one kind of field: `view(blob, meta) -> Panel`, and the extensions and magic bytes it is for.

Besides `view`, a viewer module may have `EXTENSIONS` (the last parts of extensions it shows, one or two, lower case), `MAGIC` (byte
strings its payloads start with), `claims(head) -> bool` for longer magic, and `tile(blob, meta, size) -> bytes | str`: an
encoded picture of at most `size` pixels a side for the grid, or a short text. Which viewer shows a payload: the one asked
for by name, else by extension, else by magic bytes, else text where the bytes are UTF-8, else hexadecimal. Others add
theirs by the entry point group `tarviz.viewers`.
"""

from tarviz.viewers.panel import Audio, Control, Frames, Hex, Image, Meta, Note, Panel, Plot, Points, Table, Text, Tree, Turns, Video
from tarviz.viewers.registry import choose, kinds, picture_size, refusal, tile, view

__all__ = [
    "Audio", "Control", "Frames", "Hex", "Image", "Meta", "Note", "Panel", "Plot", "Points", "Table", "Text", "Tree", "Turns", "Video",
    "choose", "kinds", "picture_size", "refusal", "tile", "view",
]  # fmt: skip
