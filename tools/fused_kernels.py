"""What ONNX Runtime's kernels for attention, rotary embeddings and RMS norms save: python tools/fused_kernels.py writes a table.

Each function is exported spelled out, for opset 22 and for opset 23, and each file is called in turn with one thread. The time is that of
the process, not of the clock on the wall, so that what else runs on the machine counts less.
"""

from __future__ import annotations

import csv
import math
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import onnx_ir as ir
import onnxruntime
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from exportlab.measure.timing import Make, interleaved
from fx2onnx import to_onnx

TABLE = Path(__file__).resolve().parents[1] / "docs" / "data" / "fused-kernels.csv"
ROUNDS, CALLS = 41, 20
FILES = {"spelled out": {"opset_version": 22, "optimize": False}, "opset 22": {"opset_version": 22}, "opset 23": {"opset_version": 23}}
HEADS, WIDTH = 12, 64
Example = tuple[Callable[..., Tensor], tuple[Tensor, ...]]


class Called(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Tensor) -> Tensor:
        """Return what the function returns."""
        return self.function(*args)


def heads(length: int, count: int = HEADS, batch: int = 1) -> Tensor:
    """Random queries, keys or values, as a linear layer gives them."""
    return torch.randn(batch, length, count * WIDTH)


def compute_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, causal: bool = False) -> Tensor:
    """Attention between two linear layers, which are left out."""
    q, k, v = (x.unflatten(-1, (-1, WIDTH)).transpose(1, 2) for x in (q, k, v))
    grouped = q.shape[1] != k.shape[1]
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal, enable_gqa=grouped).transpose(1, 2).flatten(2)


def apply_rotary_embedding(x: Tensor, angles: Tensor) -> Tensor:
    """A rotary embedding."""
    table, half = torch.cat([angles, angles], -1), WIDTH // 2
    return x * table.cos()[:, None] + torch.cat([-x[..., half:], x[..., :half]], -1) * table.sin()[:, None]


def apply_rms_norm(x: Tensor, weight: Tensor) -> Tensor:
    """An RMS norm as Llama has it."""
    return weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


def examples() -> dict[str, Example]:
    """Return the rows of the table."""
    seen, bias = torch.rand(1, 1, 128, 128) > 0.2, torch.randn(1, 1, 128, 128)
    plain, few = (heads(128),) * 3, (heads(128, 4),) * 2
    return {
        "attention": (compute_attention, plain),
        "attention, batch 8": (compute_attention, (heads(128, batch=8),) * 3),
        "attention, mask of booleans": (compute_attention, (*plain, seen)),
        "attention, mask of floats": (compute_attention, (*plain, bias)),
        "attention, causal": (lambda q, k, v: compute_attention(q, k, v, causal=True), plain),
        "attention, 4 heads of keys": (compute_attention, (heads(128), *few)),
        "attention, one query": (compute_attention, (heads(1), heads(128), heads(128))),
        "attention, one query, 4 heads of keys, mask": (compute_attention, (heads(1), *few, seen[:, :, :1])),
        "rotary embedding": (apply_rotary_embedding, (torch.randn(1, HEADS, 128, WIDTH), torch.randn(1, 128, WIDTH // 2))),
        "RMS norm": (apply_rms_norm, (torch.randn(1, 128, 768), torch.rand(768))),
        "RMS norm, batch 8": (apply_rms_norm, (torch.randn(8, 128, 768), torch.rand(768))),
    }


def build_call_maker(example: Example, options: dict[str, int]) -> Make:
    """Return a maker of calls of the file, after a check of what it gives."""
    function, args = example
    single = onnxruntime.SessionOptions()
    single.intra_op_num_threads = 1
    model = ir.to_proto(to_onnx(Called(function), args, **options).model)  # type: ignore[arg-type]
    session = onnxruntime.InferenceSession(model.SerializeToString(), single, providers=["CPUExecutionProvider"])
    feed = dict(zip([given.name for given in session.get_inputs()], [arg.numpy() for arg in args], strict=True))
    torch.testing.assert_close(torch.from_numpy(session.run(None, feed)[0]), function(*args), rtol=1e-4, atol=1e-5)
    return lambda: lambda: [session.run(None, feed) for _ in range(CALLS)]


def ratio(seconds: Sequence[float], base: Sequence[float]) -> str:
    """Return the median quotient with the interval that holds the median of all 95 times of 100."""
    seen = sorted(one / other for one, other in zip(seconds, base, strict=True))
    reach = int((len(seen) - 1.96 * math.sqrt(len(seen))) / 2)
    return f"{seen[len(seen) // 2]:.2f} [{seen[reach]:.2f}, {seen[-1 - reach]:.2f}]"


def main() -> None:
    """Time every row and write the table."""
    torch.manual_seed(0)
    rows = []
    for name, example in examples().items():
        made = {file: build_call_maker(example, options) for file, options in FILES.items()}
        timings = interleaved({name: made}, ROUNDS, clock=time.process_time)[name]
        base = timings.of("spelled out")
        rows.append(
            [name, f"{1e3 * timings.median('spelled out') / CALLS:.3f}", *(ratio(timings.of(file), base) for file in list(FILES)[1:])]
        )
        print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        head = ["", "separate operators (ms)", "opset 22 (relative)", "opset 23 (relative)"]
        csv.writer(file, lineterminator="\n").writerows([head, *rows])


if __name__ == "__main__":
    main()
