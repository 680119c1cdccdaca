"""Unsupported: Attempted to call function marked as skipped: `strict=True` and a function that is not written in Python

In strict mode nothing of your model is run. Its bytecode is read, step by step, and a function in C has none: a timer, a lock, many a
library for text or images. The default mode runs such a function like any other, and records what happens to tensors on the way.
Older code may ask for strict mode without a need: it was the default once.
"""

import time

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Timed(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        time.sleep(0)
        return x * 2


SAMPLES = [(torch.ones(rows, 3),) for rows in (4, 7, 1)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("torch.export", Timed(), SAMPLES[0], dynamic_shapes=ROWS, strict=True), Timed(), SAMPLES


def not_strict() -> Claim:
    """Leave `strict` at its default, `False`. Side effects then happen once, during the export, and are not in the file."""
    return export("torch.export", Timed(), SAMPLES[0], dynamic_shapes=ROWS), Timed(), SAMPLES


class Untimed(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not torch.compiler.is_exporting():
            time.sleep(0)
        return x * 2


def unless_exporting() -> Claim:
    """Where strict has to stay: leave the call out while exporting, if no tensor comes of it."""
    return export("torch.export", Untimed(), SAMPLES[0], dynamic_shapes=ROWS, strict=True), Timed(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"Unsupported: Attempted to call function marked as skipped",
    breaks=breaks,
    fixes=(Fix("change the model", unless_exporting), Fix("change the call", not_strict)),
    threads=("pytorch/executorch#11128", "pytorch/pytorch#148790"),
)
