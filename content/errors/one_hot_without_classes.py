"""Could not extract specialized integer, in one_hot: `F.one_hot(x)` without the number of classes

Without `num_classes`, `one_hot` looks for the largest number in the tensor and makes that many columns and one. The capture sees no
values, so it cannot say how wide the result is. The width would change from call to call, too, which is seldom what a model wants.
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
    """Say how many classes there are. One width for all calls: a class that does not occur gets its column, of zeros."""
    return export("dynamo", Four(), SAMPLES[0], dynamic_shapes=ROWS), AsManyAsSeenAndZeros(), OTHER_CLASSES


class Compared(nn.Module):
    def forward(self, labels: torch.Tensor) -> torch.Tensor:
        classes = torch.arange(labels.max().item() + 1)
        return (labels[:, None] == classes).long()


def compared() -> Claim:
    """Where the width has to follow the values: compare with `arange`, which takes a number that is not known yet."""
    return export("dynamo", Compared(), SAMPLES[0], dynamic_shapes=ROWS), AsManyAsSeen(), OTHER_CLASSES


ERROR = KnownError(
    stage="capture",
    message=r"Could not extract specialized integer from data-dependent expression [\s\S]*? in one_hot\)",
    breaks=breaks,
    fixes=(Fix("change the model", number_given), Fix("change the model", compared)),
)
