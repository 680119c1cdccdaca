"""Reading, writing, sorting and searching at computed positions: right in ONNX Runtime at the export's size and at another."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from operators import check, check_both
from torch import Tensor
from torch.nn import functional as F

OWN = {"fallback": False}
NAN, INF = float("nan"), float("inf")
read, put = torch.ops.aten.index, torch.ops.aten.index_put


def normal(*sizes: int) -> Tensor:
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(sum(sizes)))


def count(*sizes: int) -> Tensor:
    return torch.arange(torch.Size(sizes).numel()).reshape(sizes)


def ints(*numbers: Any) -> Tensor:
    return torch.tensor(numbers, dtype=torch.int64)


X, Y, W, Z = normal(4, 6), normal(4, 5, 6, 7), normal(5), torch.tensor(2.5)
CUBE = normal(4, 5, 6)
A, J, K, S = ints(0, 2, -1), ints(1, -2, 0), ints([0], [1]), torch.tensor(1)
ROWS, COLUMNS, ALL = torch.tensor([True, False, True, True]), torch.tensor([True, False, True, True, False, True]), X > 0
NONE = torch.zeros(4, dtype=torch.bool)
ODD = torch.tensor([[1, NAN, 3, INF, NAN, -INF, 2, INF]])
TIES = ints(3, 1, 3, 2, 1, 1)
AT = ints([0, 1, 2, 0], [1, 1, 1, 3])


def written(x: Tensor, key: Any, value: Any) -> Tensor:
    x = x.clone()
    x[key] = value
    return x


READ = {
    "one tensor": (lambda x, i: (x[i], x[:, i], x[..., i], x[i.int()], x[i, None], x[None, i]), X, A),
    "two tensors": (lambda x, i, j: (x[i, j], x[j, i], x[i[:, None], i], x[i, 1], x[1, i]), X, A, J),
    "adjacent and separate": (lambda y, i, j: (y[:, i, j], y[i, :, j], y[:, i, :, j], y[:, :, i, j], y[i[:, None], :, j[None]]), Y, A, J),
    "broadcast tensors": (lambda y, k, i: (y[k, i], y[:, k, i], y[k, :, i]), CUBE, K, A),
    "tensors without axes": (
        lambda y, i, j: (read(y, [i]), read(y, [None, i, j]), read(y, [i, None, j]), read(y, [i, None, i])),
        CUBE,
        S,
        A,
    ),
    "rows by a mask": (lambda x, m: (x[m], x[m] * 2), X, ROWS),
    "columns by a mask": (lambda x, m: x[:, m], X, COLUMNS),
    "elements by a mask": (lambda x, m: (x[m], x.masked_select(m)), X, ALL),
    "a mask in the middle": (lambda y, m: y[:, m], normal(2, 4, 6, 3), ALL),
    "a mask that takes none": (lambda x, m: x[m], X, NONE),
    "a mask of nothing": (lambda x, m: x[m], torch.zeros(0, 3), torch.zeros(0, dtype=torch.bool)),
    "a number and a mask": (lambda y, m, i: read(y, [None, i, m]), normal(3, 6, 4), ROWS, S),
    "a mask and a column": (lambda x, m, i: x[m, i], X, ROWS, ints([1], [2])),
    "a mask apart": (lambda y, m, i: read(y, [i, None, m]), normal(3, 6, 4), ROWS, ints(1)),
    "no positions": (lambda x, i: (x[i], x[i, i]), X, ints()),
    "lists": (lambda x: (x[[0, 2]], x[[0, 1], [1, 2]], x[:, [True, False] * 3], x[x[:, 0] > 0]), X),
    "other dtypes": (lambda x, i: ((x > 0)[i, i], x.half()[i, i], x.int()[i], x.double()[i, i]), X, A),
    "index_select": (lambda x, i: (x.index_select(0, i), x.index_select(-1, i), x.index_select(0, i[0])), X, ints(0, 2, 3)),
    "index_select no axes": (lambda x, i: (x.index_select(0, i), x.gather(0, i)), Z, ints(0)),
    "gather": (lambda x, i: (x.gather(1, i), x.gather(-1, i), x.gather(0, i)), X, ints([0, 1], [2, 3])),
    "gather no axes": (lambda x, i: x.gather(0, i), Z, torch.tensor(0)),
    "gather of nothing": (lambda x, i: x.gather(1, i), X, torch.zeros(0, 2, dtype=torch.int64)),
    "take": (lambda x, i: (x.take(i), torch.take_along_dim(x, i.abs())), X, ints([0, -1], [5, 20])),
    "embedding": (lambda w, i: (F.embedding(i, w), F.embedding(i.int(), w, padding_idx=0)), X, ints([1, 2], [3, 0])),
    "nonzero": (lambda x: (x.nonzero(), x.argwhere(), x.nonzero(as_tuple=True), torch.where(x)), ALL),
    "nonzero of no axes": (lambda x: (x.nonzero(), x.nonzero(as_tuple=True)), Z),
    "nonzero of odd numbers": (lambda x: (x.nonzero(), x.double().nonzero(), x.half().nonzero()), torch.tensor([0.0, 1, NAN, -0.0])),
    "nonzero_static": (lambda x: (torch.nonzero_static(x, size=4), torch.nonzero_static(x, size=30, fill_value=-5)), count(3, 2)),
    "diff": (lambda x, p: (x.diff(), x.diff(2), x.diff(1, 0), x.diff(dim=-2), x.diff(prepend=p, append=p)), X, normal(4, 2)),
    "diff of booleans": (lambda x: x.diff(), ALL),
    "masked_select of columns": (lambda x, m: x.masked_select(m), normal(4, 1), COLUMNS),
}
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
SORTED = {
    "topk": (lambda x: (x.topk(2)[0], x.topk(3, 0)[0], x.topk(2, -1, False)[0], x.topk(0), x.topk(x.shape[0] - 2)[0]), X),
    "topk of integers": (lambda x: (x.topk(2)[0], x.int().topk(2)[0], x.to(torch.int8).topk(2)[0], x.double().topk(1)[0]), TIES),
    "no axes": (lambda x: (x.topk(1), x.sort(), x.argsort(), x.sort(0), x.kthvalue(1)), Z),
    "sort": (
        lambda x: (x.sort(), x.sort(0, True), x.sort(-2), x.argsort(), x.argsort(-1, True), x.msort(), x.argsort(stable=True, dim=0)),
        X,
    ),
    "equal ones stay in order": (lambda x: (x.sort(stable=True), x.sort(stable=True, descending=True), (x > 1).sort(stable=True)), TIES),
    "NaN is the largest": (
        lambda x: tuple(t.sort(stable=True, descending=d) for t in (x, x.half(), x.double()) for d in (False, True)),
        ODD,
    ),
    "sort nothing": (lambda x: (x.sort(), x.unique_consecutive(return_counts=True), x.flatten().unique()), torch.zeros(3, 0)),
    "mode": (lambda x: (x.mode()[0], x.mode(0)[0], x.mode(-1, True)[0], x.round().mode(0)[0], x.round().int().mode(0)[0]), X),
    "kthvalue": (lambda x: (x.kthvalue(2)[0], x.kthvalue(1, 0)[0], x.kthvalue(3, -1, True)[0]), X),
    "unique": (lambda x: x.unique(return_inverse=True, return_counts=True), TIES.reshape(3, 2)),
    "unique floats": (lambda x: x.unique(return_inverse=True, return_counts=True), torch.tensor([1.0, NAN, 1, -3, NAN, INF])),
    "unique rows": (lambda x: x.unique(dim=0, return_inverse=True, return_counts=True), ints([1, 2], [0, 5], [1, 2])),
    "unique neighbours": (lambda x: x.unique_consecutive(return_inverse=True, return_counts=True), TIES),
    "unique neighbouring rows": (
        lambda x: x.unique_consecutive(return_inverse=True, return_counts=True, dim=0),
        ints([1, 2], [1, 2], [0, 5]),
    ),
    "bucketize": (
        lambda x, b: tuple(torch.bucketize(x, b.sort()[0], right=r) for r in (False, True)),
        ODD,
        torch.tensor([0.0, 1, 2, 2, 3]),
    ),
    "bucketize a number": (lambda b: (torch.bucketize(2, b.sort()[0]), torch.bucketize(2, b.sort()[0], right=True)), ints(1, 2, 3)),
    "no boundaries": (lambda x, b: (torch.bucketize(x, b), torch.isin(x, b)), X, torch.zeros(0)),
    "searchsorted": (lambda s, v: (torch.searchsorted(s.sort()[0], v, side="right"), torch.searchsorted(s[0].msort(), v)), X, normal(4, 3)),
    "searchsorted by a sorter": (lambda s, v: torch.searchsorted(s, v, sorter=s.argsort()), W, normal(4, 3)),
    "isin": (lambda x, t: (torch.isin(x, t), torch.isin(x, t, invert=True), torch.isin(x, 2), torch.isin(2, x)), TIES, ints([1, 2])),
    "histc": (lambda x: (x.histc(4, 0, 3), x.histc(4), x.histc(5, -1, 1)), X),
    "histc at the borders": (lambda x: x.histc(4, min=0, max=3), torch.tensor([0.0, 1, 3, 3, 5, NAN, -1])),
    "bincount": (lambda x, w: (x.bincount(), x.bincount(minlength=10), x.bincount(w, minlength=2)), TIES, normal(6)),
    "bincount of nothing": (lambda x: (x.bincount(), x.bincount(minlength=3)), ints()),
}
ROWS_OF_ALL = {**READ, **WRITTEN, **SORTED}
ENDS = (
    "adjacent and separate",
    "a mask and a column",
    "separate",
    "sums of rows",
    "scatter that reduces",
    "sort",
    "unique floats",
    "histc",
)


@pytest.mark.parametrize("name", ROWS_OF_ALL)
def test_it_is_what_torch_computes_at_any_size(name: str) -> None:
    check_both(*ROWS_OF_ALL[name], options=OWN)


@pytest.mark.parametrize("opset", [18, 26])
@pytest.mark.parametrize("name", ENDS)
def test_the_first_and_the_last_opset_do(name: str, opset: int) -> None:
    check(*ROWS_OF_ALL[name], dynamic=True, options={"opset_version": opset, **OWN})


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


positions = st.sampled_from([None, "vector", "column", "number", "mask"])


@settings(max_examples=10, deadline=None, derandomize=True)
@given(
    st.lists(positions, min_size=1, max_size=3).filter(
        lambda kinds: ("mask" not in kinds and any(kinds)) or (set(kinds) <= {"mask", None} and kinds.count("mask") == 1)
    )
)
def test_any_mix_of_positions_reads_and_writes_as_in_numpy(kinds: list[str | None]) -> None:
    """A mask alone: torch.export refuses most of its mixes with positions; those that it takes are among the rows above."""
    of_kind = {None: None, "vector": A, "column": K, "number": S, "mask": ROWS}
    given = [of_kind[kind] for kind in kinds]
    places = [place for place, tensor in enumerate(given) if tensor is not None]

    def both(x: Tensor, *tensors: Tensor) -> tuple[Tensor, Tensor]:
        indices: list[Tensor | None] = [None] * len(given)
        for place, tensor in zip(places, tensors, strict=True):
            indices[place] = tensor
        return read(x, indices), put(x, indices, x.flatten()[0] * 2)

    check(both, normal(4, 4, 4), *[given[place] for place in places], dynamic=True, options=OWN)
