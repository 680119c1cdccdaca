"""There was no fake impl registered for <CustomOpDef(…)>: your own operator does not say what shape its result has

The capture does not run an operator made by `torch.library.custom_op`: its tensors hold no values to run it on. What it needs is the
shape and the type of the result, from those of the arguments. That function is called the fake, or meta, implementation, and only the
author of the operator can write it.
"""

from collections.abc import Callable
from functools import cache

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


def row_means(x: torch.Tensor) -> torch.Tensor:
    return x.mean(1)


class Centred(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x - self.means(x)[:, None]

    def means(self, x: torch.Tensor) -> torch.Tensor:
        return without_fake()(x)


@cache
def without_fake() -> Callable[[torch.Tensor], torch.Tensor]:
    return torch.library.custom_op("known_errors::row_means_without_fake", row_means, mutates_args=())


SAMPLES = [(torch.linspace(-1, 2, rows * 3).reshape(rows, 3),) for rows in (4, 7, 1)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("torch.export", Centred(), SAMPLES[0], dynamic_shapes=ROWS), Centred(), SAMPLES


@cache
def with_fake() -> Callable[[torch.Tensor], torch.Tensor]:
    op = torch.library.custom_op("known_errors::row_means", row_means, mutates_args=())
    op.register_fake(lambda x: x.new_empty(x.shape[0]))
    return op


class CentredWithFake(Centred):
    def means(self, x: torch.Tensor) -> torch.Tensor:
        return with_fake()(x)


def register_fake() -> Claim:
    """Register one: make an empty tensor of the right shape, from the sizes of this call. ONNX needs a translation as well."""
    return export("torch.export", CentredWithFake(), SAMPLES[0], dynamic_shapes=ROWS), Centred(), SAMPLES


class CentredInTorch(Centred):
    def means(self, x: torch.Tensor) -> torch.Tensor:
        return row_means(x) if torch.compiler.is_exporting() else without_fake()(x)


def in_torch() -> Claim:
    """While exporting, compute the same with operators of torch. Then neither a fake nor a translation is needed."""
    return export("dynamo", CentredInTorch(), SAMPLES[0], dynamic_shapes=ROWS), Centred(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"There was no fake impl registered for <CustomOpDef\(.*?\)>",
    breaks=breaks,
    fixes=(Fix("change the model", register_fake), Fix("change the model", in_torch)),
    threads=("pytorch/pytorch#150809", "Lightning-AI/lightning-thunder#2530"),
    kin=r"no fake impl",
    advice="register a fake implementation: torch.library.register_fake",
)
