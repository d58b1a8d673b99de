"""Every line of the recipes is run, in order, on data of the form that it is for."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

import tarviz
from tarviz import cli, samples
from tarviz.commands.convert import convert
from tarviz.testing.strategies import shard
from tests.commands.conftest import ROOT, plain

LINES = re.findall(r"^\$ tarviz (.*)$", (ROOT / "docs" / "recipes.md").read_text("utf-8"), re.MULTILINE)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with everything that the page speaks of, six records each."""
    kinds = {name: plain(path) for name, path in samples.zoo(tmp_path / "zoo", kinds=["captions", "coco", "yolo", "voc"], count=6).items()}

    def put(place: str, data: bytes) -> None:
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_bytes(data)

    for at, (key, fields) in enumerate(kinds["captions"]):
        put(f"pets/{'cat' if at < 3 else 'dog'}/{at}.jpg", fields["jpg"])
        put(f"photos/{at}.jpg", fields["jpg"])
        for ext, data in fields.items():
            put(f"captions/{key}.{ext}", data)
    rows = "".join(f"{at}.jpg,{['boat', 'car'][at % 2]}\n" for at in range(6))
    put("photos.csv", f"file,label\n{rows}".encode())
    put("scores.csv", b"filename,quality\n" + b"".join(b"%09d.jpg,%d\n" % (at, at) for at in range(5)))
    put("masks.tar", shard([(key, {"mask.png": b"m"}) for key, _ in kinds["captions"]]))
    put("source.tar", shard(kinds["captions"]))
    convert(tmp_path / "source.tar", tmp_path / "photos.tfrecord")
    images, annotations = [], []
    for key, fields in kinds["coco"]:
        said = json.loads(fields["json"])
        put(f"coco/{key}.jpg", fields["jpg"])
        images.append({"id": said["image_id"], "file_name": f"{Path(key).name}.jpg", "width": said["width"], "height": said["height"]})
        annotations += said["annotations"]
    whole = {"images": images, "annotations": annotations, "categories": said["categories"]}
    put("coco/annotations/instances_val2017.json", json.dumps(whole).encode())
    for key, fields in kinds["yolo"]:
        put(f"yolo/images/train/{Path(key).name}.jpg", fields["jpg"])
        put(f"yolo/labels/train/{Path(key).name}.txt", fields["txt"])
    put("yolo/data.yaml", b"names: [disc, square, triangle, star]\n")
    for key, fields in kinds["voc"]:
        put(f"VOC2012/JPEGImages/{key}.jpg", fields["jpg"])
        put(f"VOC2012/Annotations/{key}.xml", fields["xml"])
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.matrix
def test_every_line_does_what_the_page_says(home: Path, capsys: pytest.CaptureFixture[str]):
    for package in ("duckdb", "pyarrow", "yaml"):
        pytest.importorskip(package, reason=f"recipes need {package}: pip install 'tarviz[table,media]'")
    said: dict[str, str] = {}
    for line in LINES:
        code = cli.main(shlex.split(line))
        out, err = capsys.readouterr()
        assert (0, "") == (code, re.sub(r"^.*\r", "", err)), line
        said[line] = out

    names = ("pets", "captions", "photos", "coco", "yolo-train", "voc", "from-examples", "scored", "both", "rated")
    assert [6] * 9 + [5] == [len(plain(home / f"{name}.tar")) for name in names]
    assert all(re.search(r"star +\d", out) for line, out in said.items() if line.startswith("objects"))
    assert 6 == sum(len(plain(path)) for path in (home / "parts").glob("*.tar"))
    assert "\n| train | 1 | " in (home / "parts" / "README.md").read_text("utf-8")


@pytest.mark.matrix
def test_the_lines_in_python_run(home: Path):
    pytest.importorskip("tensorflow", reason="tf.data needs TensorFlow: pip install 'tarviz[tensorflow]'")
    assert 0 == cli.main(["create", "pets/", "-o", "pets.tar"])
    pictures = [{"bytes": (home / "photos" / f"{at}.jpg").read_bytes(), "path": None} for at in range(6)]
    names = {"tarviz": tarviz, "dataset": [{"image": picture, "label": at} for at, picture in enumerate(pictures)]}
    for block in re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "recipes.md").read_text("utf-8"), re.DOTALL):
        exec(block, names)

    assert [(picture["bytes"], b"%d" % at) for at, picture in enumerate(pictures)] == [
        (fields["jpg"], fields["cls"]) for _, fields in plain(home / "out" / "train-1.tar")
    ]
    assert [(6, 224, 224, 3)] == [tuple(batch[0].shape) for batch in names["batches"]]


@pytest.mark.matrix
def test_the_first_ten_minutes_run_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    pytest.importorskip("duckdb", reason="a condition needs duckdb: pip install 'tarviz[table]'")
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "first.md").read_text("utf-8")
    samples.digits("data")
    for line in re.findall(r"^\$ tarviz (.*)$", page, re.MULTILINE):
        assert 0 == cli.main(shlex.split(line)), line
    capsys.readouterr()
    (block,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(block, {})

    assert capsys.readouterr().out.endswith("\n(32, 28, 28, 3) int64\n")
