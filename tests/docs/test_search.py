"""The site as it is built: its search finds the right page for what a newcomer types, and its headings go down by steps."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("myst_nb", reason="the site needs the extra docs")
pytest.importorskip("furo", reason="the site needs the extra docs")

import nbformat

from docs import pairs, site

pytestmark = [pytest.mark.programs, pytest.mark.timeout(900), pytest.mark.filterwarnings("ignore")]

BROWSE, KINDS, ASK = "notebooks/10-browse", "notebooks/12-captions-boxes-sound-text", "notebooks/15-ask-your-shards"
OPS, KERAS, TFRECORD, TORCH = "notebooks/20-op-chains", "notebooks/30-tfdata-and-keras", "notebooks/40-tfrecord", "notebooks/50-pytorch"
STORES, TOOLS, SPEED = "notebooks/65-object-stores", "notebooks/70-tar-tools", "notebooks/80-throughput"
INSTALL, FIRST, TRAINING, LOOPS, TROUBLE = "docs/install", "docs/first", "docs/training", "docs/loops", "docs/troubleshooting"
QUESTIONS = "docs/questions"
QUERIES = {
    "bounding boxes": KINDS,
    "brace expansion": "reference/stores",
    "webdataset migration": "docs/dialects/webdataset",
    "compression zstd": "reference/formats",
    "multi gpu ddp rank": TRAINING,
    "keyboard shortcuts": BROWSE,
    "E_TRUNCATED": TROUBLE,
    "W_SPLIT_RECORD": TROUBLE,
    "e_no_eof": TROUBLE,
    "install": INSTALL,
    "getting started": INSTALL,
    "first ten minutes": FIRST,
    "which extra": QUESTIONS,
    "glossary": QUESTIONS,
    "fiftyone": QUESTIONS,
    "quickstart": "notebooks/00-tour",
    "tutorial": "notebooks/00-tour",
    "pip install extras": INSTALL,
    "conda": INSTALL,
    "missing package": INSTALL,
    "read records in python": "docs/python",
    "write a shard": "reference/writing",
    "resize images": OPS,
    "decode jpeg": "reference/ops",
    "augmentation": OPS,
    "random crop": "reference/ops",
    "custom op": OPS,
    "pytorch dataloader": TORCH,
    "resume training": TRAINING,
    "shuffle": TRAINING,
    "mix datasets": TRAINING,
    "huggingface trainer": LOOPS,
    "lightning": LOOPS,
    "accelerate": LOOPS,
    "keras fit": KERAS,
    "tf.data": KERAS,
    "convert to tfrecord": TFRECORD,
    "tfrecord": TFRECORD,
    "s3": STORES,
    "s3 credentials": STORES,
    "google cloud storage": STORES,
    "azure blob": "docs/shell",
    "aistore": "docs/aistore",
    "http server": "notebooks/60-over-http",
    "ray cluster": "notebooks/90-many-machines",
    "sql query": ASK,
    "filter records": ASK,
    "near duplicates": ASK,
    "tags": ASK,
    "sort shards": TOOLS,
    "split into train and validation": TOOLS,
    "merge tars": TOOLS,
    "damaged shard": TROUBLE,
    "verify": "reference/shell",
    "jupyterlab": "docs/hosts",
    "vscode": "docs/hosts",
    "colab": "docs/hosts",
    "benchmark": SPEED,
    "slow training loop": TROUBLE,
    "audio waveform": KINDS,
    "video": "docs/gallery",
    "point cloud": "docs/gallery",
    "environment variables": "reference/config",
    "slides presentation": "slides/index",
    "tar2tf": "docs/dialects/tar2tf",
    "go-tfdata": "docs/dialects/tfdata",
    "webdataset": "docs/dialects/webdataset",
    "error codes": TROUBLE,
    "exit code": "reference/shell",
    "export coco": "docs/recipes",
    "embeddings map": "docs/gallery",
    "plugin": "CONTRIBUTING",
    "changelog": "CHANGELOG",
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site with notebooks that were not run."""
    from sphinx.cmd.build import build_main

    folder = tmp_path_factory.mktemp("site")
    for name in ("notebooks", "slides"):
        (folder / name).mkdir()
    for path in (site.ROOT / "notebooks").glob("*.md"):
        nbformat.write(pairs.parse(path.read_text("utf-8")), folder / "notebooks" / f"{path.stem}.ipynb")
    site.assemble(folder / "sources", folder / "notebooks", folder / "slides")
    assert 0 == build_main(
        ["-Q", "-c", str(site.ROOT / "docs"), "-d", str(folder / "cache"), str(folder / "sources"), str(folder / "site")]
    )
    return folder / "site"


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_right_page_is_among_the_first_three(built: Path):
    command = ["node", str(Path(__file__).with_name("search.mjs")), str(built), json.dumps(list(QUERIES))]
    answers = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    wrong = {
        query: found
        for (query, page), found in zip(QUERIES.items(), answers, strict=True)
        if page not in [name.partition("#")[0] for name in found]
    }

    assert {} == wrong
    assert "docs/troubleshooting#codes:~:text=E_TRUNCATED" == answers[list(QUERIES).index("E_TRUNCATED")][0]


def test_headings_go_down_by_steps(built: Path):
    for path in built.rglob("*.html"):
        article = path.read_text("utf-8").partition("<article")[2].partition("</article>")[0]
        levels = [0, *map(int, re.findall(r"<h([1-6])\b", article))]

        assert all(after <= before + 1 for before, after in itertools.pairwise(levels)), path.name


def test_pages_load_the_search_and_the_buttons_that_copy(built: Path):
    page = (built / "search.html").read_text("utf-8")

    assert {"search.js", "copy.js"} == set(re.findall(r'defer="defer" src="_static/(\w+\.js)', page))
    assert "searchtools.js" in page
