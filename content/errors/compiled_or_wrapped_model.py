"""`inputs[0]` is a <class 'tuple'>, but `dynamic_shapes[0]` is a <class 'dict'>: the model is compiled, or wrapped in `DataParallel`

`torch.compile(model)` and `DataParallel(model)` wrap your model in a module whose `forward` accepts `*args`. torch.export treats `*args` as
one argument, a tuple of all inputs. Your `dynamic_shapes` don't have this additional level. The exported model doesn't need the wrapper. A
model with a tuple of tensors as an argument raises the same error: its entry in `dynamic_shapes` has to be a tuple.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Doubled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


SAMPLES = [(torch.ones(rows, 3),) for rows in (4, 7, 1)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", torch.compile(Doubled()), SAMPLES[0], dynamic_shapes=ROWS), Doubled(), SAMPLES


def unwrapped() -> Claim:
    """Export the original module: `_orig_mod` of a compiled module, `module` of a `DataParallel`. Or compile after the export."""
    compiled = torch.compile(Doubled())
    return export("dynamo", compiled._orig_mod, SAMPLES[0], dynamic_shapes=ROWS), Doubled(), SAMPLES


def one_level_more() -> Claim:
    """Nest `dynamic_shapes` in another tuple if you have to keep the wrapper. The outer tuple has one entry, the tuple of all entries."""
    return export("dynamo", torch.compile(Doubled()), SAMPLES[0], dynamic_shapes=(ROWS,)), Doubled(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"Detected mismatch between the structure of `inputs` and `dynamic_shapes`: `inputs\[0\]` is a <class 'tuple'>",
    breaks=breaks,
    fixes=(Fix("change the call", unwrapped), Fix("change the call", one_level_more)),
    threads=("pytorch/pytorch#150926", "pytorch/pytorch#23431", "pytorch/pytorch#51631"),
)
