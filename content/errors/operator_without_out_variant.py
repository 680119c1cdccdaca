"""RuntimeError: Missing out variants: {'my_lib::my_op'}: a custom operator without an out variant in ExecuTorch

ExecuTorch plans all memory before the model runs. Each operator therefore needs an out variant, which writes its result into given memory.
An operator made with `torch.library.custom_op` doesn't have one. The operators of quantisation don't have one either, unless a backend
replaces them.
"""

from collections.abc import Callable
from functools import cache

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


def bounded(x: torch.Tensor) -> torch.Tensor:
    return x / (1 + x.abs())


@cache
def registered() -> Callable[[torch.Tensor], torch.Tensor]:
    op = torch.library.custom_op("known_errors::bounded", bounded, mutates_args=())
    op.register_fake(torch.empty_like)
    return op


class Bounded(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return registered()(x) * 2


SAMPLES = [(torch.linspace(-1, 1, rows * 3).reshape(rows, 3),) for rows in (4, 3, 1)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("executorch", Bounded(), SAMPLES[0], dynamic_shapes=ROWS), Bounded(), SAMPLES


class SpeltOut(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        function = bounded if torch.compiler.is_exporting() else registered()
        return function(x) * 2


def spelt_out() -> Claim:
    """Call the plain function during the export. If you need your own kernel, link it into the runtime in C++."""
    return export("executorch", SpeltOut(), SAMPLES[0], dynamic_shapes=ROWS), Bounded(), SAMPLES


def torch_export() -> Claim:
    """Use `torch.export` if Python is available. The exported program calls the operator itself, and doesn't plan memory."""
    return export("torch.export", Bounded(), SAMPLES[0], dynamic_shapes=ROWS), Bounded(), SAMPLES


ERROR = KnownError(
    stage="translation",
    message=r"Missing out variants: \{'[\w:]+'",
    breaks=breaks,
    fixes=(Fix("change the model", spelt_out), Fix("another exporter", torch_export)),
    threads=("pytorch/executorch#1263", "pytorch/executorch#6975", "pytorch/executorch#1132"),
)
