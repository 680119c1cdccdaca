"""Norms as torch.export decomposes them: right in ONNX Runtime at the export's size and at another."""

from __future__ import annotations

import pytest
import torch
from inputs import OWN
from operators import check_both
from torch import nn

from fx2onnx import to_onnx

aten = torch.ops.aten
X, W, B = torch.randn(2, 3, 4), torch.randn(4), torch.randn(4)
C, D, MEAN, VAR = torch.randn(3), torch.randn(3), torch.randn(3), torch.rand(3) + 0.5

ROWS = {
    "native batch": (aten._native_batch_norm_legit_no_training.default, X, C, D, MEAN, VAR, 0.1, 1e-5),
    "native batch without statistics": (aten._native_batch_norm_legit.no_stats, X, C, D, True, 0.1, 1e-5),
    "functional batch": (aten._native_batch_norm_legit_functional.default, X, C, D, MEAN, VAR, True, 0.1, 1e-5),
}


@pytest.mark.parametrize("name", ROWS)
def test_norms_give_what_eager_gives(name: str) -> None:
    check_both(*ROWS[name], options=OWN)


@pytest.mark.parametrize("module", [nn.BatchNorm1d(3), nn.BatchNorm1d(3).eval()])
def test_decomposed_norms_give_what_eager_gives(module: nn.Module) -> None:
    program = torch.export.export(module, (X,), strict=False).run_decompositions()
    made = to_onnx(program, mutations="outputs", **OWN)(X)
    torch.testing.assert_close(made[0], module(X))
