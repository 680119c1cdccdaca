"""The cross entropy of a linear layer that torch computes in chunks: each reduction, weights, smoothing, targets that do not count."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from inputs import OWN, ints, normal
from operators import check
from torch.nn import functional as F
from torch.nn.modules.linear_cross_entropy_options import LinearCrossEntropyOptions

X, W, B = normal(6, 5), normal(4, 5), normal(4)
Y = ints(0, 3, 1, -100, 2, 2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_in_chunks(reduction: str, dtype: torch.dtype) -> None:
    def loss(x: torch.Tensor, w: torch.Tensor, y: torch.Tensor, b: torch.Tensor | None = None, **given: object) -> torch.Tensor:
        chunks = LinearCrossEntropyOptions(batch_chunk_size=2)
        return F.linear_cross_entropy(x, w, y, linear_bias=b, reduction=reduction, options=chunks, **given)  # type: ignore[arg-type]

    x, w, b = X.to(dtype), W.to(dtype), B.to(dtype)
    check(loss, x, w, Y, b, options=OWN)
    check(lambda *given: loss(*given, weight=B.abs().to(dtype)), x, w, Y, options=OWN)
    if reduction != "none":
        check(lambda *given: loss(*given, label_smoothing=0.1), x, w, Y, options=OWN)


def test_a_torch_without_these_operators_gets_all_other_translations() -> None:
    hidden = "import sys; sys.modules['torch.nn.modules.linear_cross_entropy'] = None"  # as torch 2.12, which does not have the file
    code = f"{hidden}; from fx2onnx.ops import own_translations; print('linear_cross_entropy' in str(own_translations()))"
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr
