"""What Python's own functions make of a moving size is right at sizes that no run had; nothing of Python is changed afterwards."""

from __future__ import annotations

import builtins
import math
import sys
from collections.abc import Callable

import pytest
import torch
from modules import Of
from torch import Tensor

from fx2onnx import to_onnx
from fx2onnx.errors import FrozenDimension
from fx2onnx.trace.refusal import TraceUnsupported

ROWS = ({0: "rows"},)
SIZES = (*range(1, 40), 64, 100, 101, 429, 430, 571, 1000)
HERE = sys.modules[__name__]

TAKEN: dict[str, Callable[[Tensor], Tensor]] = {
    "int of a size": lambda x: x[: int(x.shape[0]) - 1],
    "all sizes as int": lambda x: x.new_zeros([int(size) for size in x.size()]) + x,
    "map": lambda x: x.new_zeros([*map(int, x.shape)]) + x,
    "a half": lambda x: x[: int(x.shape[0] / 2)] * 2,
    "a share": lambda x: x[: int(x.shape[0] * 0.7)] * 2,
    "at least one": lambda x: x[: max(1, int(x.shape[0] * 0.1))],
    "the greatest": lambda x: x.topk(max(1, int(x.shape[0] * 0.5)), dim=0)[0],
    "the better half": lambda x: x.topk(max(1, min(x.shape[0], math.ceil(x.shape[0] / 2))), dim=0)[0],
    "the best tenth": lambda x: x.topk(max(1, int(x.shape[0] * 0.1)), dim=0)[0],
    "rounded up": lambda x: x[: int(math.ceil(x.shape[0] / 3))],  # noqa: RUF046 - in Python 2 it was not, and models still say it
    "to a multiple": lambda x: torch.nn.functional.pad(x, (0, 0, 0, int(math.ceil(x.shape[0] / 4) * 4 - x.shape[0]))),
    "two factors": lambda x: x[: int(x.shape[0] * 0.1 * 0.3)] * 2,
    "a factor and a number": lambda x: x[: int(x.shape[0] * 0.1 * 3)] * 2,
    "a product of sizes": lambda x: x * int(x.shape[0] * ((x.shape[0] + 1) * 0.3)),
    "a quotient of floats": lambda x: x[: int(x.shape[0] * 0.3 / 0.9)] * 2,
    "a sum of floats": lambda x: x[: int(x.shape[0] * 0.3 + 0.1 + 0.7)] * 2,
    "float of a size": lambda x: x / float(x.shape[0]),
    "a root": lambda x: x / float(x.shape[0]) ** 0.5,
    "a logarithm": lambda x: x * math.log(x.shape[0]),
    "a decay": lambda x: x * math.exp(-x.shape[0]),
    "divmod": lambda x: x[: divmod(x.shape[0], 3)[0]] * divmod(x.shape[0], 3)[1],
    "turns": lambda x: torch.stack([x[i] * i for i in range(int(x.shape[0]))]),
    "places": lambda x: x + torch.linspace(0, 1, int(x.shape[0]))[:, None],
    "a test": lambda x: x * 2 if int(x.shape[0] * 0.3) > 4 else x,
    "a test that holds at few sizes": lambda x: x * 2 if int(x.shape[0] * 0.07) >= 30 else x,
    "is one": lambda x: x[: int(x.shape[0])] * (2 if isinstance(x.shape[0], int) else 3),
    "a new size": lambda x: torch.nn.functional.interpolate(x.T[None], size=int(x.shape[0] * 1.5)),
}


@pytest.mark.parametrize("name", TAKEN)
def test_a_number_made_of_a_size_is_right_at_all_sizes(name: str) -> None:
    function = TAKEN[name]
    program = to_onnx(Of(function), (torch.rand(6, 4),), dynamic_shapes=ROWS, capture="run")
    for rows in SIZES:
        x = torch.rand(rows, 4)
        torch.testing.assert_close(program(x)[0], function(x), rtol=1e-4, atol=1e-5)


REFUSED: dict[str, tuple[Callable[[Tensor], Tensor], str]] = {
    "a power of two": (lambda x: x[: math.ceil(math.log2(x.shape[0]))], r"float\(\) converts a dynamic size to a Python number at"),
    "asked of the size": (lambda x: x[: x.shape[0].__int__() - 1], r"int\(\) converts a dynamic size to a Python number at"),
    "a type that is compared": (lambda x: x * (2 if type(x.shape[0]) is int else int(x.shape[0])), "at other sizes|do not explain"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_expression_is_kept_of_is_refused(name: str) -> None:
    function, told = REFUSED[name]
    with pytest.raises((TraceUnsupported, FrozenDimension), match=told):
        to_onnx(Of(function), (torch.rand(6, 4),), dynamic_shapes=ROWS, capture="run")


def test_a_comparison_that_torch_wants_as_a_bool_is_a_test_with_both_sides() -> None:
    class Causal(torch.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.nn.functional.scaled_dot_product_attention(x, x, x.tanh(), is_causal=x.shape[0] != 3)

    compared = dict(vars(torch.SymInt))
    program = to_onnx(Causal(), (torch.rand(6, 4),), dynamic_shapes=ROWS, capture="run")
    assert dict(vars(torch.SymInt)) == compared
    assert len(program.report.branches) == 1
    for rows in (1, 2, 3, 4, 17):
        x = torch.rand(rows, 4)
        torch.testing.assert_close(program(x)[0], Causal()(x), rtol=1e-4, atol=1e-5)


def test_python_is_as_before() -> None:
    before = builtins.int, builtins.float, builtins.len, builtins.divmod, math.sqrt, math.log, math.exp, dict(vars(torch.SymFloat))
    for name in ("a share", "a logarithm"):
        to_onnx(Of(TAKEN[name]), (torch.rand(6, 4),), dynamic_shapes=ROWS, capture="run")
    after = builtins.int, builtins.float, builtins.len, builtins.divmod, math.sqrt, math.log, math.exp, dict(vars(torch.SymFloat))
    assert before == after
    assert "int" not in vars(HERE)
    assert "float" not in vars(HERE)
