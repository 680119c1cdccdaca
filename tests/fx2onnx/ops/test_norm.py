"""Norms and softmax give in ORT what they give in eager, in training with the new running statistics."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from operators import check, check_both
from torch import nn

from fx2onnx import to_onnx

aten = torch.ops.aten
OWN = {"fallback": False}
X, W, B = torch.randn(2, 3, 4), torch.randn(4), torch.randn(4)
C, D, MEAN, VAR = torch.randn(3), torch.randn(3), torch.randn(3), torch.rand(3) + 0.5
GROUPED = torch.randn(2, 6, 4, 5)
SIX = torch.randn(6)
ROWS = {
    "layer": (F.layer_norm, X, (4,), W, B),
    "layer two axes": (F.layer_norm, X, (3, 4)),
    "layer bias alone": (F.layer_norm, X, (4,), None, B),
    "layer float16": (F.layer_norm, X.half(), (4,), W.half(), B.half()),
    "layer float64": (F.layer_norm, X.double(), (4,), W.double(), B.double()),
    "layer empty": (F.layer_norm, X[:0], (4,), W, B),
    "layer of one row": (F.layer_norm, W, (4,)),
    "layer of constants": (F.layer_norm, torch.ones(2, 4), (4,)),
    "rms": (F.rms_norm, X, (4,), W, 1e-5),
    "rms two axes": (F.rms_norm, X, (3, 4)),
    "rms float16": (F.rms_norm, 1e-3 * X.half(), (4,), W.half()),
    "rms float64": (F.rms_norm, X.double(), (4,), W.double()),
    "group": (F.group_norm, GROUPED, 3, SIX, SIX),
    "group without weights": (F.group_norm, GROUPED, 2),
    "group of nothing": (F.group_norm, GROUPED[:0], 2, SIX, SIX),
    "group of vectors": (F.group_norm, GROUPED[:, :, 0, 0], 2, SIX),
    "group float64": (F.group_norm, GROUPED.double(), 2, None, SIX.double()),
    "batch": (F.batch_norm, X, MEAN, VAR, C, D),
    "batch of vectors": (F.batch_norm, X[:, :, 0], MEAN, VAR),
    "batch float64": (F.batch_norm, X.double(), MEAN.double(), VAR.double(), C.double()),
    "batch float16": (F.batch_norm, X.half(), MEAN.half(), VAR.half()),
    "batch training": (F.batch_norm, X, None, None, C, D, True),
    "instance": (F.instance_norm, GROUPED, None, None, SIX, SIX),
    "instance float64": (F.instance_norm, X.double()),
    "instance in evaluation": (F.instance_norm, X, MEAN, VAR, None, None, False),
    "softmax of one number": (F.softmax, torch.tensor(2.0), 0),
    "softmax of inf": (F.softmax, torch.tensor(torch.inf), -1),
    "softmax in float64": (lambda x: F.softmax(x, -1, dtype=torch.float64), X),
    "softmax of integers": (lambda x: F.softmax(x, 0, dtype=torch.float32), torch.arange(6).reshape(2, 3)),
    "log softmax": (F.log_softmax, X, 1),
    "log softmax of large": (F.log_softmax, 1e4 * X, -1),
    "softmin": (F.softmin, X, -2),
    "softmax float16": (F.softmax, X.half(), -1),
    "softmax empty": (F.softmax, X[:0], -1),
    "softmax of no classes": (F.softmax, X[:, :0], 1),
    "native layer": (aten.native_layer_norm.default, X, [4], W, B, 1e-5),
    "native group": (aten.native_group_norm.default, GROUPED, SIX, None, 2, 6, 20, 3, 1e-5),
    "native batch": (aten._native_batch_norm_legit_no_training.default, X, C, D, MEAN, VAR, 0.1, 1e-5),
    "native batch without statistics": (aten._native_batch_norm_legit.no_stats, X, C, D, True, 0.1, 1e-5),
    "functional batch": (aten._native_batch_norm_legit_functional.default, X, C, D, MEAN, VAR, True, 0.1, 1e-5),
    "fused rms": (aten._fused_rms_norm.default, X, [4], W, 1e-5),
    "_softmax": (aten._softmax.default, X, -1, False),
    "_log_softmax": (aten._log_softmax.default, X, -1, False),
    "safe softmax": (aten._safe_softmax.default, torch.tensor([[-torch.inf] * 3, [1, -torch.inf, 2]]), -1),
}


@pytest.mark.parametrize("name", ROWS)
def test_norms_give_what_eager_gives(name: str) -> None:
    (check if name == "native group" else check_both)(*ROWS[name], options=OWN)


@pytest.mark.parametrize("opset", [18, 21, 23, 26])
@pytest.mark.parametrize(
    "name", ["layer", "rms", "rms float16", "group", "group float64", "group of vectors", "batch", "instance", "log softmax"]
)
def test_norms_are_right_at_every_opset(name: str, opset: int) -> None:
    check(*ROWS[name], dynamic=True, options=OWN | {"opset_version": opset})


@pytest.mark.parametrize("function", [F.softmax, F.log_softmax])
def test_rows_of_infinities_and_nan_give_what_eager_gives(function: Any) -> None:
    inf, nan = torch.inf, torch.nan
    check_both(function, torch.tensor([[-inf] * 3, [1, -inf, 2], [inf, 1, 2], [nan, 1, 2]]), -1, options=OWN)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=4), st.data(), st.sampled_from([torch.float32, torch.float64, torch.float16]))
def test_softmax_of_any_sizes_axis_and_dtype(sizes: list[int], data: st.DataObject, dtype: torch.dtype) -> None:
    dim = data.draw(st.integers(-len(sizes), len(sizes) - 1))
    check(data.draw(st.sampled_from([F.softmax, F.log_softmax])), torch.randn(sizes).to(dtype), dim, dynamic=True, options=OWN)


TRAINED = {
    "batch 1d": (nn.BatchNorm1d(3), X),
    "batch 2d without weights": (nn.BatchNorm2d(6, affine=False, momentum=0.3), GROUPED),
    "instance": (nn.InstanceNorm2d(6, affine=True, track_running_stats=True), GROUPED),
}


@pytest.mark.parametrize("name", TRAINED)
def test_training_returns_the_new_running_statistics(name: str) -> None:
    module, x = TRAINED[name]
    made = to_onnx(module.train(), (x,), mutations="outputs", **OWN)(x)
    torch.testing.assert_close(made[0], module(x))
    torch.testing.assert_close(list(made[1:3]), [module.running_mean, module.running_var])


@pytest.mark.parametrize("module", [nn.BatchNorm1d(3), nn.BatchNorm1d(3).eval(), nn.LayerNorm(4), nn.GroupNorm(3, 3), nn.RMSNorm(4)])
def test_decomposed_norms_give_what_eager_gives(module: nn.Module) -> None:
    program = torch.export.export(module, (X,), strict=False).run_decompositions()
    made = to_onnx(program, mutations="outputs", **OWN)(X)
    torch.testing.assert_close(made[0], module(X))
