"""Reading at computed positions: right in ONNX Runtime at the export's size and at another."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from inputs import NAN, OWN, count, ints, normal
from operators import check, check_both, check_further, nodes_of
from torch import Tensor
from torch.export import Dim

read, put = torch.ops.aten.index, torch.ops.aten.index_put
X, Y, W, Z = normal(4, 6), normal(4, 5, 6, 7), normal(5), torch.tensor(2.5)
CUBE = normal(4, 5, 6)
A, J, K, S = ints(0, 2, -1), ints(1, -2, 0), ints([0], [1]), torch.tensor(1)
ROWS, COLUMNS, ALL = torch.tensor([True, False, True, True]), torch.tensor([True, False, True, True, False, True]), X > 0
NONE = torch.zeros(4, dtype=torch.bool)


def by_all_positions(y: Tensor) -> tuple[Tensor, ...]:
    """Return what positions of whole axes take: in the order of the axes and in another, next to each other and apart, with a step."""
    a, b, c = (torch.arange(size) for size in y.shape)
    together = y[a[:, None, None], b[None, None]], y[a, b[:, None]], y[:, b, c[:, None]], y[a[:, None], b[:, None, None], c]
    return (*together, y[a, :, c[:, None]], y[a[:, None], :, c], y[:, b + 0], y[a - 1, :, c[:, None]], y[torch.arange(0, y.shape[0], 2)])


READ = {
    "one tensor": (lambda x, i: (x[i], x[:, i], x[..., i], x[i.int()], x[i, None], x[None, i]), X, A),
    "two tensors": (lambda x, i, j: (x[i, j], x[j, i], x[i[:, None], i], x[i, 1], x[1, i]), X, A, J),
    "adjacent and separate": (lambda y, i, j: (y[:, i, j], y[i, :, j], y[:, i, :, j], y[:, :, i, j], y[i[:, None], :, j[None]]), Y, A, J),
    "broadcast tensors": (lambda y, k, i: (y[k, i], y[:, k, i], y[k, :, i]), CUBE, K, A),
    "positions of whole axes": (by_all_positions, CUBE),
    "positions of a diagonal": (lambda x: (x[torch.arange(4), torch.arange(4)], x[torch.arange(4)[:, None], torch.arange(4)]), X),
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


@pytest.mark.parametrize("name", READ)
def test_it_is_what_torch_computes_at_any_size(name: str) -> None:
    check_both(*READ[name], options=OWN)


@pytest.mark.parametrize("opset", [18, 26])
@pytest.mark.parametrize("name", ["adjacent and separate", "a mask and a column"])
def test_the_first_and_the_last_opset_do(name: str, opset: int) -> None:
    check(*READ[name], dynamic=True, options={"opset_version": opset, **OWN})


def test_positions_that_broadcast_need_no_computed_sizes() -> None:
    def broadcast(x: Tensor, i: Tensor, j: Tensor) -> tuple[Tensor, Tensor]:
        return x[i[:, None], j], x[j[:, None], i]

    made = nodes_of(broadcast, X, A, ints(1, -2), dynamic=True)
    assert sorted(made) == ["GatherND"] * 2 + ["Unsqueeze"] * 6 + ["Where"] * 2


def test_positions_of_whole_axes_take_no_gather() -> None:
    made = nodes_of(lambda y: by_all_positions(y)[:7], CUBE, dynamic=True)
    assert set(made) <= {"Transpose", "Unsqueeze", "Identity"}


@pytest.mark.parametrize("rows", [0, 1, 3])
@pytest.mark.parametrize("columns", [0, 1, 7])
def test_a_mask_by_its_rows_and_columns_is_right_at_sizes_that_the_export_never_saw(rows: int, columns: int) -> None:
    def packed(x: Tensor) -> Tensor:
        batch, length = (torch.arange(size) for size in x.shape)
        return x[batch[:, None, None], length[:, None]] == x[batch[:, None, None], length]

    check_further(
        packed, (ints([1, 1, 2], [1, 2, 2]),), (torch.arange(rows * columns).view(rows, columns) // 2,), ({0: Dim.AUTO, 1: Dim.AUTO},)
    )


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
