"""Norms, in training with the new running statistics: right in ONNX Runtime at the export's size and at another."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from inputs import OWN
from operators import check, check_both
from torch import nn

from fx2onnx import to_onnx

aten = torch.ops.aten
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
    "group far from 0": (F.group_norm, GROUPED + 100, 2, SIX),
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
    "native layer": (aten.native_layer_norm.default, X, [4], W, B, 1e-5),
    "native group": (aten.native_group_norm.default, GROUPED, SIX, None, 2, 6, 20, 3, 1e-5),
    "fused rms": (aten._fused_rms_norm.default, X, [4], W, 1e-5),
}


# The attribute epsilon is a float32: where it is large beside the variance, that is all the exactness there is.
EPSILON = {name: {torch.float64: (1e-7, 1e-7)} for name in ROWS if "float64" in name}


@pytest.mark.parametrize("name", ROWS)
def test_norms_give_what_eager_gives(name: str) -> None:
    (check if name == "native group" else check_both)(*ROWS[name], options=OWN, tolerances=EPSILON.get(name))


@pytest.mark.parametrize("opset", [18, 21, 23, 26])
@pytest.mark.parametrize(
    "name", ["layer", "rms", "rms float16", "group", "group far from 0", "group float64", "group of vectors", "batch", "instance"]
)
def test_norms_are_right_at_every_opset(name: str, opset: int) -> None:
    check(*ROWS[name], dynamic=True, options=OWN | {"opset_version": opset}, tolerances=EPSILON.get(name))


TRAINED = {
    "batch 1d": (nn.BatchNorm1d(3), X),
    "batch 2d without weights": (nn.BatchNorm2d(6, affine=False, momentum=0.3), GROUPED),
    "instance": (nn.InstanceNorm2d(6, affine=True, track_running_stats=True), GROUPED),
}


@pytest.mark.parametrize("name", TRAINED)
def test_training_returns_the_new_running_statistics(name: str) -> None:
    module, x = TRAINED[name]
    made = to_onnx(module.train(), (x,), mutations="outputs", training=torch.onnx.TrainingMode.TRAINING, **OWN)(x)
    torch.testing.assert_close(made[0], module(x))
    torch.testing.assert_close(list(made[1:3]), [module.running_mean, module.running_var])


@pytest.mark.parametrize("module", [nn.LayerNorm(4), nn.GroupNorm(3, 3), nn.RMSNorm(4)])
def test_decomposed_norms_give_what_eager_gives(module: nn.Module) -> None:
    program = torch.export.export(module, (X,), strict=False).run_decompositions()
    made = to_onnx(program, mutations="outputs", **OWN)(X)
    torch.testing.assert_close(made[0], module(X))


def test_rows_of_an_empty_batch_keep_their_sizes() -> None:
    check(lambda x: F.rms_norm(x, x.shape[1:]), torch.zeros(0, 3), options=OWN)
