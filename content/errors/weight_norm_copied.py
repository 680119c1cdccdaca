"""Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol: a model with weight_norm is copied

`torch.nn.utils.weight_norm` computes the weight anew before each call, and leaves the result in an attribute. That tensor has a history of
autograd, and `copy.deepcopy` refuses such tensors. HiFi-GAN, VITS and other vocoders keep their weights this way, and many tools copy a
model: for an average of its weights, for quantisation, or before an export.
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
    """Compute the weight once, which is enough for inference: `remove_weight_norm` does that and leaves a plain parameter."""
    model = remove_weight_norm(normed())
    model(*SAMPLES[0])
    return export("to_onnx", copy.deepcopy(model), SAMPLES[0], dynamic_shapes=ROWS), convolution(), SAMPLES


def parametrized() -> Claim:
    """Use `torch.nn.utils.parametrizations.weight_norm`, which keeps no such tensor. It loads checkpoints of the older one."""
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
