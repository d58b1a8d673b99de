"""The demo's report: the whole page against one that was looked at, and what it says where nothing was timed or mistaken."""

from __future__ import annotations

import base64
import io
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tarviz.commands.demo import Demo
from tarviz.commands.demo.model import Comparison
from tarviz.commands.demo.report import page
from tarviz.commands.ls import Field, Listing, ShardListing

LOOKED_AT = Path(__file__).with_name("report.html")
FIELDS = {"png": Field(9, 2000), "cls": Field(9, 9)}


@pytest.fixture
def demo(photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Demo:
    """A demo that is done, what it trained made up: twenty pictures, three of them mistaken."""
    monkeypatch.chdir(tmp_path)
    Path("demo").mkdir()
    Path("demo/data").symlink_to(photos)
    made = Demo("demo")
    made.listing = Listing(
        [
            ShardListing("demo/data/train-0000.tar", 1_234_567, 375, FIELDS),
            ShardListing("demo/data/photos-0000.tar", None, 60, {"jpg": Field(60, 60)}),
        ]
    )
    training = made.training
    training.epochs = [{"accuracy": share, "val_accuracy": held} for share, held in ((0.71, 0.84), (0.93, 0.95), (0.98, 0.9612))]
    training.runs_on, training.seconds = "tensorflow", 7.6
    training.labels = np.arange(20) % 10
    training.keys = [f"test/n{at:08d}" for at in range(20)]
    training.images = np.linspace(0, 1, 20 * 28 * 28, dtype=np.float32).reshape(20, 28, 28, 1)
    answers = training.labels.copy()
    answers[[3, 13, 18]] = 5, 5, 1
    training.chances = np.full((20, 10), 0.03, np.float32)
    training.chances[np.arange(20), answers] = 0.73
    made.written = ["demo/tfrecord/train-1.tfrecord", "demo/tfrecord/train-2.tfrecord"]
    made.comparison = Comparison(1500, 1499, (0.5, 0.125))
    return made


def told(html: str) -> str:
    """What stands in the page, a line each; of a picture its kind and size, of a time that it is one."""

    def shown(found: re.Match[str]) -> str:
        picture = Image.open(io.BytesIO(base64.b64decode(found[2])))
        assert found[1] == str(picture.format).lower()
        return f'src="{picture.format} {picture.width} × {picture.height} {picture.mode}"'

    body = re.sub(r'src="data:image/(\w+);base64,([^"]+)"', shown, html.partition("<main")[2])
    return re.sub(r"\d+\.\d ms", "T ms", body).replace("><", ">\n<")


def test_the_page_is_the_one_that_was_looked_at(demo: Demo):
    found = told(page(demo))
    if not LOOKED_AT.exists():
        LOOKED_AT.write_text(found, "utf-8")
        pytest.fail(f"{LOOKED_AT.name} is new: look at it, then keep it")

    assert LOOKED_AT.read_text("utf-8") == found


def test_its_style_and_policy_are_in_it(demo: Demo):
    head = page(demo).partition("<main")[0]

    assert "<title>tarviz demo</title>" in head
    assert ".tarviz .figures" in head  # of demo.css


def test_where_nothing_was_timed_no_speed_is_told(demo: Demo):
    demo.training.runs_on = "jax"
    demo.comparison = Comparison(1500, 1500)
    html = page(demo)

    assert "fed straight from the shards" in html
    assert "in Keras on jax" in html
    assert "model.fit(pipeline.eager(batch=64, shuffle=1500), …)" in html
    assert "Read back and made tars again, since there is no TensorFlow here, <b>1,500 of 1,500</b>" in html
    assert "records are equal in every field, byte by byte.</p><h2>Try next</h2>" in html


def test_where_nothing_was_mistaken_it_says_so(demo: Demo):
    demo.training.chances = np.eye(10, dtype=np.float32)[demo.training.labels]
    html = page(demo)

    assert "<h2>What it gets wrong</h2><p>Nothing: all 20 pictures are recognised.</p>" in html
    assert "<b>1.000</b><span>test accuracy</span>" in html


def test_the_faster_of_the_two_is_named_first(demo: Demo):
    demo.comparison = Comparison(1500, 1500, (0.25, 0.5))

    assert "Tar is 2.0 times as fast here." in page(demo)


@pytest.mark.parametrize(("train", "test"), [(0.955, 0.96), (0.96, 0.955)])
def test_names_of_curves_that_end_close_together_are_moved_apart(demo: Demo, train: float, test: float):
    demo.training.epochs = [{"accuracy": 0.5, "val_accuracy": 0.5}, {"accuracy": train, "val_accuracy": test}]
    html = page(demo)

    places = {name: float(y) for y, name in re.findall(r'<text (?:class="label" )?x="586[^"]*" y="([\d.]+)">(train|test)<', html)}
    assert {"train", "test"} == set(places)
    assert (places["train"] < places["test"]) == (train > test)
    assert abs(places["train"] - places["test"]) >= 14
