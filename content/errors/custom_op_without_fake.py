"""There was no fake impl registered for <CustomOpDef(…)>: a custom operator without `register_fake`

torch.export doesn't run an operator made by `torch.library.custom_op`, because tensors don't have values during the capture. It needs a
function that computes the shape and dtype of the output from the inputs. This function is the fake (or meta) implementation, and the author
of the operator has to write it.
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
    """Register a fake implementation with `register_fake`. It returns an empty tensor whose shape is computed from the sizes of this call.
    ONNX needs a translation as well.
    """
    return export("torch.export", CentredWithFake(), SAMPLES[0], dynamic_shapes=ROWS), Centred(), SAMPLES


class CentredInTorch(Centred):
    def means(self, x: torch.Tensor) -> torch.Tensor:
        return row_means(x) if torch.compiler.is_exporting() else without_fake()(x)


def in_torch() -> Claim:
    """Use PyTorch operators during export with `torch.compiler.is_exporting()`. You then need neither a fake nor a translation."""
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
