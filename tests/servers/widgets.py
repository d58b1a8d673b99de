"""The pages of the widgets on small shards, for the JavaScript tests: prints their addresses as JSON, ends when its input does."""

from __future__ import annotations

import io
import json
import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from PIL import Image

from tarviz.widgets.bench.controller import BenchRun
from tarviz.widgets.browse.controller import Browser
from tarviz.widgets.compare.controller import Compare
from tarviz.widgets.host.page import ControllerPage
from tests.widgets.conftest import png, records, tar
from tests.widgets.map.test_map_answers import embedded

CHAINS = {
    "small": "decode(png)|resize(png, (20, 30))|convert(png, float32)",
    "turned": "decode(png)|rotate(png)|flip(png)",
    "bad": "decode(png)|random_crop(png, (99, 99))",
}
BOXES = [{"bbox": [1, 1, 3, 3], "label": "cat"}, {"bbox": [6, 2, 4, 4], "label": "dog"}]


def stored(found: list[tuple[str, dict[str, bytes]]]) -> list[tuple[str, dict[str, bytes]]]:
    """The same records with pictures that are not compressed: their bytes are the same whatever zlib there is."""
    for _, fields in found:
        out = io.BytesIO()
        Image.open(io.BytesIO(fields["png"])).save(out, "PNG", compress_level=0)
        fields["png"] = out.getvalue()
    return found


def main() -> None:
    """Serve until the input ends."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        place = Path(folder)
        os.chdir(place)  # what a page writes without a folder
        os.environ["XDG_CACHE_HOME"] = folder
        three = [tar(place / f"s-{number}.tar", stored(records(number * 20, 20))) for number in range(3)]
        for key, fields in (kinds := stored(records(1, 6))):
            fields["txt"] = f"a red disc, {key}".encode()
        kinds[0][1]["json"] = json.dumps({"annotations": BOXES}).encode()
        pictures = [(f"p/n{n}", {"png": png((n * 40, 9, 90), (60, 40))}) for n in range(6)]
        (place / "map").mkdir()
        controllers = {
            "browse": Browser(three, cache=False),
            "kinds": Browser(tar(place / "kinds.tar", kinds), cache=False),
            "map": Browser(embedded(place / "map", 60), cache=False),
            "compare": Compare(tar(place / "p.tar", pictures), CHAINS, records=3),
            "bench": BenchRun(three, "decode(png)|flip(png)", batch=4, seconds=0.2, workers=(0,)),
        }
        print(json.dumps({name: stack.enter_context(ControllerPage(each).start()).url for name, each in controllers.items()}), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
