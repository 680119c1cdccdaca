"""Normalisation and dropout in training and evaluation mode. Plain batch norm and layer norm are in basics."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from exportlab.cases import Declaration, case
from exportlab.specs import integers, tensor


@case(dims={"batch": (4, 9, 1, 2)}, topics=("normalization", "training", "state", "silence"), training=True)
def batch_norm_running_statistics() -> Declaration:
    """In training, each call updates the running statistics: what are they after the second call?"""

    class Watched(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.BatchNorm2d(3)

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            y = self.norm(x)
            return y, self.norm.running_mean + 0, self.norm.num_batches_tracked + 0

    return Watched(), (tensor("batch", 3, 4, 4),)


@case(dims={"batch": (4, 9, 1, 2)}, topics=("normalization", "training", "data-dependent"), training=True)
def batch_norm_with_plain_average() -> Declaration:
    """`momentum=None` divides by the number of batches so far, a run-time value: can it be captured?"""
    return nn.BatchNorm2d(3, momentum=None), (tensor("batch", 3, 4, 4),)


@case(dims={"batch": (4, 9, 1, 2)}, topics=("normalization", "training", "silence"))
def batch_norm_by_function() -> Declaration:
    """`F.batch_norm(training=True)` in a model in `eval()` mode: does the export use the mode or the argument?"""

    class ByFunction(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return F.batch_norm(x, torch.full((3,), 5.0), torch.full((3,), 4.0), training=True)

    return ByFunction(), (tensor("batch", 3, 5),)


@case(dims={"batch": (4, 9, 1, 2)}, topics=("normalization", "silence"))
def batch_norm_without_statistics() -> Declaration:
    """`track_running_stats=False`: a batch is normalised by its own statistics, even in evaluation mode."""
    return nn.BatchNorm2d(3, track_running_stats=False), (tensor("batch", 3, 4, 4),)


@case(dims={"batch": (4, 9, 1, 2)}, topics=("normalization", "training", "silence"), training=True)
def batch_norm_frozen_in_training() -> Declaration:
    """The model is in training mode, but this norm is not: does it use the statistics of the batch?"""

    class Frozen(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("mean", torch.randn(3))
            self.register_buffer("variance", torch.rand(3) + 0.5)

        def forward(self, x: Tensor) -> Tensor:
            return F.batch_norm(x, self.mean, self.variance, training=False)

    return Frozen(), (tensor("batch", 3, 5),)


@case(dims={"batch": (2, 5, 1, 0)}, topics=("normalization", "layers"))
def two_norms_on_one_input() -> Declaration:
    """Two branches with convolution and batch norm read one tensor: does folding keep their biases apart?"""

    class Branches(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norms = nn.ModuleList(nn.BatchNorm2d(4) for _ in range(2))
            self.convs = nn.ModuleList(nn.Conv2d(3, 4, 3, bias=False) for _ in range(2))
            for norm in self.norms:
                norm.running_mean.normal_()
                norm.bias.data.normal_()

        def forward(self, x: Tensor) -> Tensor:
            a, b = (norm(conv(x)) for norm, conv in zip(self.norms, self.convs, strict=True))
            return a.relu() - b

    return Branches(), (tensor("batch", 3, 6, 6),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("dropout", "layers"))
def dropout_after_training() -> Declaration:
    """Three kinds of dropout in evaluation mode: are all of them removed?"""
    return nn.Sequential(nn.Dropout(0.5), nn.Linear(8, 8), nn.AlphaDropout(0.3), nn.Dropout1d(0.9)), (tensor("batch", 8, 8),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("dropout", "training", "silence"), training=True)
def dropout_in_training() -> Declaration:
    """In training, each value is dropped or doubled: also in the exported model?"""

    class DroppedOrDoubled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.dropout = nn.Dropout(0.5)

        def forward(self, x: Tensor) -> Tensor:
            y = self.dropout(x)
            return (y == 0) | (y == 2 * x)

    return DroppedOrDoubled(), (tensor("batch", 8),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("dropout", "silence"))
def dropout_never_turned_off() -> Declaration:
    """`F.dropout(x)` without `self.training` is always active: does the export follow the call or the mode?"""

    class ForEver(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            y = F.dropout(x, 0.5)
            return (y == 0) | (y == 2 * x)

    return ForEver(), (tensor("batch", 8),)


@case(dims={"batch": (2, 5, 1, 0), "width": (6, 9, 1, 4)}, topics=("normalization", "dynamic shapes"))
def layer_norm_over_moving_axis() -> Declaration:
    """`normalized_shape` is read from the input: is it right at another width?"""

    class MovingLayerNorm(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return F.layer_norm(x, x.shape[-1:]) + x

    return MovingLayerNorm(), (tensor("batch", 3, "width"),)


@case(dims={"batch": (2, 5, 1, 0)}, topics=("normalization", "layers"))
def layer_norm_over_two_axes() -> Declaration:
    """Layer norm over two axes in float16 within float32, with a weight but no bias: is all of it kept?"""

    class TwoAxes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.wide, self.narrow = nn.LayerNorm((3, 4), bias=False), nn.LayerNorm(4, elementwise_affine=False)
            self.wide.weight.data.normal_()

        def forward(self, x: Tensor) -> Tensor:
            return self.wide(x) + self.narrow(x.half()).to(x.dtype)

    return TwoAxes(), (tensor("batch", 3, 4),)


@case(dims={"batch": (2, 5, 1, 0), "height": (6, 9, 4)}, topics=("normalization", "dynamic shapes"))
def group_norm() -> Declaration:
    """Group norm with dynamic height and batch: are the groups kept?"""
    norm = nn.GroupNorm(3, 6)
    norm.weight.data.normal_()
    norm.bias.data.normal_()
    return norm, (tensor("batch", 6, "height", 4),)


@case(dims={"batch": (2, 5, 1), "height": (6, 9, 4)}, topics=("normalization", "dynamic shapes"))
def instance_norm() -> Declaration:
    """Instance norm uses each image's own statistics, even in evaluation mode: does the exported model too?"""
    return nn.InstanceNorm2d(3, affine=True), (tensor("batch", 3, "height", 4),)


@case(dims={"batch": (2, 5, 1, 0), "height": (6, 9, 4)}, topics=("normalization", "silence"))
def instance_norm_with_statistics() -> Declaration:
    """Instance norm with running statistics uses them in evaluation mode: does the exported model too?"""
    norm = nn.InstanceNorm2d(3, track_running_stats=True)
    norm.running_mean.normal_()
    norm.running_var.uniform_(0.5, 2.0)
    return norm, (tensor("batch", 3, "height", 4),)


@case(dims={"batch": (2, 5, 1, 0), "seq": (6, 9, 1, 3)}, topics=("normalization", "layers"))
def rms_norm() -> Declaration:
    """`nn.RMSNorm` of tiny values, with a given eps and the dtype's eps: are both used?"""

    class TinyValues(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.given, self.own = nn.RMSNorm(8, eps=1e-2), nn.RMSNorm((8,))

        def forward(self, x: Tensor) -> Tensor:
            return self.given(x / 10) + self.own(x / 1000)

    return TinyValues(), (tensor("batch", "seq", 8),)


@case(dims={"batch": (2, 5, 1, 0), "seq": (6, 9, 1, 3)}, topics=("normalization", "casts"))
def rms_norm_by_hand() -> Declaration:
    """The norm of language models: float16 is widened, normalised, narrowed. Is the widening kept?"""

    class ByHand(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.rand(8).half() + 0.5)

        def forward(self, x: Tensor) -> Tensor:
            wide = x.float() * 300
            return self.weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)

    return ByHand(), (tensor("batch", "seq", 8, dtype=torch.float16),)


@case(dims={"batch": (2, 5, 1, 0), "height": (6, 9, 4)}, topics=("normalization", "layers"))
def local_response_norm() -> Declaration:
    """Each value is normalised by neighbouring channels: are the edges handled correctly?"""
    return nn.LocalResponseNorm(3, alpha=0.5, beta=0.75, k=2.0), (tensor("batch", 5, "height", 4),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("normalization", "silence"))
def unit_vectors() -> Declaration:
    """Rows are scaled to unit length, some are all zero: is 0/0 avoided as in eager?"""

    class UnitVectors(nn.Module):
        def forward(self, counts: Tensor) -> tuple[Tensor, Tensor]:
            x = counts.clamp(min=0) * 1.0
            return F.normalize(x, dim=-1), F.normalize(x, p=1.0, dim=0, eps=0.5)

    return UnitVectors(), (integers("batch", 3, low=-4, high=3),)


@case(dims={"batch": (2, 5, 1, 0), "seq": (6, 9, 1, 3)}, topics=("normalization", "nan", "silence"))
def standardized_by_moving_axis() -> Declaration:
    """Mean and unbiased deviation over a dynamic axis; with one element the deviation is NaN: also in the export?"""

    class Standardized(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return (x - x.mean(1, keepdim=True)) / (x.std(1, keepdim=True) + 1e-5)

    return Standardized(), (tensor("batch", "seq", 4),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("normalization", "hierarchy"))
def normalized_weights() -> Declaration:
    """Weight norm and spectral norm as parametrisations: are the weights computed as in training?"""
    from torch.nn.utils import parametrizations

    scaled = parametrizations.weight_norm(nn.Linear(8, 6))
    scaled.parametrizations.weight.original0.data.mul_(2)
    return nn.Sequential(scaled, nn.Tanh(), parametrizations.spectral_norm(nn.Linear(6, 4))), (tensor("batch", 8),)
