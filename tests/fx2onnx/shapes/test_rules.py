"""Shape functions, against the sizes that torch gives: of every call in the samples of torch's own tests, and of sizes that move."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest
import sympy
import torch
from op_database import database
from torch import nn
from torch.utils import _pytree as pytree
from torch.utils._sympy.functions import FloorDiv, Max, Min

from fx2onnx.shapes.rules import RULES, result_shapes, rule_of
from fx2onnx.shapes.sizes import Shape
from fx2onnx.trace.effects import RESIZING
from fx2onnx.trace.events import Ref, TensorMeta, Trace, unflatten_arguments
from fx2onnx.trace.run import trace

aten = torch.ops.aten
N, M = sympy.symbols("n m", integer=True, positive=True)
SLOW = ("linalg", "fft", "special", "signal", "masked")  # have no rule
SAMPLES = 6  # of an operator


class Applied(nn.Module):
    """A function of tensors among arguments."""

    def __init__(self, function: Callable[..., Any], arguments: Any) -> None:
        super().__init__()
        self.function, self.arguments = function, arguments

    def forward(self, *tensors: torch.Tensor) -> Any:
        given = iter(tensors)
        args, kwargs = pytree.tree_map_only(torch.Tensor, lambda _: next(given), self.arguments)
        return self.function(*args, **kwargs)


def _traced(op: Any, sample: Any) -> Trace | None:
    """The calls of a sample; None where it cannot be run, or does what no file can."""
    arguments = (sample.input, *sample.args), dict(sample.kwargs)
    tensors = [leaf.detach().clone() for leaf in pytree.tree_leaves(arguments) if isinstance(leaf, torch.Tensor)]
    try:
        found = trace(Applied(op.op, arguments), (tuple(tensors), {}))
    except Exception:  # noqa: BLE001 - other tests say what is refused
        return None
    found.inputs = tensors  # type: ignore[attr-defined]
    return found


def _wrong(found: Trace) -> list[str]:
    """The calls of which a rule says other sizes than torch."""
    sizes = {Ref("input", number): Shape(tensor.shape) for number, tensor in enumerate(found.inputs)}  # type: ignore[attr-defined]
    sizes |= {Ref("constant", number): Shape(tensor.shape) for number, tensor in enumerate(found.constants)}
    wrong = []
    for number, row in enumerate(found.rows):
        sizes |= {Ref("row", number, part): Shape(made.shape) for part, made in enumerate(row.made) if isinstance(made, TensorMeta)}
        args, kwargs = unflatten_arguments([sizes.get(leaf) if isinstance(leaf, Ref) else leaf for leaf in row.leaves], row.spec)
        told = result_shapes(row.op, args, kwargs)
        gave = [tuple(made.shape) for made in row.made if isinstance(made, TensorMeta)]
        if told is not None and [tuple(shape) for shape in told] != gave:
            wrong.append(f"{row.op} of {args} {kwargs}: {told}, but torch gives {gave}")
    return wrong


def test_no_rule_says_other_sizes_than_torch() -> None:
    calls = ((op, sample) for op in database().values() for sample in _samples(op))
    traces = (found for op, sample in calls if (found := _traced(op, sample)) is not None)
    assert not [wrong for found in traces for wrong in _wrong(found)]


def _samples(op: Any) -> list[Any]:
    is_taken = torch.float32 in op.supported_dtypes("cpu") and not op.name.startswith(SLOW)
    return [*islice(op.sample_inputs("cpu", torch.float32), SAMPLES)] if is_taken else []


def test_common_operators_have_a_rule() -> None:
    common = (aten.add.Tensor, aten.relu.default, aten.gelu.default, aten.where.self, aten.add_.Tensor, aten.pow.Tensor_Scalar)
    assert all(rule_of(op) is not None for op in common)
    assert rule_of(aten.nonzero.default) is None


MOVING: list[tuple[Any, tuple[Any, ...], Any]] = [
    (aten.add.Tensor, (Shape([N, 1, 3]), Shape([M, 3])), [(N, M, 3)]),
    (aten.add.Tensor, (Shape([N]), Shape([M])), None),
    (aten.add.Tensor, (Shape([N]), Shape([3])), None),
    (aten.mul.Scalar, (Shape([N]), 2), [(N,)]),
    (aten.linear.default, (Shape([N, M, 8]), Shape([4, 8]), Shape([4])), [(N, M, 4)]),
    (aten.matmul.default, (Shape([N, 2, M, 8]), Shape([8, 3])), [(N, 2, M, 3)]),
    (aten.matmul.default, (Shape([N, 8]), Shape([8])), [(N,)]),
    (aten.matmul.default, (Shape([8]), Shape([N, 8, M])), [(N, M)]),
    (aten.reshape.default, (Shape([N, M, 12]), [N, -1, 3, 4]), [(N, M, 3, 4)]),
    (aten.reshape.default, (Shape([N, 12]), [-1, 5]), None),
    (aten.view.default, (Shape([N, M]), [-1]), [(N * M,)]),
    (aten.expand.default, (Shape([N, 1]), [-1, M]), [(N, M)]),
    (aten.expand.default, (Shape([N]), [2, -1]), [(2, N)]),
    (aten.transpose.int, (Shape([N, M, 3]), 1, -1), [(N, 3, M)]),
    (aten.squeeze.dim, (Shape([N, 1]), 1), [(N,)]),
    (aten.squeeze.dim, (Shape([N, 1]), 0), None),
    (aten.squeeze.default, (Shape([N, 1]),), None),
    (aten.slice.Tensor, (Shape([N]), 0, 0, 3), [(Min(3, N),)]),
    (aten.slice.Tensor, (Shape([N, M]), 1, 1), [(N, Max(0, M - Min(1, M)))]),
    (aten.slice.Tensor, (Shape([N + 4]), 0, 1, -1, 2), [(FloorDiv(N + 3, 2),)]),
    (aten.cat.default, ([Shape([N, 2]), Shape([0]), Shape([N, M])], 1), [(N, M + 2)]),
    (aten.cat.default, ([Shape([N]), Shape([M])],), [(N + M,)]),
    (aten.cat.default, ([Shape([N, 2]), Shape([M, 2])], 1), None),
    (aten.stack.default, ([Shape([N]), Shape([N])], -1), [(N, 2)]),
    (aten.split.Tensor, (Shape([N, 5]), 2, 1), [(N, 2), (N, 2), (N, 1)]),
    (aten.split.Tensor, (Shape([N]), 2), None),
    (aten.chunk.default, (Shape([N, 7]), 3, -1), [(N, 3), (N, 3), (N, 1)]),
    (aten.unbind.int, (Shape([N, 2]), 1), [(N,), (N,)]),
    (aten.unbind.int, (Shape([N, 2]),), None),
    (aten.index.Tensor, (Shape([N, 4, M]), [None, Shape([3, 1]), Shape([2])]), [(N, 3, 2)]),
    (aten.index.Tensor, (Shape([N, 4, M]), [Shape([2]), None, Shape([2])]), [(2, 4)]),
    (aten.embedding.default, (Shape([99, 8]), Shape([N, M])), [(N, M, 8)]),
    (aten.mean.dim, (Shape([N, M, 3]), [-1], True), [(N, M, 1)]),
    (aten.sum.dim_IntList, (Shape([N, M]), [0, 1]), [()]),
    (aten.scaled_dot_product_attention.default, (Shape([N, 4, M, 8]), Shape([N, 2, 9, 8]), Shape([N, 2, 9, 6])), [(N, 4, M, 6)]),
    (aten.conv1d.default, (Shape([N, 4, M + 3]), Shape([6, 4, 3]), None, [2], [1], [2]), [(N, 6, FloorDiv(M, 2) + 1)]),
    (aten.conv1d.default, (Shape([2, 4, 9]), Shape([6, 4, 3]), None, [N]), None),
    (aten.max_pool2d.default, (Shape([N, 3, M, 8]), [2, 2]), [(N, 3, FloorDiv(M, 2), 4)]),
    (aten.max_pool2d.default, (Shape([N, 3, M, 8]), [2, 2], [2, 2], [0, 0], [1, 1], True), None),
    (aten.adaptive_avg_pool2d.default, (Shape([N, 4, 9]), [1, 3]), [(N, 1, 3)]),
    (aten.adaptive_avg_pool2d.default, (Shape([2, 4, 9]), [N, 1]), [(2, N, 1)]),
    (aten.pad.default, (Shape([N, M]), [1, N]), [(N, M + N + 1)]),
    (aten.zeros.default, ([N, 2],), [(N, 2)]),
    (aten.arange.default, (N,), [(N,)]),
    (aten.arange.start, (2, N + 2), [(N,)]),
    (aten.arange.start, (3, 5), [(2,)]),
    (aten.arange.default, (2.5,), None),
    (aten.arange.start, (3, N), None),
    (aten.cumsum.default, (Shape([2, N]), 1), [(2, N)]),
    (aten.einsum.default, ("bij,bjk->bik", [Shape([1, N, 3]), Shape([2, 3, N + 1])]), [(2, N, N + 1)]),
    (aten.einsum.default, ("...i->...", [Shape([2, N])]), None),
    (aten.einsum.default, ("ij,jk", [Shape([2, N]), Shape([N, 3])]), None),
    (aten.topk.default, (Shape([N, M]), 3), [(N, 3), (N, 3)]),
    (aten.triu_indices.default, (N, M), None),
]


@pytest.mark.parametrize(("op", "args", "shapes"), MOVING, ids=str)
def test_sizes_that_move_are_expressions(op: Any, args: tuple[Any, ...], shapes: Any) -> None:
    assert result_shapes(op, args, {}) == shapes


@pytest.mark.parametrize("size", [7, 8, 20, 101])
def test_a_window_fits_as_often_as_torch_says(size: int) -> None:
    weight, rest = torch.empty(6, 4, 3), ([2], [1], [2])
    ((batch, channels, length),) = result_shapes(aten.conv1d.default, (Shape([N, 4, N + 3]), Shape(weight.shape), None, *rest), {}) or ()
    made = torch.conv1d(torch.empty(size, 4, size + 3), weight, None, *rest)
    assert (batch, channels, length.subs(N, size)) == (N, *made.shape[1:])


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("rest", [(), ([2], [1]), ([3], [0], [2]), ([1], [2], [1], 2)], ids=str)
def test_a_convolution_is_as_long_as_torch_makes_it(axes: int, rest: tuple[Any, ...]) -> None:
    op, groups = getattr(aten, f"conv{axes}d").default, rest[3] if len(rest) > 3 else 1
    x, weight = torch.empty(2, 4, *range(9, 9 + axes)), torch.empty(6, 4 // groups, *range(1, 1 + axes))
    assert result_shapes(op, (Shape(x.shape), Shape(weight.shape), None, *rest), {}) == [tuple(op(x, weight, None, *rest).shape)]


@pytest.mark.parametrize("name", RESIZING)
def test_an_image_is_scaled_where_scales_follow_from_sizes(name: str) -> None:
    axes = int(name[-2])
    shape = Shape([2, 3, *[8] * axes])
    assert RULES[getattr(aten, name).vec](Shape([2, 3, *[N] * axes]), None, [sympy.Integer(2) * N / N] * axes) is not None
    assert result_shapes(getattr(aten, name).vec, (shape, None, [2.0] * axes), {}) is None
