"""The programs of docs/loops.md, each started by its first line on two processes: every record once."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tarviz.samples import write_shard

ROOT = Path(__file__).parents[2]
RECIPES = dict(
    re.findall(r"^## (.+?)\n.*?^```python\n(.*?)^```", (ROOT / "docs" / "loops.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
)
PARTS = {"PyTorch": 1}  # processes that train; two in all others
NEEDS = {
    "accelerate": ["accelerate"],
    "Trainer": ["transformers", "accelerate"],
    "Lightning": ["lightning"],
    "Keras on TensorFlow": ["tensorflow", "keras"],
    "Keras on torch": ["torch", "keras"],
    "Keras on JAX": ["jax", "tensorflow", "keras"],
    "Ray Train": ["ray", "torch"],
}
SRUN = """#!/bin/sh
# srun -n TASKS COMMAND: what SLURM tells each task
tasks=$2; shift 2; task=0
while [ $task -lt $tasks ]; do SLURM_PROCID=$task SLURM_NTASKS=$tasks "$@" & task=$((task + 1)); done
wait
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for shard in range(4):
        records = ((f"{n:04d}", {"cls": b"%d" % n}) for n in range(shard * 27, shard * 27 + 27))
        write_shard(tmp_path / "data" / f"train-{shard:04d}.tar", records)
    (tmp_path / "seen").mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "srun").write_text(SRUN)
    (tmp_path / "bin" / "srun").chmod(0o755)
    shutil.copy(Path(__file__).with_name("loop_model.py"), tmp_path / "model.py")
    return tmp_path


def case(name: str) -> object:
    marks = [pytest.mark.ray] if name.startswith("Ray") else [pytest.mark.programs]
    return pytest.param(name, marks=[*marks, pytest.mark.timeout(600)], id=name)


@pytest.mark.parametrize("name", [case(name) for name in RECIPES])
def test_every_record_comes_once(folder: Path, name: str) -> None:
    for package in NEEDS.get(name, ["torch"]):
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    (folder / "train.py").write_text(RECIPES[name])
    path = os.pathsep.join([str(folder / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    left = {"RANK", "WORLD_SIZE", "KERAS_BACKEND"}
    own = {"SEEN": str(folder / "seen"), "PATH": path, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    own |= {"RAY_raylet_start_wait_time_s": "300", "RAY_agent_register_timeout_ms": "300000"}  # a busy machine takes its time
    own |= {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}
    environment = {name: value for name, value in os.environ.items() if name not in left} | own
    line = RECIPES[name].splitlines()[0].removeprefix("# ")

    done = subprocess.run(line, shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=False)

    seen = [[n for batch in file.read_text().splitlines() for n in json.loads(batch)] for file in (folder / "seen").iterdir()]
    assert not done.returncode, done.stderr[-4000:]
    assert PARTS.get(name, 2) == len(seen), done.stderr[-4000:]
    assert list(range(108)) == sorted(number for part in seen for number in part), done.stderr[-4000:]
