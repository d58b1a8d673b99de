"""Runs the code samples of the slide deck one after the other, as a notebook would, in a process of their own.

`python deck_runner.py` in the folder with the shards: samples as JSON on stdin, one line of JSON for each on stdout. The
module `stand_in` takes the place of torchvision: the same names, digits of scikit-learn or noise instead of a download.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import traceback
import types
import warnings
from contextlib import redirect_stdout
from typing import Any

os.environ["MPLBACKEND"] = "Agg"


def stand_in() -> types.ModuleType:
    """What the deck takes from torchvision."""
    import numpy as np
    import torch
    from PIL import Image

    random = np.random.default_rng(0)

    class Compose:
        def __init__(self, steps: list[Any]) -> None:
            self.steps = steps

        def __call__(self, value: Any) -> Any:
            for step in self.steps:
                value = step(value)
            return value

    class Resize:
        def __init__(self, size: int) -> None:
            self.size = size

        def __call__(self, image: Any) -> Any:
            scale = self.size / min(image.size)
            return image.resize((round(image.width * scale), round(image.height * scale)))

    class RandomCrop:
        def __init__(self, size: int) -> None:
            self.size = size

        def __call__(self, image: Any) -> Any:
            left, top = (int(random.integers(side - self.size + 1)) for side in image.size)
            return image.crop((left, top, left + self.size, top + self.size))

    class RandomHorizontalFlip:
        def __call__(self, image: Any) -> Any:
            return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if random.random() < 0.5 else image

    class ToTensor:
        def __call__(self, image: Any) -> Any:
            array = np.asarray(image, np.float32) / 255
            return torch.from_numpy(array[None] if array.ndim == 2 else np.ascontiguousarray(array.transpose(2, 0, 1)))

    class Normalize:
        def __init__(self, mean: tuple[float, ...], std: tuple[float, ...]) -> None:
            self.mean, self.std = (torch.tensor(values)[:, None, None] for values in (mean, std))

        def __call__(self, image: Any) -> Any:
            return (image - self.mean) / self.std

    class MNIST(torch.utils.data.Dataset):  # type: ignore[type-arg]
        def __init__(self, root: str, train: bool = True, download: bool = False, transform: Any = None) -> None:
            self.transform = transform

        def __len__(self) -> int:
            return 64

        def __getitem__(self, index: int) -> Any:
            image = Image.fromarray(np.full((28, 28), index, np.uint8))
            return (image if self.transform is None else self.transform(image)), index % 10

    module = types.ModuleType("stand_in")
    module.datasets = types.SimpleNamespace(MNIST=MNIST)  # type: ignore[attr-defined]
    names = (Compose, Resize, RandomCrop, RandomHorizontalFlip, ToTensor, Normalize)
    module.transforms = types.SimpleNamespace(**{kind.__name__: kind for kind in names})  # type: ignore[attr-defined]
    return module


def run(code: str, namespace: dict[str, Any]) -> None:
    """Python, with shell lines behind an exclamation mark."""
    python: list[str] = []
    for line in code.splitlines():
        if not line.startswith("!"):
            python.append(line)
            continue
        exec("\n".join(python), namespace)
        python = []
        done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", line[1:]], capture_output=True, text=True, check=False)
        print(done.stdout, end="")
        if done.returncode and "sed 5q" not in line:
            raise RuntimeError(f"{line}: exit {done.returncode}: {done.stderr}")
    exec(compile("\n".join(python), "<sample>", "exec"), namespace)


def main() -> None:
    warnings.filterwarnings("error")
    warnings.filterwarnings("ignore", "This DataLoader will create")
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    sys.modules["stand_in"] = stand_in()
    namespace = vars(sys.modules["__main__"])
    out = sys.stdout
    for sample in json.load(sys.stdin):
        shown = io.StringIO()
        result: dict[str, Any] = {"name": sample["name"], "error": None}
        try:
            with redirect_stdout(shown):
                run(sample["code"], namespace)
        except Exception:  # noqa: BLE001  told to the test
            result["error"] = traceback.format_exc()
        print(json.dumps({**result, "out": shown.getvalue()}), file=out, flush=True)


if __name__ == "__main__":
    main()
