"""`any()` is True for an empty tensor: wrong at size 0 only

Without an element there is none that is true. The exporter writes `any` as the largest of the elements, turned into integers, and ONNX
Runtime gives the largest of nothing as the smallest integer. That is not zero, so it is true.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class AnyPositive(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x > 0).any()


SAMPLES = [(torch.ones(rows, 3),) for rows in (4, 7, 1, 0)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", AnyPositive(), SAMPLES[0], dynamic_shapes=ROWS), AnyPositive(), SAMPLES


class CountPositive(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x > 0).sum() > 0


def counted() -> Claim:
    """Count and compare: the sum of nothing is zero everywhere."""
    return export("dynamo", CountPositive(), SAMPLES[0], dynamic_shapes=ROWS), AnyPositive(), SAMPLES


class NotAllOthers(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ~(~(x > 0)).all()


def not_all() -> Claim:
    """Or ask whether all are false: `all` of nothing is right."""
    return export("dynamo", NotAllOthers(), SAMPLES[0], dynamic_shapes=ROWS), AnyPositive(), SAMPLES


def to_onnx() -> Claim:
    """`to_onnx` writes it so that it is right at every size."""
    return export("to_onnx", AnyPositive(), SAMPLES[0], dynamic_shapes=ROWS), AnyPositive(), SAMPLES


ERROR = KnownError(
    stage="silent",
    message=r"^unseen size: output\S*\[[\d, ]*\]: 1 where eager has 0 \(\d+ of \d+ elements differ\)",
    check="unseen size",
    breaks=breaks,
    op=r"aten\.any",
    fixes=(Fix("change the model", counted), Fix("change the model", not_all), Fix("another exporter", to_onnx)),
    threads=(),
)
