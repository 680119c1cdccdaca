"""Unsupported: Attempted to call function marked as skipped: `strict=True` and a function that isn't written in Python

With `strict=True`, Dynamo analyses the bytecode of your model instead of running it. A function written in C doesn't have bytecode.
Examples are a timer, a lock, and many libraries for text or images. The default mode runs such a function as usual, and records what
happens to the tensors. Older code may still set `strict=True`, because it was the default once.
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
    """Use the default, `strict=False`. Side effects then happen once, during the export, and aren't in the exported program."""
    return export("torch.export", Timed(), SAMPLES[0], dynamic_shapes=ROWS), Timed(), SAMPLES


class Untimed(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not torch.compiler.is_exporting():
            time.sleep(0)
        return x * 2


def unless_exporting() -> Claim:
    """Skip the call during the export if you have to keep `strict=True`. This works if the call doesn't compute a tensor."""
    return export("torch.export", Untimed(), SAMPLES[0], dynamic_shapes=ROWS, strict=True), Timed(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"Unsupported: Attempted to call function marked as skipped",
    breaks=breaks,
    fixes=(Fix("change the model", unless_exporting), Fix("change the call", not_strict)),
    threads=("pytorch/executorch#11128", "pytorch/pytorch#148790"),
)
