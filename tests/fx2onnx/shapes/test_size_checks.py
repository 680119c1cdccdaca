"""Expressions of sizes are compared with every run, and shortened only by a proof."""

from __future__ import annotations

import pytest
import sympy
import torch
from torch.utils._sympy.functions import FloorDiv, Max, Min, Mod

from fx2onnx.guards.dynamic_shapes import dynamic_dims
from fx2onnx.shapes.size_checks import SizeChecks
from fx2onnx.trace.size_domain import SizeDomain

X = torch.ones(5, 3)


def checks(*sizes: int, condition: str = "") -> tuple[SizeChecks, sympy.Symbol]:
    dims = dynamic_dims(torch.nn.Identity(), (X,), {}, ({0: torch.export.Dim("n", max=1000)},))
    axes = SizeDomain.of(dims, [X])
    (symbol,) = axes.example
    if condition:
        axes, _ = axes.assume(sympy.sympify(condition, {"n": symbol}), (X,))
    return SizeChecks([{symbol: size} for size in (5, *sizes)], axes), symbol


def test_a_size_has_to_be_that_of_every_run() -> None:
    found, n = checks(11, 1)
    assert found.matches(2 * n + 1, (11, 23, 3))
    assert not found.matches(2 * n + 1, (11, 23, 4))
    assert found.matches(7, (7, 7, 7))
    assert not found.matches(7, (7, 7, 8))
    assert found.matches_further(n + 1, (12, 2))
    assert not found.matches_further(n + 1, (12, 3))


@pytest.mark.parametrize(
    ("longer", "shorter"),
    [
        (lambda n: Min(n, n + 2), lambda n: n),
        (lambda n: Max(0, n - 1), lambda n: n - 1),
        (lambda n: FloorDiv(4 * n + 3, 4), lambda n: n),
        (lambda n: FloorDiv(n + Mod(4 - Mod(n, 4), 4), FloorDiv(n + 3, 4)), lambda n: 4),
    ],
)
def test_an_expression_is_shortened_where_that_is_proved(longer: object, shorter: object) -> None:
    found, n = checks(11, 1)
    assert found.simplify(longer(n)) == shorter(n)  # type: ignore[operator]


@pytest.mark.parametrize("longer", [lambda n: Min(n, 100), lambda n: FloorDiv(n, 100), lambda n: Max(n, 999)])
def test_what_the_runs_alone_show_is_no_proof(longer: object) -> None:
    found, n = checks(11, 1)
    size = longer(n)  # type: ignore[operator]
    assert found.simplify(size) == size


def test_a_condition_is_part_of_the_proof() -> None:
    found, n = checks(11, condition="n >= 5")
    assert found.simplify(Min(n, 5)) == 5
