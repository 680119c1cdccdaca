"""What an export leaves behind in the process: what torch.export leaves, and no more."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from fx2onnx import to_onnx

MODEL, X = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4)).eval(), torch.ones(4, 8)
FEW, TIMES = 6, 12  # exports before it is counted, and while
NOISE = 3  # objects an export, of caches that fill
FIXED = 60  # about twice what torch.export leaves where no axis moves: sources of generated code, for tracebacks


def left_behind(export: Callable[[], Any]) -> float:
    """Return how many objects an export leaves, on average."""
    for _ in range(FEW):
        export()
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(TIMES):
        export()
    gc.collect()
    return (len(gc.get_objects()) - before) / TIMES


@pytest.mark.parametrize("shapes", [None, ({0: torch.export.Dim.DYNAMIC},)], ids=["fixed", "moving"])
def test_an_export_leaves_what_torch_leaves(shapes: Any) -> None:
    floor = left_behind(lambda: torch.export.export(MODEL, (X,), dynamic_shapes=shapes))
    ours = left_behind(lambda: to_onnx(MODEL, (X,), dynamic_shapes=shapes))
    assert ours <= max(floor, 0) + NOISE  # below 0 where what others left is freed meanwhile
    assert shapes is not None or ours < FIXED
