"""Where torch refuses a model, our error is all that a reader gets: no graph on stderr, and no log beside it."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress

from torch.export import _trace
from torch.fx.experimental.symbolic_shapes import log

from fx2onnx.patches.registry import apply_patches

SCRIPT = """
import torch
from fx2onnx import to_onnx
from fx2onnx.errors import ToOnnxError

class Model(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)

def logged(x):
    torch.fx.experimental.symbolic_shapes.log.warning("something else")
    return x.numpy()

REFUSED = {
    "a test of a value": lambda x: x if x.sum() > 0 else x[:, :2].numpy(),
    "a size that values decide": lambda x: x.view(int(x.sum()), -1).numpy(),
    "a number of rows": lambda x: x.nonzero().numpy() if x.nonzero().shape[0] > 3 else x,
    "a comparison as a key": lambda x: x * {True: 1.0, False: 2.0}[x.shape[1] > 4],
}
WAYS = [("auto", False), ("torch.export", False), ("torch.export", True)]

def refused(function):
    for by, strict in WAYS:
        try:
            to_onnx(Model(function), (torch.ones(2, 8),), dynamic_shapes=({1: torch.export.Dim("steps")},), capture=by, strict=strict)
        except ToOnnxError as error:
            print("refused:", error)
"""


def run(what: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-W", "ignore", "-c", SCRIPT + what], capture_output=True, text=True, check=True)


def test_nothing_of_torch_s_stands_beside_a_refusal() -> None:
    said = run("for function in REFUSED.values(): refused(function)")
    assert said.stdout.count("refused:") >= 9
    assert said.stderr == ""


def test_what_else_torch_logs_is_shown_as_before() -> None:
    said = run("refused(logged); torch.fx.experimental.symbolic_shapes.log.warning('failed during evaluate_expr(')").stderr
    assert "something else" in said
    assert "failed during evaluate_expr(" in said


def test_torch_is_as_it_was_afterwards() -> None:
    before = list(log.filters)
    with suppress(ValueError), apply_patches("quiet_logs"):
        assert log.filters != before
        raise ValueError
    assert log.filters == before
    assert "print" not in vars(_trace)
