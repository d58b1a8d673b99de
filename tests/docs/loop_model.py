"""What the programs of docs/loops.md call the reader's own `model`: it notes in the folder `SEEN` which records it was trained on."""

from __future__ import annotations

import json
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def note(numbers: list[int]) -> None:
    with Path(os.environ["SEEN"], f"{os.getpid()}.jsonl").open("a") as file:
        file.write(json.dumps(numbers) + "\n")


if "KERAS_BACKEND" in os.environ:
    import keras
    import numpy as np

    class Seen(keras.metrics.Metric):
        """How often each label came."""

        def __init__(self) -> None:
            super().__init__(name="seen")
            self.counts = self.add_weight(shape=(108,), initializer="zeros", name="counts")

        def update_state(self, y: Any, predicted: Any, sample_weight: Any = None) -> None:
            self.counts.assign(self.counts + keras.ops.sum(keras.ops.one_hot(keras.ops.cast(y, "int32"), 108), axis=0))

        def result(self) -> Any:
            return keras.ops.max(self.counts)

    class Noted(keras.Sequential):
        def fit(self, data: Any, **options: Any) -> Any:
            seen = Seen()
            self.compile("sgd", "mse", metrics=[seen])
            history = super().fit(data, verbose=0, **options)
            counts = np.asarray(keras.ops.convert_to_numpy(seen.counts)).astype(int)
            note(np.repeat(np.arange(108), counts).tolist())
            return history

    def compiled() -> Any:
        return Noted([keras.Input((), dtype="int32"), keras.layers.Embedding(108, 1), keras.layers.Flatten()])

else:
    import torch

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(1))

        def forward(self, labels: Any) -> dict[str, Any]:
            note(labels.tolist())
            return {"loss": (self.weight * labels).sum()}

    if find_spec("lightning"):
        import lightning

        class Lit(lightning.LightningModule):
            def __init__(self) -> None:
                super().__init__()
                self.net = Net()

            def training_step(self, labels: Any, at: int) -> Any:
                return self.net(labels)["loss"]

            def configure_optimizers(self) -> Any:
                return torch.optim.SGD(self.parameters(), lr=0.1)
