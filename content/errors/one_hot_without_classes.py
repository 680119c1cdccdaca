"""Could not extract specialized integer, in one_hot: `F.one_hot(x)` without `num_classes`

Without `num_classes`, `one_hot` uses the largest value in the tensor plus one. The capture doesn't have values, so it doesn't know the
width of the output. The width would also change from call to call, which is rarely what you need.
"""

import torch
from torch import nn
from torch.nn import functional as F

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class AsManyAsSeen(nn.Module):
    def forward(self, labels: torch.Tensor) -> torch.Tensor:
        return F.one_hot(labels)


SAMPLES = [(torch.tensor([2, 1, 0, 3]),), (torch.tensor([3, 3, 1, 0, 2]),), (torch.tensor([3]),)]
OTHER_CLASSES = [*SAMPLES, (torch.tensor([1, 0]),)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", AsManyAsSeen(), SAMPLES[0], dynamic_shapes=ROWS), AsManyAsSeen(), SAMPLES


class Four(nn.Module):
    def forward(self, labels: torch.Tensor) -> torch.Tensor:
        return F.one_hot(labels, num_classes=4)


class AsManyAsSeenAndZeros(AsManyAsSeen):
    def forward(self, labels: torch.Tensor) -> torch.Tensor:
        seen = super().forward(labels)
        return torch.cat([seen, seen.new_zeros(len(labels), 4 - seen.shape[1])], 1)


def number_given() -> Claim:
    """Pass `num_classes`. The width is then the same for each call, and classes that don't occur have a column of zeros."""
    return export("dynamo", Four(), SAMPLES[0], dynamic_shapes=ROWS), AsManyAsSeenAndZeros(), OTHER_CLASSES


class Compared(nn.Module):
    def forward(self, labels: torch.Tensor) -> torch.Tensor:
        classes = torch.arange(labels.max().item() + 1)
        return (labels[:, None] == classes).long()


def compared() -> Claim:
    """Compare with `torch.arange`. Use this if the width has to depend on the values: `arange` accepts a data-dependent size."""
    return export("dynamo", Compared(), SAMPLES[0], dynamic_shapes=ROWS), AsManyAsSeen(), OTHER_CLASSES


ERROR = KnownError(
    stage="capture",
    message=r"Could not extract specialized integer from data-dependent expression [\s\S]*? in one_hot\)",
    breaks=breaks,
    fixes=(Fix("change the model", number_given), Fix("change the model", compared)),
)
