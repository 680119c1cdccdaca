"""Two features in one model: loop, branch, value-dependent size, equal blocks, mutation; in sequence, and one inside the other."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations_with_replacement

import pytest
import torch
from torch import Tensor, nn

from exportlab import to_onnx
from fx2onnx import ToOnnxError

Feature = Callable[[nn.Module, Tensor, "Step"], Tensor]
Step = Callable[[Tensor], Tensor]


def loop(model: nn.Module, x: Tensor, inner: Step) -> Tensor:
    """Loop over the rows, each of which depends on the one before."""
    state, rows = torch.zeros(4), []
    for row in x:
        state = torch.tanh(inner((row + state)[None])[0])
        rows.append(state)
    return torch.stack(rows)


def branch(model: nn.Module, x: Tensor, inner: Step) -> Tensor:
    """Take one of two branches by the sum of the values."""
    return inner(x) * 0.5 if x.sum() > 0 else inner(x.cos()) + 0.3


def selection(model: nn.Module, x: Tensor, inner: Step) -> Tensor:
    """Add the mean of the rows whose sum is positive; values decide how many there are."""
    rows = inner(x[x.sum(1) > 0])
    return x + rows.sum(0) / (rows.shape[0] + 1)


def blocks(model: nn.Module, x: Tensor, inner: Step) -> Tensor:
    """Apply two blocks of one class."""
    for block in model.blocks:  # type: ignore[union-attr]  # a ModuleList
        x = x + block(inner(x))
    return x


def mutation(model: nn.Module, x: Tensor, inner: Step) -> Tensor:
    """Write into a part of a copy, whose view is read afterwards."""
    y = x.clone()
    part = y[:, :2]
    part.mul_(inner(x)[:, :2]).add_(1)
    return y.sin()


FEATURES: dict[str, Feature] = {function.__name__: function for function in (loop, branch, selection, blocks, mutation)}


class ComplexPair(nn.Module):
    """Two features: one after the other, or the second inside the first."""

    def __init__(self, first: Feature, second: Feature, is_nested: bool) -> None:
        super().__init__()
        self.first, self.second, self.is_nested = first, second, is_nested
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4)) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        if self.is_nested:
            return self.first(self, x, lambda y: self.second(self, y, torch.sin))
        return self.second(self, self.first(self, x, torch.sin), torch.cos)


def inputs() -> list[Tensor]:
    """Return inputs of other sizes and with values for each branch: with positive rows only, without any, and mixed."""
    torch.manual_seed(1)
    return [scale * torch.randn(rows, 4) + offset for rows in (4, 7, 1, 2) for scale, offset in ((1, 0), (0.5, 1.5), (0.5, -1.5))]


PAIRS = [*combinations_with_replacement(FEATURES, 2)]
NESTED = [(first, second) for first in FEATURES for second in FEATURES]
REFUSED = {  # where a loop is over rows that values select, or selects in each iteration, or has one row of its own
    ("loop", "selection", False),
    ("loop", "selection", True),
    ("selection", "loop", True),
    ("loop", "loop", True),
}


@pytest.mark.parametrize(("first", "second", "is_nested"), [(*p, False) for p in PAIRS] + [(*p, True) for p in NESTED])
def test_a_pair_of_features_is_right_or_refused(first: str, second: str, is_nested: bool) -> None:
    torch.manual_seed(0)
    model = ComplexPair(FEATURES[first], FEATURES[second], is_nested).eval()
    if (first, second, is_nested) in REFUSED:
        with pytest.raises(ToOnnxError, match=r"test_feature_pairs.py:\d+ in loop"):
            to_onnx(model, (torch.randn(4, 4),), dynamic_shapes=({0: "rows"},))
        return
    program = to_onnx(model, (torch.randn(4, 4),), dynamic_shapes=({0: "rows"},))
    for x in inputs():
        torch.testing.assert_close(program(x)[0], model(x), rtol=1e-4, atol=1e-5)
