"""A data set's card: what it counts, what the hub and mlcroissant read of it, what it leaves to people."""

from __future__ import annotations

import glob
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tarviz import cli, samples
from tarviz.commands.card import card, markdown
from tarviz.commands.ls import Field, Listing, ShardListing
from tarviz.model.errors import DataError, UsageError
from tarviz.testing.strategies import numbered_records, shard
from tests.commands.conftest import ROOT, plain

Make = Callable[..., Path]
READ = """
import json, sys, mlcroissant

found = mlcroissant.Dataset(jsonld=sys.argv[1])
assert not found.metadata.ctx.issues.errors, found.metadata.ctx.issues.report()
sets = {each.id: [] for each in found.metadata.record_sets}
for name in sets:
    for record in found.records(name):
        content = record[f"{name}/content"]
        shown = content.decode() if isinstance(content, bytes) else content if isinstance(content, int) else list(content.size)
        sets[name].append([record[f"{name}/key"].decode(), shown])
print(json.dumps(sets))
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two shards to train, one to validate: pictures with captions and JSON."""
    folder = tmp_path / "boats"
    folder.mkdir()
    content = plain(samples.zoo(tmp_path, kinds=["captions"], count=9)["captions"])
    content = [(key, {**fields, "cls": b"%d" % (at // 5 + at // 8)}) for at, (key, fields) in enumerate(content)]
    for name, some in (("train-0000", content[:4]), ("train-0001", content[4:7]), ("val-0000", content[7:])):
        (folder / f"{name}.tar").write_bytes(shard(some))
    return folder


def front(text: str) -> Any:
    yaml = pytest.importorskip("yaml", reason="YAML needs pyyaml: pip install 'tarviz[media]'")
    return yaml.safe_load(text.split("---\n")[1])


def test_it_counts_and_leaves_to_people_what_only_they_know(data: Path):
    result = card(data, data / "README.md")

    text = (data / "README.md").read_text("utf-8")
    assert [str(data / name) for name in ("README.md", "croissant.json", "sheet.png")] == result.outputs
    assert text == result.text
    assert "# boats\n\n9 records in 3 tar shards, with the fields jpg, txt, json, cls.\n" in text
    assert all(f"\n| {line}" in text for line in ("train | 2 | 7 | ", "validation | 1 | 2 | ", "jpg | ImageObject | 9 | "))
    assert "## Licence\n\n(to be filled in)" in text
    assert (data / "sheet.png").read_bytes().startswith(b"\x89PNG")
    assert result.croissant == json.loads((data / "croissant.json").read_text("utf-8"))


def test_its_head_says_to_the_hub_which_files_are_which_split(data: Path):
    head = front(card(data, data / "README.md").text)

    assert {"license": None, "pretty_name": "boats", "size_categories": ["n<1K"], "tags": ["webdataset"]} == {
        name: value for name, value in head.items() if name != "configs"
    }
    paths = {each["split"]: each["path"] for each in head["configs"][0]["data_files"]}
    assert {"train": ["train-*.tar"], "validation": ["val-*.tar"]} == paths
    assert ["train-0000.tar", "train-0001.tar"] == sorted(os.path.basename(name) for name in glob.glob(str(data / "train-*.tar")))


@pytest.mark.matrix
def test_datasets_reads_the_splits_of_the_card(data: Path, tmp_path: Path):
    pytest.importorskip("datasets", reason="datasets is not installed")
    card(data, data / "README.md")
    code = "import datasets, json, sys\nfound = datasets.load_dataset(sys.argv[1], streaming=True)\n"
    code += "print(json.dumps({name: [row['__key__'] for row in rows] for name, rows in found.items()}))"

    done = alone(code, str(data), tmp_path, HF_HUB_OFFLINE="1")

    assert {"train": [f"{at:09d}" for at in range(7)], "validation": ["000000007", "000000008"]} == json.loads(done)


def alone(code: str, argument: str, tmp_path: Path, **environment: str) -> str:
    """What a program of others prints, with a home of its own."""
    env = {**os.environ, "HOME": str(tmp_path), "CROISSANT_CACHE": str(tmp_path / "cache"), **environment}
    done = subprocess.run([sys.executable, "-c", code, argument], capture_output=True, text=True, cwd=ROOT, env=env, check=False)
    assert 0 == done.returncode, done.stderr
    return done.stdout.splitlines()[-1]


@pytest.mark.matrix
def test_mlcroissant_finds_no_fault_and_reads_the_records(data: Path, tmp_path: Path):
    pytest.importorskip("mlcroissant", reason="mlcroissant is not installed")
    card(data, data / "README.md")

    found = json.loads(alone(READ, str(data / "croissant.json"), tmp_path))

    expected = [record for name in sorted(data.glob("*.tar")) for record in plain(name)]
    assert ["jpg", "txt", "json", "cls"] == list(found)
    assert [[key, fields["txt"].decode()] for key, fields in expected] == sorted(found["txt"])
    assert [[key, int(fields["cls"])] for key, fields in expected] == sorted(found["cls"])
    assert [[key, [240, 180]] for key, _ in expected] == sorted(found["jpg"])
    assert [[key, fields["json"].decode()] for key, fields in expected] == sorted(found["json"])


def test_metadata_is_croissant_1_1_with_the_sums_of_the_shards(data: Path):
    made = card(data, data / "README.md").croissant

    files = {each["@id"]: each for each in made["distribution"] if each["@type"] == "cr:FileObject"}
    assert "http://mlcommons.org/croissant/1.1" == made["conformsTo"]
    assert {f"{name}.tar" for name in ("train-0000", "train-0001", "val-0000")} == set(files)
    whole = (data / "val-0000.tar").read_bytes()
    assert (hashlib.sha256(whole).hexdigest(), f"{len(whole)} B") == (files["val-0000.tar"]["sha256"], files["val-0000.tar"]["contentSize"])


def test_a_field_whose_ending_another_has_too_leaves_that_out(make: Make):
    made = card(make([("a/1", {"png": b"", "seg.png": b"", "cls": b"1"})])).croissant

    sets = {each["@id"]: each for each in made["distribution"] if each["@type"] == "cr:FileSet"}
    assert ["*.png", "*.PNG"] == sets["png-files"]["includes"]
    assert ["*.seg.png", "*.SEG.PNG"] == sets["png-files"]["excludes"]
    assert "excludes" not in sets["seg.png-files"]


def test_histograms_are_of_what_has_few_values_or_is_a_number(data: Path):
    pytest.importorskip("duckdb", reason="a table needs DuckDB: pip install 'tarviz[table]'")
    text = card(data).text

    bars = [f"{label}  {'█' * wide} {count}\n" for label, wide, count in ((0, 32, 5), (1, 20, 3), (2, 7, 1))]
    assert f"`cls`: 3 values, 0 records without\n\n```\n{''.join(bars)}```" in text
    assert "`json.similarity`: 9 values" in text
    drawn = [block.splitlines() for block in text.split("```")[1::2] if "█" in block]
    assert [1] * len(drawn) == [len({line.index("  █") for line in lines if line}) for lines in drawn]
    assert 1 < len(drawn)


def test_a_card_that_is_there_is_kept_unless_told(data: Path, capsys: pytest.CaptureFixture[str]):
    (data / "README.md").write_text("by hand")

    with pytest.raises(UsageError, match="exists already"):
        card(data, data / "README.md")
    assert ("by hand", False) == ((data / "README.md").read_text(), (data / "croissant.json").exists())
    assert 2 == cli.main(["card", str(data), "-o", str(data / "README.md")])
    assert "--replace" in capsys.readouterr().err
    assert 0 == cli.main(["card", str(data), "-o", str(data / "README.md"), "--replace", "--name", "ships"])
    assert "# ships\n" in (data / "README.md").read_text("utf-8")


def test_without_an_output_the_card_is_printed_and_nothing_else_made(data: Path, capsys: pytest.CaptureFixture[str]):
    assert 0 == cli.main(["card", str(data)])

    assert "| train | 2 | 7 |" in capsys.readouterr().out
    assert 3 == len(list(data.iterdir()))


def test_no_pictures_no_sheet(make: Make, tmp_path: Path):
    make([(key, {"txt": b"a"}) for key, _ in numbered_records(3)])

    result = card(tmp_path / "a.tar", tmp_path / "card" / "README.md")

    assert ["README.md", "croissant.json"] == [os.path.basename(name) for name in result.outputs]
    assert "sheet.png" not in result.text
    assert "../a.tar" == result.croissant["distribution"][0]["contentUrl"]


def test_damage_is_an_error(make: Make, tmp_path: Path):
    whole = shard(numbered_records(9))

    with pytest.raises(DataError, match="damaged"):
        card(make(whole[: len(whole) // 2 + 100]), tmp_path / "README.md")
    assert not (tmp_path / "README.md").exists()
    doubtful = card(make(whole.rstrip(b"\0")[:-700].ljust(len(whole) // 2, b"\0")[: len(whole) // 2 // 512 * 512]))
    assert 1 == doubtful.exit_code


def test_a_card_is_shown_as_markdown_and_told_as_data(data: Path, monkeypatch: pytest.MonkeyPatch):
    result = card(data)

    assert {"text/plain": result.text, "text/markdown": result.text} == result._repr_mimebundle_()
    assert {"records": 9, "outputs": [], "croissant": result.croissant} == result.to_dict()


def test_without_duckdb_there_are_no_histograms(data: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    text = card(data).text

    assert "## Values" not in text
    assert "## Fields" in text


def test_the_class_of_size_is_the_hubs():
    for records, size in [
        (0, "n<1K"),
        (999, "n<1K"),
        (1000, "1K<n<10K"),
        (9999, "1K<n<10K"),
        (10_000, "10K<n<100K"),
        (10**11, "100B<n<1T"),
        (10**15, "100B<n<1T"),
    ]:
        listing = Listing([ShardListing("a.tar", 10, records, {})])

        assert f"\nsize_categories:\n- {size}\ntags:" in markdown("d", "", listing, {"a.tar": "a.tar"}, [], False)


def test_the_whole_text(monkeypatch: pytest.MonkeyPatch):
    fields = {"seg.png": Field(3, 3000), "x|y": Field(2, 10)}
    shards = [ShardListing(name, 1500, 1200, fields) for name in ("t/train-00.tar", "t/train-01.tar", "t/dev-7.tar")]
    text = markdown("my data", "About.", Listing(shards), {each.url: each.url for each in shards}, ["bars"], True)

    assert (
        text
        == """---
license: # (to be filled in)
pretty_name: "my data"
size_categories:
- 1K<n<10K
tags:
- webdataset
configs:
- config_name: default
  data_files:
  - split: train
    path:
    - "t/train-*.tar"
  - split: validation
    path:
    - "t/dev-*.tar"
---

# my data

About.

Description: (to be filled in)

![The first records](sheet.png)

## Splits

| split | shards | records | size |
| --- | --: | --: | --: |
| train | 2 | 2,400 | 3.00 kB |
| validation | 1 | 1,200 | 1.50 kB |

## Fields

| field | kind | records | bytes | mean |
| --- | --: | --: | --: | --: |
| seg.png | ImageObject | 9 | 9.00 kB | 1.00 kB |
| x\\|y | Text | 6 | 30 B | 5 B |

## Values

bars

## Loading

```python
import tarviz

for record in tarviz.records("t/train-00.tar"):
    print(record.key, *record)
```

## Licence

(to be filled in)

## Source and citation

(to be filled in)
"""
    )
