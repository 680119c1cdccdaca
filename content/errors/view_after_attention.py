"""ValueError: Cannot view a tensor with shape ... and strides ...: a `.contiguous()` is lost between capture and decomposition

During the capture, fused attention returns a tensor that is contiguous once it is transposed back. So `.contiguous()` does nothing there,
and leaves no node. Then the decomposition writes attention as matrix products: their result has other strides, the node that would have
copied it is not in the graph, and the `view` fails. It needs a reason to leave the fused operator, such as a bias that is a parameter and
wants a gradient: T5, BEiT and Swin have one.
"""

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.bias = nn.Parameter(torch.randn(2, 1, 1))

    def attended(self, x: torch.Tensor) -> torch.Tensor:
        heads = x.unflatten(2, (2, 4)).transpose(1, 2)
        mask = self.bias.expand(x.shape[0], 2, x.shape[1], x.shape[1])
        return F.scaled_dot_product_attention(heads, heads, heads, attn_mask=mask).transpose(1, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.attended(x).contiguous().view(*x.shape[:2], 8)


SAMPLES = [(torch.linspace(-1, 1, rows * tokens * 8).reshape(rows, tokens, 8),) for rows, tokens in ((2, 3), (3, 5), (1, 4))]
BOTH = ({0: "rows", 1: "tokens"},)


def breaks() -> Claim:
    return export("dynamo", Attention(), SAMPLES[0], dynamic_shapes=BOTH), Attention(), SAMPLES


class Copied(Attention):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.attended(x).clone(memory_format=torch.contiguous_format).view(*x.shape[:2], 8)


def copied() -> Claim:
    """Ask for a copy, which leaves a node in every case. (`reshape` does not help: here it is captured as the same `view`.)"""
    return export("dynamo", Copied(), SAMPLES[0], dynamic_shapes=BOTH), Attention(), SAMPLES


def without_gradients() -> Claim:
    """Export with the weights frozen: without gradients both steps see the same layout. Thaw them before you train again."""
    return export("dynamo", Attention().requires_grad_(False), SAMPLES[0], dynamic_shapes=BOTH), Attention(), SAMPLES


def as_products() -> Claim:
    """Capture attention as the matrix products that it is decomposed to later, so that both steps see the same layout."""
    with sdpa_kernel(SDPBackend.MATH):
        return export("dynamo", Attention(), SAMPLES[0], dynamic_shapes=BOTH), Attention(), SAMPLES


def to_onnx() -> Claim:
    """`to_onnx` translates attention as it was captured, without this decomposition."""
    return export("to_onnx", Attention(), SAMPLES[0], dynamic_shapes=BOTH), Attention(), SAMPLES


ERROR = KnownError(
    stage="decomposition",
    message=r"Cannot view a tensor with shape torch\.Size\(\[.*?\]\) and strides \(.*?\) as a tensor with shape",
    breaks=breaks,
    fixes=(
        Fix("change the model", copied),
        Fix("change the call", without_gradients),
        Fix("change the call", as_products),
        Fix("another exporter", to_onnx),
    ),
    threads=("pytorch/pytorch#136543", "pytorch/pytorch#141107", "pytorch/TensorRT#3333"),
    kin=r"Cannot view a tensor",
    advice="write .reshape(…) for .view(…), or make the tensor .contiguous() before",
)
