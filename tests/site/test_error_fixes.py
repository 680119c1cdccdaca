"""The first fix of an error, which the box shows."""

from __future__ import annotations

import ast

import pytest
from error_fixes import cut_claim, describe_fix

from exportlab.errors import load_known_errors

MODEL = 'class A(nn.Module):\n    pass\n\n\ndef fixed():\n    return export("dynamo", A(), SAMPLES[0]), B(), SAMPLES'
CALL = 'def fixed():\n    rows = Dim("rows")\n    return export("dynamo", A(), SAMPLES[0], dynamic_shapes=({0: rows},)), A(), SAMPLES'


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        (MODEL, "class A(nn.Module):\n    pass"),
        (CALL, 'rows = Dim("rows")\nexported = export("dynamo", A(), SAMPLES[0], dynamic_shapes=({0: rows},))'),
        ("def fixed():\n    return saved(SMALL), A(), SAMPLES", ""),
    ],
)
def test_a_fix_is_shown_without_what_compares_it(code: str, shown: str) -> None:
    assert cut_claim(code) == shown


def test_most_errors_have_a_fix_with_code() -> None:
    fixes = [describe_fix(error) for error in load_known_errors()]
    assert all(fix["name"] for fix in fixes)
    assert all(ast.parse(fix["code"]) for fix in fixes)
    assert sum(bool(fix["code"]) for fix in fixes) > 0.9 * len(fixes)
