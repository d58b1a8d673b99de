"""Every code sample of the five texts runs, with the edits that samples.toml lists."""

from __future__ import annotations

import gzip
import io
import json
import logging
import os
import shutil
import subprocess
import sys
import tomllib
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tarviz.model import plugins
from tarviz.model.errors import TarvizWarning
from tarviz.samples import write_shard
from tests.conftest import DATA

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TEXTS = DATA / "texts"  # their lines of code, each where it stands in its text; the rest is left empty
SAMPLES: list[dict[str, Any]] = tomllib.loads((HERE / "samples.toml").read_text("utf-8"))["sample"]
OLD_NAMES = {"tarscat": "cat", "tar2tsv": "tsv", "tarsplit": "split", "tarshow": "show", "tarproc": "proc"}
SCRIPTS: dict[str, str] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]


def of(*texts: str) -> Any:
    """All samples of these texts."""
    return pytest.mark.parametrize("sample", [pytest.param(sample, id=sample["name"]) for sample in SAMPLES if sample["text"] in texts])


def picture(number: int, size: tuple[int, int], form: str) -> bytes:
    grid = np.mgrid[0 : size[1], 0 : size[0]]
    image = np.stack([grid[0] * 3 + number, grid[1] * 2, np.full_like(grid[0], 40 * number)], axis=2).astype(np.uint8)
    stream = io.BytesIO()
    Image.fromarray(image).save(stream, form)
    return stream.getvalue()


def pack(path: Path) -> None:
    path.with_suffix(".tar.gz" if path.suffix == ".tar" else path.suffix).write_bytes(gzip.compress(path.read_bytes()))


class Model:
    """What the texts call `model`: it takes what a Keras model takes, batch by batch."""

    def fit(self, dataset: Any, epochs: int) -> None:
        batches = [batch for _ in range(epochs) for batch in dataset]
        assert batches
        assert all(len(batch) == 2 for batch in batches)


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`train-{0..7}.tar.gz`, three pictures each."""
    folder = tmp_path_factory.mktemp("bucket")
    for shard in range(8):
        path = folder / f"train-{shard}.tar"
        write_shard(
            path,
            (
                (
                    f"train/{shard}{n}",
                    {
                        "jpg": picture(shard * 3 + n, (64, 48), "JPEG"),
                        "img": picture(n, (16, 16), "PNG"),
                        "cls": b"%d" % n,
                        "lab1": b"label",
                    },
                )
                for n in range(3)
            ),
        )
        pack(path)
    return folder


class TestTar2tf:
    @of("000", "001")
    @pytest.mark.matrix
    def test_sample(self, sample: dict[str, Any], bucket: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        tf = pytest.importorskip("tensorflow", reason="TensorFlow: pip install 'tarviz[tensorflow-cpu]'")
        from tarviz.dialects import tar2tf
        from tarviz.dialects.tar2tf import ops

        monkeypatch.chdir(tmp_path)
        names = {"BUCKET_NAME": str(bucket), "PROXY_URL": "http://localhost:8080", "BATCH_SIZE": 4, "EPOCHS": 2, "model": Model(), "tf": tf}
        operations = {name: getattr(ops, name) for name in ops.__all__}
        api = {name: getattr(tar2tf, name) for name in ("AisDataset", "Dataset", "default_record_parser")}

        def f(record: dict[str, Any]) -> dict[str, Any]:
            record["jpg"] = 255 - record["jpg"]
            return record

        namespace: dict[str, Any] = {**names, **operations, **api, "f": f}
        if "warns" in sample:
            with pytest.warns(TarvizWarning, match=sample["warns"]):
                exec(sample["code"], namespace)
        else:
            exec(sample["code"], namespace)
        for name in ("train_dataset", "test_dataset"):
            if name in namespace:
                assert 12 == sum(len(labels) for _, labels in namespace[name])


class TestTfdata:
    @of("002")
    def test_sample(self, sample: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        from tarviz.dialects.tfdata import Pipeline, core, selection, transform
        from tarviz.formats import example, tfrecord

        records = [(f"a/{n:02d}", {"jpeg": b"%d" % n, "image": b"i", "cls": b"%d" % n}) for n in range(25)]
        write_shard(tmp_path / "in.tar", records)
        pack(tmp_path / "in.tar")
        caplog.set_level(logging.INFO)
        namespace = {"Pipeline": Pipeline, "core": core, "selection": selection, "transform": transform, "logging": logging}
        namespace |= {"ThreadPoolExecutor": ThreadPoolExecutor, "remote_function": lambda made: made | {"seen": b"yes"}}
        with (tmp_path / "in.tar").open("rb") as a, (tmp_path / "in.tar.gz").open("rb") as b, (tmp_path / "out").open("wb") as out:
            exec(sample["code"], {**namespace, "in_file": a, "in_file_gz": b, "out_file": out})
        found = [example.decode(data) for data in tfrecord.read((tmp_path / "out").read_bytes())]

        expected: dict[str, Any] = {"__key__": [b"a/03"], "jpeg": [b"3"], "image": [b"i"], "cls": [b"3"]}
        changes = {"go-types": {"cls": [3]}, "go-faas": {"seen": [b"yes"]}, "go-readers": None}
        if sample["name"] == "go-selection":
            expected = {"image": [b"i"]}
        if changes.get(sample["name"], {}) is not None:
            assert 25 == len(found)
            assert {**expected, **(changes.get(sample["name"]) or {})} == found[3]
        if sample["name"] == "go-logger":
            assert ["read 10 examples", "read 20 examples"] == caplog.messages


@pytest.fixture(scope="module")
def toy_results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, BaseException | None]:
    """The samples one after the other: each builds on the one before."""
    pytest.importorskip("tensorflow", reason="TensorFlow: pip install 'tarviz[tensorflow-cpu]'")
    namespace, found = toys(tmp_path_factory.mktemp("toys")), {}
    for sample in SAMPLES:
        if sample["text"] == "003":
            try:
                exec(sample["code"], namespace)
                found[sample["name"]] = None
            except Exception as error:  # noqa: BLE001  raised by the test of this sample
                found[sample["name"]] = error
    return found


class TestTFRecorder:
    @of("003")
    @pytest.mark.matrix
    def test_sample(self, sample: dict[str, Any], toy_results: dict[str, BaseException | None]) -> None:
        if (error := toy_results[sample["name"]]) is not None:
            raise error

    def test_the_lines_of_the_text_itself(self, tmp_path: Path) -> None:
        pytest.importorskip("tensorflow", reason="TensorFlow: pip install 'tarviz[tensorflow-cpu]'")
        text = seed("003")
        parts = [part.partition("```")[0] for part in text.split("```python\n")[1:]]
        edits = [
            ("from tfrecorder.helpers.decorator import", "from tarviz.dialects.tfrecorder import"),  # imports
            ("from tfrecorder.helpers.marshaller import", "from tarviz.dialects.tfrecorder import"),
            ("ToyExample('%s_%d' % (self.name, self._label))", "ToyExample('%s_%d' % (self.name, i), self._label)"),  # two arguments
            ("src_data = self.src_data", "src_data = self.data"),  # never set
            ("chunked_example.src_data", "chunked_example.data"),
            ("'/my/path/where/to/save'", "save_folder"),  # folders
            ("'/my/path/to/csv_file'", "csv_file"),
            ("'/my/path/to/data'", "data_folder"),
            ("'my/path/where/to/save/train'", "save_folder + '/train'"),
        ]
        code = "\n".join(parts[:6]) + "\n\n" + "\n".join(parts[6:])
        for old, new in edits:
            assert old in code, old
            code = code.replace(old, new)

        namespace = toys(tmp_path)
        exec(code, namespace)
        assert (4, 2) == (len(list(namespace["dataset"])) // 3, len(namespace["l"]))


def toys(folder: Path) -> dict[str, Any]:
    """Arrays of 12 bins, their list, and the names that the text leaves open."""
    from tarviz.dialects import tfrecorder

    (folder / "data").mkdir()
    for label in range(6):
        np.save(folder / "data" / f"toy-{label}.npy", np.arange(1, 13, dtype=np.float32) * (label + 1))
    (folder / "list.csv").write_text("".join(f"toy-{label},{label}\n" for label in range(6)))
    names = {"data_folder": str(folder / "data"), "save_folder": str(folder / "out"), "csv_file": str(folder / "list.csv")}
    names |= {"np": np, "os": os, "print": lambda *values: None}
    return {**names, "Example": tfrecorder.Example, "tfrecordable": tfrecorder.tfrecordable, "tf_factory": tfrecorder.factory}


def present(need: str) -> bool:
    """Whether a verb, an old tool's script or a program is there."""
    if need == "gm":
        return shutil.which(need) is not None
    return need in SCRIPTS if need in OLD_NAMES else need in plugins.names("commands")


def script(old: str, verb: str) -> str:
    """What a shell runs under a tool's old name, whether the project is installed or not."""
    if old not in SCRIPTS:
        return f'#!/bin/sh\nexec "{sys.executable}" -m tarviz {verb} "$@"\n'
    module, _, function = SCRIPTS[old].partition(":")
    return f"#!{sys.executable}\nimport sys\nfrom {module} import {function}\nsys.argv[0] = {old!r}\nsys.exit({function}())\n"


def deck_shards(folder: Path) -> None:
    for shard in range(4):
        path = folder / f"imagenet_train-{shard:04d}.tgz"
        write_shard(path, ((f"n{shard}_{n}", {"cls": b"%d" % n, "jpg": picture(n, (300, 280), "JPEG")}) for n in range(1, 13)))
        pack(path)
    for name in ("original-0000", "original-0001", "small"):
        write_shard(folder / f"{name}.tar", ((f"n_{n}", {"cls": b"%d" % n, "jpg": picture(n, (60, 50), "JPEG")}) for n in range(10)))
    for name in ("scanned-0000", "scanned-0001"):
        write_shard(folder / f"{name}.tar", ((f"page{n}", {"png": picture(n, (20, 30), "PNG")}) for n in range(3)))
    (folder / "imagenet-raw/train").mkdir(parents=True)
    for n in range(5):
        (folder / f"imagenet-raw/train/{n}.cls").write_text(str(n))
        (folder / f"imagenet-raw/train/{n}.jpg").write_bytes(picture(n, (20, 20), "JPEG"))


@pytest.fixture(scope="module")
def deck_results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """All samples that can run here, in order, in one process."""
    for package in ("torch", "matplotlib", "IPython"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    folder = tmp_path_factory.mktemp("deck")
    deck_shards(folder)
    scripts = folder / "bin"
    scripts.mkdir()
    for old, verb in OLD_NAMES.items():
        (scripts / old).write_text(script(old, verb))
        (scripts / old).chmod(0o755)
    code = [
        {"name": each["name"], "code": each["code"]}
        for each in SAMPLES
        if each["text"] == "004" and all(map(present, each.get("needs", [])))
    ]
    path = f"{scripts}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [sys.executable, HERE / "deck_runner.py"],
        input=json.dumps(code),
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PATH": path},
        timeout=110,
        check=False,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert len(code) == len(lines), done.stderr
    return {line["name"]: {**line, "folder": folder} for line in lines}


@pytest.mark.torch
class TestDeck:
    EXPECTED = {
        "deck-mnist-transform": "torch.Size([1, 28, 28]) torch.float32",
        "deck-loader-workers": "torch.Size([16, 1, 28, 28]) torch.float32",
        "deck-curl": "n0_1.cls",
        "deck-iterate": "1\n",
        "deck-base": "a WebDataset can only be iterated over",
        "deck-torch": "torch.Size([3, 280, 300])",
        "deck-dataloader": "torch.Size([6, 3, 224, 224]) torch.Size([6])",
        "deck-tarscat": "10\n",
        "deck-tar2tsv": "n0_1\t1",
    }

    @of("004")
    def test_sample(self, sample: dict[str, Any], deck_results: dict[str, dict[str, Any]]) -> None:
        if missing := [need for need in sample.get("needs", []) if not present(need)]:
            pytest.skip(f"there is no {missing[0]} yet")
        result = deck_results[sample["name"]]
        folder: Path = result["folder"]

        assert result["error"] is None, result["error"]
        assert self.EXPECTED.get(sample["name"], "") in result["out"]
        from tarviz.read import stream as read_stream

        written = {
            "deck-tarsplit": ["imagenet_train-000000.tar"],
            "deck-tarproc": ["out.tar"],
            "deck-kujob": ["ocr-0000.tar", "ocr-0001.tar"],
            "deck-map-pool": ["out2.tar"],
            "deck-shards-pool": ["rescaled-0000.tar", "rescaled-0001.tar"],
        }
        for name in written.get(sample["name"], ()):
            with warnings.catch_warnings():
                found = list(read_stream.records(folder / name))
            assert {"deck-tarsplit": 5, "deck-kujob": 3}.get(sample["name"], 10) == len(found)
            if "png" in found[0] and sample["name"] in ("deck-map-pool", "deck-shards-pool"):
                assert (256, 256) == Image.open(io.BytesIO(found[0]["png"])).size


class TestTable:
    def test_names_are_unique(self) -> None:
        assert len(SAMPLES) == len({sample["name"] for sample in SAMPLES})

    @of("000", "001", "004")
    def test_the_edits_are_all_that_differs(self, sample: dict[str, Any]) -> None:
        if "edits" not in sample and "notes" in sample:
            pytest.skip("its notes say what it became")
        first, last = sample["lines"]
        original = "\n".join(seed(sample["text"]).split("\n")[first - 1 : last])
        for old, new, _ in sample.get("edits", []):
            assert old in original
            original = original.replace(old, new)

        assert original.strip("\n") == sample["code"].strip("\n")

    @pytest.mark.parametrize("text", ["000", "003", "004"])
    def test_every_block_of_code_is_listed(self, text: str) -> None:
        lines = seed(text).split("\n")
        fences = [number for number, line in enumerate(lines, 1) if line.startswith("```")]
        blocks = zip(fences[::2], fences[1::2], strict=True)
        listed = {(first - 1, last + 1) for sample in SAMPLES if sample["text"] == text for first, last in [sample["lines"]]}

        assert [] == [block for block in blocks if block not in listed]

    @of("000", "001", "002", "003", "004")
    def test_what_differs_is_explained(self, sample: dict[str, Any]) -> None:
        assert sample["text"] not in ("002", "003") or sample["notes"]
        edits = sample.get("edits", [])
        assert not edits or any(why for *_, why in edits), "one reason for the edits of a sample is enough"


def seed(text: str) -> str:
    return (TEXTS / f"{text}.txt").read_text("utf-8")
