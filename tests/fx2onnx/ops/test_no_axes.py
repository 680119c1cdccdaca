"""Whatever reduces, over each set of axes that eager takes, an empty one among them, of tensors with three axes down to none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
import torch
from inputs import INF, normal
from torch import nn
from torch.nn.utils.parametrizations import weight_norm
from torch.utils import _pytree as pytree

from fx2onnx import to_onnx

SIZES = [(), (1,), (4,), (2, 3), (2, 1, 3)]
DIMS: list[Any] = [None, [], (), 0, -1, (0,), (-1, 0), (0, 1, 2)]
ORDERS: list[Any] = [None, 0, 1, 2, 3, INF, -INF, "fro", "nuc"]

REDUCTIONS: dict[str, Callable[..., Any]] = {
    name: getattr(torch, name)
    for name in (
        "all", "amax", "amin", "aminmax", "any", "argmax", "argmin", "count_nonzero", "cummax", "cumprod", "cumsum", "flip",
        "log_softmax", "logcumsumexp", "logsumexp", "max", "mean", "median", "min", "nanmean", "nanmedian", "nansum", "norm", "prod",
        "softmax", "squeeze", "std", "std_mean", "sum", "unsqueeze", "var", "var_mean",
    )
}  # fmt: skip
REDUCTIONS["quantile"] = lambda x, *dim, **kept: torch.quantile(x, torch.tensor([0.25, 0.6]), *dim, **kept)
REDUCTIONS["roll"] = lambda x, *dim, **kept: torch.roll(x, 1, *dim, **kept)
REDUCTIONS["std, corrected"] = partial(torch.std, correction=0)
REDUCTIONS["normalize"] = lambda x, dim: nn.functional.normalize(x, dim=dim)
REDUCTIONS |= {f"norm {order}": partial(torch.norm, p=order) for order in ORDERS[1:]}
REDUCTIONS |= {f"vector_norm {order}": partial(torch.linalg.vector_norm, ord=order) for order in ORDERS[1:7]}
REDUCTIONS |= {f"linalg.norm {order}": partial(torch.linalg.norm, ord=order) for order in ORDERS}
REDUCTIONS |= {f"matrix_norm {order}": partial(torch.linalg.matrix_norm, ord=order) for order in (2, "fro", "nuc", 1)}
REDUCTIONS["frobenius_norm"] = torch.ops.aten.frobenius_norm
POSITIONAL = [REDUCTIONS[name] for name in ("flip", "frobenius_norm", "quantile", "roll")]


def calls(function: Callable[..., Any], x: torch.Tensor) -> Iterator[Callable[[torch.Tensor], Any]]:
    """Yield the calls that eager takes: with no axes named, and with each of `DIMS`."""
    for kept in ({}, {"keepdim": True}):
        for call in (partial(function, **kept), *(partial(_along, function, dim, kept) for dim in DIMS)):
            with suppress(RuntimeError, TypeError, IndexError, ValueError):
                if tensors(call(x)):
                    yield call


def _along(function: Callable[..., Any], dim: Any, kept: dict[str, Any], x: torch.Tensor) -> Any:
    return function(x, dim, **kept) if function in POSITIONAL else function(x, dim=dim, **kept)


def tensors(made: Any) -> list[torch.Tensor]:
    """The tensors among what was returned."""
    return [leaf for leaf in pytree.tree_leaves(made) if isinstance(leaf, torch.Tensor)]


class All(nn.Module):
    """Makes all these calls of a function, each of the first tensor, the second, and so on."""

    def __init__(self, by_tensor: Sequence[Sequence[Callable[[torch.Tensor], Any]]]) -> None:
        super().__init__()
        self.by_tensor = by_tensor

    def forward(self, *xs: torch.Tensor) -> list[torch.Tensor]:
        return [made for x, calls in zip(xs, self.by_tensor, strict=True) for call in calls for made in tensors(call(x))]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", REDUCTIONS)
def test_over_any_axes_of_tensors_with_any_number_of_them(name: str) -> None:
    xs = tuple(normal(*sizes) + 0.5 for sizes in SIZES)
    model = All([list(calls(REDUCTIONS[name], x)) for x in xs])
    xs, by_tensor = zip(*[(x, made) for x, made in zip(xs, model.by_tensor, strict=True) if made], strict=True)
    model = All(by_tensor)
    answers = to_onnx(model, xs)(*xs)
    expected = model(*xs)
    assert len(expected) >= 3
    for actual, wanted in zip(answers, expected, strict=True):
        torch.testing.assert_close(actual, wanted, rtol=1e-4, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize(("sizes", "dim"), [((4,), 0), ((4,), -1), ((4,), None), ((1,), 0), ((2, 3), 0), ((2, 3), 1), ((2, 3), None)])
def test_weight_norm(sizes: tuple[int, ...], dim: int | None) -> None:
    class Scale(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(normal(*sizes))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.weight

    model = weight_norm(Scale(), dim=dim)
    with torch.no_grad():
        model.parametrizations.weight.original0.mul_(1.5)
        x = normal(*sizes)
        torch.testing.assert_close(to_onnx(model, (x,))(x)[0], model(x))
