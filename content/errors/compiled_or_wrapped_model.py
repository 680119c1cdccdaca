"""`inputs[0]` is a <class 'tuple'>, but `dynamic_shapes[0]` is a <class 'dict'>: the model is compiled, or wrapped in `DataParallel`

`torch.compile(model)` and `DataParallel(model)` are modules around yours, whose `forward` takes `*args`. For the export that is one
argument, a tuple of all inputs, and your `dynamic_shapes` have no level for it. The wrapper is of no use in a file anyway. A model that
takes a tuple of tensors itself says the same: it wants a tuple of entries.
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
    """Export what is inside: `_orig_mod` of a compiled module, `module` of a `DataParallel`. Or export first, and compile then."""
    compiled = torch.compile(Doubled())
    return export("dynamo", compiled._orig_mod, SAMPLES[0], dynamic_shapes=ROWS), Doubled(), SAMPLES


def one_level_more() -> Claim:
    """Where the wrapper has to stay: add the level, a tuple of the entries in a tuple of one."""
    return export("dynamo", torch.compile(Doubled()), SAMPLES[0], dynamic_shapes=(ROWS,)), Doubled(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"Detected mismatch between the structure of `inputs` and `dynamic_shapes`: `inputs\[0\]` is a <class 'tuple'>",
    breaks=breaks,
    fixes=(Fix("change the call", unwrapped), Fix("change the call", one_level_more)),
    threads=("pytorch/pytorch#150926", "pytorch/pytorch#23431", "pytorch/pytorch#51631"),
)
