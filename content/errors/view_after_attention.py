"""ValueError: Cannot view a tensor with shape ... and strides ...: `.contiguous()` after `scaled_dot_product_attention` is lost

During capture, the fused attention kernel returns a tensor that is contiguous after the transpose. `.contiguous()` does nothing there, and
isn't recorded. Later, the decomposition writes attention as matrix products, whose result has other strides. The copy that `.contiguous()`
would make isn't in the graph, so `view` fails. This happens if the decomposition can't use the fused kernel, for example because the bias
is a parameter that requires a gradient. T5, BEiT and Swin have such a bias.
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
    """Copy with `clone(memory_format=torch.contiguous_format)` instead of `.contiguous()`. The copy is then recorded. `reshape` doesn't
    help, because here it is captured as the same `view`.
    """
    return export("dynamo", Copied(), SAMPLES[0], dynamic_shapes=BOTH), Attention(), SAMPLES


def without_gradients() -> Claim:
    """Call `requires_grad_(False)` on the model before the export. Without gradients, both steps use the same memory layout. Undo it before
    you train again.
    """
    return export("dynamo", Attention().requires_grad_(False), SAMPLES[0], dynamic_shapes=BOTH), Attention(), SAMPLES


def as_products() -> Claim:
    """Capture under `sdpa_kernel(SDPBackend.MATH)`. Attention is then captured as matrix products, so both steps use the same memory
    layout.
    """
    with sdpa_kernel(SDPBackend.MATH):
        return export("dynamo", Attention(), SAMPLES[0], dynamic_shapes=BOTH), Attention(), SAMPLES


def to_onnx() -> Claim:
    """Use `to_onnx`. It translates attention as captured, without this decomposition."""
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
