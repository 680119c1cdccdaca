"""Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol: `copy.deepcopy` of `weight_norm`

`torch.nn.utils.weight_norm` computes the weight before each call and stores it in an attribute. This tensor has an autograd history, and
`copy.deepcopy` can't copy such tensors. HiFi-GAN, VITS and other vocoders use `weight_norm`. Many tools copy a model: to average its
weights, to quantise it, or before an export.
"""

import copy
import warnings

import torch
from torch import nn
from torch.nn.utils import parametrizations, remove_weight_norm, weight_norm

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export

SAMPLES = [(torch.linspace(-1, 1, rows * 12).reshape(rows, 3, 4),) for rows in (4, 7, 1)]
ROWS = ({0: "rows"},)


def convolution() -> nn.Module:
    torch.manual_seed(0)
    return nn.Conv1d(3, 2, 3)


def normed() -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is deprecated
        return weight_norm(convolution())


def breaks() -> Claim:
    model = normed()
    model(*SAMPLES[0])
    return export("to_onnx", copy.deepcopy(model), SAMPLES[0], dynamic_shapes=ROWS), convolution(), SAMPLES


def removed() -> Claim:
    """Call `remove_weight_norm`. It computes the weight once, which is enough for inference, and stores it as an ordinary parameter."""
    model = remove_weight_norm(normed())
    model(*SAMPLES[0])
    return export("to_onnx", copy.deepcopy(model), SAMPLES[0], dynamic_shapes=ROWS), convolution(), SAMPLES


def parametrized() -> Claim:
    """Use `torch.nn.utils.parametrizations.weight_norm`. It doesn't keep such a tensor, and can load checkpoints of the older function."""
    model = parametrizations.weight_norm(convolution())
    model(*SAMPLES[0])
    return export("to_onnx", copy.deepcopy(model), SAMPLES[0], dynamic_shapes=ROWS), convolution(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"Only Tensors created explicitly by the user \(graph leaves\) support the deepcopy protocol",
    breaks=breaks,
    fixes=(Fix("change the model", removed), Fix("change the model", parametrized)),
    threads=("pytorch/pytorch#103001",),
)
