"""Integers seen at a few settings are explained by an expression that is right at all others, or by none."""

from __future__ import annotations

import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._sympy.functions import FloorDiv

from fx2onnx.shapes.size_inference import NoSizeExpression, SizeInference, Underdetermined

B, S = sympy.symbols("b s", integer=True, positive=True)
SEEN = [{B: 2, S: 7}, {B: 3, S: 9}, {B: 5, S: 12}, {B: 7, S: 22}, {B: 1, S: 1}]
NEVER_SEEN = [{B: 11, S: 64}, {B: 4, S: 1000}, {B: 128, S: 13}]


def seen(expression: sympy.Expr) -> tuple[int, ...]:
    """What an expression is at the settings that were seen."""
    return tuple(int(expression.subs(setting)) for setting in SEEN)


@settings(max_examples=200, deadline=None)
@given(factor=st.integers(-4, 8), other=st.integers(-4, 8), constant=st.integers(-9, 9), product=st.booleans())
def test_sums_of_sizes_and_products_are_found(factor: int, other: int, constant: int, product: bool) -> None:
    expression = factor * (B * S if product else B) + other * S + constant
    found = SizeInference(SEEN).of(seen(expression))
    assert all(sympy.sympify(found).subs(at) == expression.subs(at) for at in NEVER_SEEN)


@settings(max_examples=200, deadline=None)
@given(step=st.integers(2, 16), offset=st.integers(-3, 20))
def test_sizes_in_steps_are_found_or_another_run_is_asked_for(step: int, offset: int) -> None:
    at = list(SEEN)
    for _ in range(12):
        values = tuple((setting[S] + offset) // step for setting in at)
        if len(set(values)) == 1:
            return
        try:
            found = SizeInference(at).of(values)
        except Underdetermined as error:
            at.append(error.setting)
            continue
        assert all(int(sympy.sympify(found).subs(setting)) == (setting[S] + offset) // step for setting in NEVER_SEEN)
        return
    pytest.fail(f"no end of further runs: {at}")


def test_what_no_expression_gives_is_said() -> None:
    with pytest.raises(NoSizeExpression):
        SizeInference(SEEN).of((4, 8, 1, 3, 17))


def test_two_terms_are_no_explanation_of_three_integers() -> None:
    """139·b - 60·s + 150 gives these, as some such sum gives any three."""
    with pytest.raises(NoSizeExpression):
        SizeInference(SEEN[:3]).of((8, 27, 125))


def test_several_for_each_step_are_found() -> None:
    values = seen(5 * FloorDiv(S + 1, 2) + 3)
    found = SizeInference(SEEN).of(values)
    assert all(found.subs(at) == 5 * ((at[S] + 1) // 2) + 3 for at in NEVER_SEEN)
    with pytest.raises(NoSizeExpression):
        SizeInference(SEEN[:4]).of(values[:4])


def test_expressions_that_differ_at_sizes_alone_that_are_not_looked_at_are_the_same() -> None:
    odd = [{S: 7}, {S: 9}, {S: 13}]
    with pytest.raises(Underdetermined):
        SizeInference(odd).of((4, 5, 7))
    found = SizeInference(odd, lambda setting: setting[S] % 2 == 1).of((4, 5, 7))
    assert [found.subs({S: size}) for size in (1, 101, 4097)] == [1, 51, 2049]
