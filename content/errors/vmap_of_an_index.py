"""vmap: It looks like you're calling .item() on a Tensor: an index inside `torch.vmap`, as in attention masks

Inside `vmap`, `k` in `padding[k]` stands for a whole batch of indices. In eager mode, PyTorch indexes with all of them. Under
`torch.export`, the same line uses another code path. It converts a 0-dimensional index to a Python number, which isn't possible for a
batch. Your code doesn't have to call `item()` for this error.
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
    """Give each index its own dimension, and use broadcasting. transformers does so since version 5."""
    return export("torch.export", MaskedByAxes(), SAMPLES[0], dynamic_shapes=SIZES), Masked(), SAMPLES


def patched() -> Claim:
    """Export under the patch `indices_in_vmap`. It replaces such an index with a gather. The model doesn't change."""
    with indices_in_vmap():
        return export("torch.export", Masked(), SAMPLES[0], dynamic_shapes=SIZES), Masked(), SAMPLES


def torch_onnx() -> Claim:
    """Use `torch.onnx.export`. It falls back to `strict=True`, which can capture this model."""
    return export("dynamo", Masked(), SAMPLES[0], dynamic_shapes=SIZES), Masked(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"vmap: It looks like you're calling \.item\(\) on a Tensor",
    breaks=breaks,
    fixes=(Fix("change the model", broadcast), Fix("patch", patched), Fix("another exporter", torch_onnx)),
    threads=("huggingface/transformers#42721", "pytorch/pytorch#154197", "meta-pytorch/attention-gym#97"),
)
