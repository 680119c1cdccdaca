"""scaled_dot_product_attention(): argument 'is_causal' must be bool, not SymBool: `is_causal` depends on a dynamic length

If the length is dynamic, `is_causal=length > 1` is a `SymBool` during the capture: a condition that isn't evaluated yet. Operators accept
only a `bool` as a flag. Whisper's repository contains this line, and models in transformers used to.
"""

import torch
import torch.nn.functional as F
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(8, 8) for _ in range(3))

    def attend(self, x: torch.Tensor, is_causal: bool) -> torch.Tensor:
        q, k, v = (part(x)[:, None] for part in (self.q, self.k, self.v))  # of one head
        return F.scaled_dot_product_attention(q, k, v, is_causal=is_causal)[:, 0]


class ByLength(Attention):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.attend(x, is_causal=x.shape[1] > 1)


class Always(Attention):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.attend(x, is_causal=True)


class Decided(Attention):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.attend(x, is_causal=bool(x.shape[1] > 1))


SAMPLES = [(torch.linspace(-1, 1, batch * length * 8).reshape(batch, length, 8),) for batch, length in ((2, 5), (3, 7), (2, 2))]
ONE_TOKEN = (torch.linspace(-1, 1, 24).reshape(3, 1, 8),)
MOVING = ({0: "batch", 1: "length"},)


def weighted(kind: type[Attention]) -> Attention:
    """Give all models the same weights."""
    torch.manual_seed(0)
    return kind().eval()


def breaks() -> Claim:
    model = weighted(ByLength)
    return export("dynamo", model, SAMPLES[0], dynamic_shapes=MOVING), model, SAMPLES


def always() -> Claim:
    """Pass `is_causal=True` if queries and keys come from the same tokens. For a single token, the result is the same with both values."""
    samples = [*SAMPLES, ONE_TOKEN]
    return export("dynamo", weighted(Always), SAMPLES[0], dynamic_shapes=MOVING), weighted(ByLength), samples


def decided() -> Claim:
    """Convert the condition with `bool()`. The capture then specialises it for the example, which is right for 2 or more tokens."""
    return export("dynamo", weighted(Decided), SAMPLES[0], dynamic_shapes=MOVING), weighted(ByLength), SAMPLES


def ours() -> Claim:
    """Use `to_onnx`. It accepts this code and writes both cases as an `If` on the length."""
    model, samples = weighted(ByLength), [*SAMPLES, ONE_TOKEN]
    return export("to_onnx", model, SAMPLES[0], dynamic_shapes=MOVING), model, samples


ERROR = KnownError(
    stage="capture",
    message=r"argument '\w+' must be bool, not SymBool",
    breaks=breaks,
    fixes=(Fix("change the model", always), Fix("change the model", decided), Fix("another exporter", ours)),
    threads=("pytorch/pytorch#154038", "pytorch/pytorch#124707"),
)
