"""vmap: It looks like you're calling .item() on a Tensor: an index inside `torch.vmap`, as in attention masks

Inside of `vmap`, `k` in `padding[k]` is not one number but all of them at once. Outside of an export, torch indexes with all of them. Under
`torch.export` the same line takes another way, one that reads an index without axes as a Python number, and that cannot be done
for many. There is no `item()` in your code.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export
from exportlab.patches import indices_in_vmap


class Masked(nn.Module):
    def forward(self, scores: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
        keys = torch.arange(scores.shape[1])
        allowed = torch.vmap(lambda q: torch.vmap(lambda k: (k <= q) & padding[k])(keys))(torch.arange(scores.shape[0]))
        return scores.masked_fill(~allowed, -100.0).softmax(1)


def inputs(size: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.linspace(-1, 1, size * size).reshape(size, size), torch.arange(size) % 3 > 0


SAMPLES = [inputs(4), inputs(7), inputs(2)]
SIZES = ({0: "seq", 1: "seq"}, {0: "seq"})


def breaks() -> Claim:
    return export("torch.export", Masked(), SAMPLES[0], dynamic_shapes=SIZES), Masked(), SAMPLES


class MaskedByAxes(nn.Module):
    def forward(self, scores: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
        q, k = torch.arange(scores.shape[0])[:, None], torch.arange(scores.shape[1])
        return scores.masked_fill(~((k <= q) & padding[k]), -100.0).softmax(1)


def broadcast() -> Claim:
    """Give each index an axis of its own and let torch broadcast. Transformers does so since version 5."""
    return export("torch.export", MaskedByAxes(), SAMPLES[0], dynamic_shapes=SIZES), Masked(), SAMPLES


def patched() -> Claim:
    """`indices_in_vmap` turns such an index into a gather while it lasts. The model stays as it is."""
    with indices_in_vmap():
        return export("torch.export", Masked(), SAMPLES[0], dynamic_shapes=SIZES), Masked(), SAMPLES


def torch_onnx() -> Claim:
    """`torch.onnx.export` tries the other mode when this one fails, `strict=True`, and there it works."""
    return export("dynamo", Masked(), SAMPLES[0], dynamic_shapes=SIZES), Masked(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"vmap: It looks like you're calling \.item\(\) on a Tensor",
    breaks=breaks,
    fixes=(Fix("change the model", broadcast), Fix("patch", patched), Fix("another exporter", torch_onnx)),
    threads=("huggingface/transformers#42721", "pytorch/pytorch#154197", "meta-pytorch/attention-gym#97"),
)
