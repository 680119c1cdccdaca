"""Writing at computed positions: right in ONNX Runtime at the export's size and at another."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from inputs import NAN, OWN, count, flags, ints, normal, whole
from operators import check, check_both, check_further
from torch import Tensor

put = torch.ops.aten.index_put
X, W, Z = normal(4, 6), normal(5), torch.tensor(2.5)
A, J, K, S = ints(0, 2, -1), ints(1, -2, 0), ints([0], [1]), torch.tensor(1)
ROWS, COLUMNS, ALL = torch.tensor([True, False, True, True]), torch.tensor([True, False, True, True, False, True]), X > 0
NONE = torch.zeros(4, dtype=torch.bool)
AT = ints([0, 1, 2, 0], [1, 1, 1, 3])


def written(x: Tensor, key: Any, value: Any) -> Tensor:
    x = x.clone()
    x[key] = value
    return x


WRITTEN = {
    "rows": (lambda x, i, v: (put(x, [i], v), put(x, [i], v[0]), put(x, [i], v[0, 0])), X, A, normal(3, 6)),
    "sums of rows": (lambda x, i, v: (put(x, [i], v, True), put(x.half(), [i], v.half(), True)), X, ints(0, 0, 1), normal(3, 6)),
    "sums of elements": (lambda x, i, j, v: put(x, [i, j], v, True), X, ints(0, 0, 1), ints(1, 1, 2), W[:3].clone()),
    "columns": (lambda x, i, v: (put(x, [None, i], v), put(x, [None, i], v[:, :1]), put(x, [None, i], v[0])), X, A, normal(4, 3)),
    "broadcast positions": (lambda x, k, i, v: (put(x, [k, i], v), put(x, [k, i], v[0])), X, K, A, normal(2, 3)),
    "in the middle": (lambda x, k, i, v: put(x, [None, k, i], v), normal(2, 4, 6), K, A, normal(2, 2, 3)),
    "separate": (lambda x, k, i, v: (put(x, [k, None, i], v), put(x, [k, None, i], v[0, 0])), normal(2, 4, 6), K, A, normal(2, 3, 4)),
    "a number where a mask is true": (lambda x, m: (written(x, m, 3.0), put(x, [m], x[0, 0], True)), X, ALL),
    "rows where a mask is true": (lambda x, m, v: (put(x, [m], v), put(x, [m], v[0]), put(x, [m], v[:1])), X, ROWS, normal(3, 6)),
    "columns where a mask is true": (lambda x, m, v: (put(x, [None, m], v), put(x, [None, m], v[:, :1])), X, COLUMNS, normal(4, 4)),
    "a mask of some axes": (lambda x, m, v: put(x, [m], v), normal(4, 6, 2), ALL, normal(2)),
    "a mask and positions": (lambda x, m, i, v: put(x, [m, i], v), X, ROWS, A, normal(3)),
    "a mask apart from a number": (lambda x, m, i, v: put(x, [m, None, i], v), normal(4, 2, 3), ROWS, S, normal(3, 2)),
    "where no mask is true": (lambda x, m, v: put(x, [m], v), X, NONE, torch.zeros(0, 6)),
    "booleans": (lambda x, i, v: (put(x, [i], v), put(x, [i], v, True)), ALL, ints(0, 0, 1), torch.tensor(True)),
    "what a mask reads": (lambda x, m: written(x, m, x[m] * 2), X, ALL),
    "by slices": (lambda x, i: written(written(written(x, slice(1, 3), 5), i, 1.0), (slice(None), -1), 7), X, A),
    "put": (lambda x, i, v: (x.put(i, v), x.put(i, v, True)), X, ints(0, -1, 5), W[:3].clone()),
    "masked_scatter": (lambda x, m, n, s: (x.masked_scatter(m, s), x.masked_scatter(n, s)), X, ALL, COLUMNS, normal(24)),
    "masked_scatter of nothing": (lambda x, m, s: x.masked_scatter(m, s), X, torch.zeros(4, 1, dtype=torch.bool), torch.zeros(0)),
    "scatter": (lambda x, i, s: (x.scatter(1, i, s), x.scatter(0, i, s), x.scatter(-1, i, 2.5)), X, ints([0, 1], [2, 3]), normal(2, 2)),
    "scatter that reduces": (
        lambda x, i, s: tuple(x.scatter(1, i, v, reduce=r) for v in (s, 2) for r in ("add", "multiply")),
        X,
        AT,
        normal(4, 6),
    ),
    "scatter no axes": (lambda x, i, s: (x.scatter(0, i, s), x.scatter(0, i, 1.0)), Z, torch.tensor(0), torch.tensor(1.0)),
    "scatter nothing": (lambda x, i: x.scatter(0, i, 7.0), W, ints()),
    "scatter_add": (lambda x, i, s: (x.scatter_add(0, i, s), x.half().scatter_add(0, i, s.half())), X, AT, normal(2, 4)),
    "scatter integers": (lambda x, i: (x.scatter(1, i, 1), (x > 5).scatter(1, i, True)), count(4, 6), AT),
    "index_add": (
        lambda x, i, s: (x.index_add(0, i, s), x.index_add(0, i, s, alpha=2), x.index_copy(0, i, s)),
        X,
        ints(0, 2, 1),
        normal(3, 6),
    ),
    "index_add to columns": (lambda x, i, s: (x.index_add(-1, i, s), x.index_copy(1, i, s)), X, ints(0, 2, 1), normal(4, 3)),
    "index_fill": (lambda x, i: (x.index_fill(0, i, 2.5), x.index_fill(-1, i, 1), (x > 0).index_fill(0, i[0], True)), X, ints(0, 2)),
    "index_fill no axes": (lambda x, i: x.index_fill(0, i, 2.5), Z, ints(0)),
    "slice_scatter": (
        lambda x, s: (x.slice_scatter(s, 0, 1, 3), x.slice_scatter(s, 0, -2), x.slice_scatter(s, 0, 0, 4, 2)),
        X,
        normal(2, 6),
    ),
    "slice_scatter of columns": (lambda x, s: (x.slice_scatter(s, 1, 0, 6, 3), x.slice_scatter(s, -1, -2)), X, normal(4, 2)),
    "select_scatter": (lambda x, s: (x.select_scatter(s, 0, 1), x.select_scatter(s, -2, -1), x.select_scatter(s[:4], 1, 2)), X, normal(6)),
    "diagonal_scatter": (lambda x, s: (x.diagonal_scatter(s, 1), x.diagonal_scatter(s)), normal(4, 5), normal(4)),
    "diagonal_scatter of three axes": (lambda x, s: x.diagonal_scatter(s, 0, 0, 2), normal(3, 2, 3), normal(2, 3)),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_it_is_what_torch_computes_at_any_size(name: str) -> None:
    check_both(*WRITTEN[name], options=OWN)


@pytest.mark.parametrize("opset", [18, 26])
@pytest.mark.parametrize("name", ["separate", "sums of rows", "scatter that reduces"])
def test_the_first_and_the_last_opset_do(name: str, opset: int) -> None:
    check(*WRITTEN[name], dynamic=True, options={"opset_version": opset, **OWN})


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
def test_what_is_scattered_is_reduced_with_and_without_what_was_there(reduce: str) -> None:
    source = torch.tensor([[1.0, 2, NAN, 4], [-1, 2, -3, 4]])
    check_both(lambda x, i, s: tuple(x.scatter_reduce(1, i, s, reduce, include_self=b) for b in (True, False)), X, AT, source, options=OWN)
    numbers = count(4, 6) - 7
    check(lambda x, i, s: tuple(x.scatter_reduce(0, i, s, reduce, include_self=b) for b in (True, False)), numbers, AT, AT + 1, options=OWN)


@pytest.mark.parametrize("reduce", ["prod", "mean", "amax", "amin"])
def test_columns_are_reduced_with_and_without_what_was_there(reduce: str) -> None:
    at, source = ints(0, 2, 0), normal(4, 3)
    check_both(lambda x, i, s: tuple(x.index_reduce(1, i, s, reduce, include_self=b) for b in (True, False)), X, at, source, options=OWN)


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["amax", "amin", "prod"])
def test_booleans_are_reduced_as_torch_does_it(reduce: str, include_self: bool) -> None:
    given = flags(6, 5), whole(9, 5, low=0, high=6), flags(9, 5)
    check_further(lambda x, at, y: x.scatter_reduce(0, at, y, reduce, include_self=include_self), given, given, ({},) * 3)
