"""`any()` of an empty tensor returns True instead of False: wrong at size 0 only

`torch.onnx.export` converts the elements to integers and takes their maximum. ONNX Runtime returns the smallest integer as the maximum of
an empty tensor. This integer isn't zero, so the result is True.
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
    """Count the matches: `(x > 0).sum() > 0`. The sum of an empty tensor is 0."""
    return export("dynamo", CountPositive(), SAMPLES[0], dynamic_shapes=ROWS), AnyPositive(), SAMPLES


class NotAllOthers(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ~(~(x > 0)).all()


def not_all() -> Claim:
    """Use `all` with the negated condition. `all` of an empty tensor is exported correctly."""
    return export("dynamo", NotAllOthers(), SAMPLES[0], dynamic_shapes=ROWS), AnyPositive(), SAMPLES


def to_onnx() -> Claim:
    """Use `to_onnx`. Its translation is right for empty tensors too."""
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
