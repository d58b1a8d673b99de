"""Class numbers: the number, the class's name where the reader gave names, its place in the histogram; a name in a number's place."""

from __future__ import annotations

from tarviz.model.errors import DataError
from tarviz.ops.values.payloads import decode_class
from tarviz.viewers.panel import Meta, Panel, Plot, Text

EXTENSIONS = ("cls", "cls2", "class", "index", "inx", "id", "label", "count")
MOST_BARS = 256


def view(blob: memoryview, meta: Meta) -> Panel:
    try:
        number = int(decode_class(blob))
    except DataError:
        text = bytes(blob[:1000]).decode("utf-8", "replace").strip()
        if meta.ext.rpartition(".")[2] in ("label", "id", "index", "class") or (
            text[:1].isalpha() and text.isprintable() and len(blob) <= 1000
        ):
            return Panel(text[:80], [Text(text, numbered=False)])
        raise
    classes = meta.options.get("classes") or ()
    name = str(classes[number]) if 0 <= number < len(classes) else ""
    panel = Panel(f"{number} {name}".strip(), [Text(f"{number} {name}".strip(), numbered=False)], [("class", str(number))])
    if name:
        panel.facts.append(("name", name))
    counts = meta.options.get("histogram") or {}
    if counts:
        ranked = sorted(counts.items(), key=lambda item: -item[1])
        place = next((at for at, (name, _) in enumerate(ranked) if name == str(number)), None)
        bars = tuple(float(count) for _, count in ranked[:MOST_BARS])
        marked = place if place is not None and place < MOST_BARS else None
        panel.blocks.append(Plot("bars", (("records", bars),), "records per class, most frequent first", marked))
        panel.facts.append(("records of this class", f"{counts.get(str(number), 0):,} of {sum(counts.values()):,} sampled"))
        if place is not None:
            panel.facts.append(("place by frequency", f"{place + 1} of {len(ranked)} classes"))
    return panel
