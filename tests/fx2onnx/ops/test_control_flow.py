"""cond, while_loop, scan and map in `to_onnx`, at every size and on both sides."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import onnx
import onnx_ir as ir
import pytest
import torch
from torch import Tensor, cond, nn
from torch._higher_order_ops.map import map as map_
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.export import Dim

from content import zoo
from exportlab.cases import Sample
from exportlab.verification.verify import verify
from fx2onnx import ToOnnxError, to_onnx

hop = torch.ops.higher_order


class Holder(nn.Module):
    """What the functions below close over: a layer, a buffer, a plain tensor."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(3, 3)
        self.register_buffer("offset", torch.tensor([0.5, -0.25, 2.0]))
        self.plain = torch.tensor([1.0, 2.0, 3.0])
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(self, x)


def rows(count: int = 4) -> Tensor:
    """A matrix of positive numbers with three columns: `x.sum() > 0` holds, and does not for its negative."""
    return torch.rand(count, 3, generator=torch.Generator().manual_seed(count))


def exported(function: Callable[..., Any], x: Tensor, dynamic: bool = True, **options: Any) -> tuple[torch.onnx.ONNXProgram, Holder]:
    module = Holder(function).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return to_onnx(module, (x,), dynamic_shapes=({0: Dim.AUTO},) if dynamic else None, **options), module


def verified(function: Callable[..., Any], sizes: Sequence[int] = (7, 3), dynamic: bool = True, **options: Any) -> ir.Model:
    """Exports with four rows; right there and at the other sizes, and for positive and negative values."""
    program, module = exported(function, rows(), dynamic, **options)
    given = [rows(), *(sign * rows(size) for size, sign in zip(sizes, (1, -1), strict=True) if dynamic), -rows()]
    verify(program, module, [Sample((x,)) for x in given]).check()
    return program.model


def positive(x: Tensor) -> Tensor:
    return x.sum() > 0


def zero() -> Tensor:
    return torch.zeros((), dtype=torch.int64)


CONDS: dict[str, Callable[[Holder, Tensor], Any]] = {
    "branches close over a parameter, a buffer and a plain tensor": lambda s, x: cond(
        positive(x), lambda x: s.linear(x) * s.plain, lambda x: x - s.offset, (x,)
    ),
    "without operands": lambda s, x: cond(positive(x), lambda: s.offset + 1, lambda: s.offset - 1, ()),
    "the predicate is a comparison of sizes": lambda s, x: cond(x.shape[0] > 5, lambda x: x + 1, lambda x: s.linear(x), (x,)),
    "the predicate has one axis": lambda s, x: cond(positive(x).reshape(1), lambda x: x + 1, lambda x: x - 1, (x,)),
    "the predicate has two axes": lambda s, x: cond(positive(x).reshape(1, 1), lambda x: x + 1, lambda x: x - 1, (x,)),
    "the predicate is a Python bool": lambda s, x: cond(True, lambda x: x + 1, lambda x: x - 1, (x,)),
    "sizes are numbers inside": lambda s, x: cond(positive(x), lambda x: x * x.shape[0], lambda x: x - x.shape[0] // 2, (x,)),
    "operands come back": lambda s, x: cond(
        positive(x), lambda x: (x.clone(), x.clone(), x + 1), lambda x: (x * 2, x.clone(), x.clone()), (x,)
    ),
    "constants come back": lambda s, x: cond(positive(x), lambda x: (x + 1, torch.ones(2)), lambda x: (x - 1, torch.zeros(2)), (x,)),
    "nested containers": lambda s, x: cond(
        positive(x), lambda d: {"a": d["x"] + 1, "b": [d["x"].sum()]}, lambda d: {"a": d["x"] - 1, "b": [d["x"].mean()]}, ({"x": x},)
    ),
    "an inplace operator on a value made inside": lambda s, x: cond(positive(x), lambda x: (x + 1).mul_(2), lambda x: x - 1, (x,)),
    "one after the other": lambda s, x: (lambda y: cond(y.sum() > 4, lambda y: y * 2, lambda y: y / 2, (y,)))(
        cond(positive(x), lambda x: x + 3, lambda x: x - 3, (x,))
    ),
    "the same branches twice": lambda s, x: (
        cond(positive(x), torch.exp, torch.abs, (x,)) + cond(x.sum() < 0, torch.exp, torch.abs, (x * 2,))
    ),
    "results of different sizes": lambda s, x: cond(positive(x), lambda x: x[:2] * 1, lambda x: x[1:2] - 1, (x,)) * 2,
    "a size of the result is used as a size and as a number": lambda s, x: (lambda y: (y * y.shape[0], torch.ones(y.shape[0])))(
        cond(positive(x), lambda x: x[:2] * 1, lambda x: x[1:2] - 1, (x,))
    ),
    "an integer comes back, and is used as a size": lambda s, x: (lambda r: (r[0] * r[1], torch.ones(r[1])))(
        cond(positive(x), lambda x: (x + 1, 3), lambda x: (x - 1, 4), (x,))
    ),
    "a size that values decide stays inside": lambda s, x: cond(
        positive(x), lambda x: x.nonzero().sum(), lambda x: (x + 1 > 0.5).nonzero().sum(), (x,)
    ),
    "cond in cond": lambda s, x: cond(
        positive(x),
        lambda x: cond(x.mean() > 0.5, lambda x: x + s.offset, lambda x: s.linear(x), (x,)),
        lambda x: cond(x.mean() > -0.5, lambda x: x * s.plain, lambda x: x.abs(), (x,)),
        (x,),
    ),
    "while in cond": lambda s, x: cond(
        positive(x), lambda x: while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, s.linear(y)), (zero(), x))[1], lambda x: x - 1, (x,)
    ),
    "scan in cond": lambda s, x: cond(
        positive(x), lambda x: scan(lambda t, r: (t + r, t * r), s.offset, x)[1], lambda x: x - 1, (x,)
    ),
}  # fmt: skip
LOOPS: dict[str, Callable[[Holder, Tensor], Any]] = {
    "a counted loop over a layer": lambda s, x: while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, s.linear(y)), (zero(), x)),
    "no turn at all": lambda s, x: while_loop(lambda i, y: i < 0, lambda i, y: (i + 1, s.linear(y)), (zero(), x)),
    "turns only for positive values": lambda s, x: while_loop(lambda y: y.sum() > 1, lambda y: (y / 2,), (x,)),
    "the condition closes over the input": lambda s, x: while_loop(
        lambda y: y.abs().sum() < 9 * x.abs().sum(), lambda y: (y * 2,), (x + 0,)
    ),
    "an integer is carried": lambda s, x: while_loop(lambda i, y: i < y.shape[0], lambda i, y: (i + 1, y + i), (0, x)),
    "a size is carried": lambda s, x: while_loop(lambda n, y: n > 0, lambda n, y: (n // 2, y + n), (x.shape[0] * 2, x)),
    "a carried integer is set to a constant": lambda s, x: while_loop(lambda n, y: n > 0, lambda n, y: (0, y + n), (x.shape[0], x)),
    "a carried integer is a size inside": lambda s, x: while_loop(
        lambda i, y: i + 1 < y.shape[0], lambda i, y: (i + 1, y + torch.ones(i + 1).sum()), (0, x)
    ),
    "a carried integer is used afterwards": lambda s, x: (lambda r: (r[0] * 2, torch.ones(3) * r[0], torch.ones(r[0])))(
        while_loop(lambda i, y: i < y.shape[0] - 1, lambda i, y: (i + 1, y + i), (0, x))
    ),
    "values change places": lambda s, x: while_loop(
        lambda i, a, b: i < 3, lambda i, a, b: (i + 1, b.clone(), a.clone()), (zero(), x, x * 2)
    ),
    "both start from one tensor": lambda s, x: while_loop(lambda i, a, b: i < 3, lambda i, a, b: (i + 1, a + b, a * 2), (zero(), x, x)),
    "the start is also read inside": lambda s, x: while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 2 + x), (zero(), x)),
    "only one result is used": lambda s, x: while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, s.linear(y)), (zero(), x))[1],
    "a value of the outside is read": lambda s, x: (
        lambda y: while_loop(lambda i, z: i < y.shape[0], lambda i, z: (i + 1, s.linear(z) + y.sum()), (zero(), x))
    )(x * 2),
    "other dtypes": lambda s, x: while_loop(
        lambda i, a, b, c: i < 3,
        lambda i, a, b, c: (i + 1, a * 2, torch.logical_not(b), c * 2),
        (torch.zeros((), dtype=torch.int32), x.to(torch.float64), x > 0.5, (x * 10).to(torch.int16)),
    ),
    "while in while": lambda s, x: while_loop(
        lambda i, y: i < 3,
        lambda i, y: (i + 1, while_loop(lambda j, z: j < i, lambda j, z: (j + 1, s.linear(z) + j), (i * 0, y))[1] + i),
        (zero(), x),
    ),
    "cond in while": lambda s, x: while_loop(
        lambda i, y: i < 4, lambda i, y: (i + 1, cond(y.sum() > 0, lambda y: y - s.plain, lambda y: y + i, (y,))), (zero(), x)
    ),
}  # fmt: skip
SCANS: dict[str, Callable[[Holder, Tensor], Any]] = {
    "a layer in the body": lambda s, x: scan(lambda t, r: (t + r, s.linear(t * r)), s.offset, x),
    "backwards": lambda s, x: scan(lambda t, r: (t * 0.5 + r, t * r), s.offset, x, reverse=True),
    "over columns": lambda s, x: scan(lambda t, r: (t + r, t * r), x.sum(1) * 0, x, dim=1),
    "state and row are one value": lambda s, x: hop.scan(lambda t, r: [t + r, t + r], [torch.zeros(3)], [x], []),
    "the row comes back as it is": lambda s, x: scan(lambda t, r: (t.clone(), r.clone()), s.offset, x),
    "two states and two inputs": lambda s, x: scan(
        lambda t, r: ([t[0] + r[0], t[1] * r[1].sum()], [t[0] * 1, r[1] - t[1]]), [s.offset, s.offset * 2], [x, x * 3]
    ),
    "rows of numbers and of booleans": lambda s, x: scan(lambda t, r: (t * (r > 0.5), (r > t, r.sum())), s.offset, x),
    "the whole input and its size are read inside": lambda s, x: scan(
        lambda t, r: (t + r * x.shape[0], t.sum() + x.sum()), s.offset, x
    ),
    "cond in scan": lambda s, x: scan(
        lambda t, r: (cond(r.sum() > x.mean(), lambda t, r: s.linear(t) + r, lambda t, r: t - r * s.offset, (t, r)), t * 2), s.offset * 1, x
    ),
    "scan in scan": lambda s, x: scan(
        lambda t, r: (scan(lambda u, e: (u + e, u * 2), t, r)[0], t * 2), x.sum() * 0, x
    ),
    "while in scan": lambda s, x: scan(
        lambda t, r: (while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, y * r), (r.sum() * 0, t))[1] + r, t * 2), s.offset, x
    ),
    "map": lambda s, x: map_(lambda r, w: s.linear(r) + w.sum(), x, s.offset),
    "map over two inputs": lambda s, x: map_(lambda r: (s.linear(r[0]) * r[1], r[0].sum()), (x, x * 2)),
    "cond in map": lambda s, x: map_(lambda r: cond(r.sum() > 1.5, lambda r: s.linear(r), lambda r: r * s.plain, (r,)), x),
    "an associative scan": lambda s, x: hop.associative_scan(lambda a, b: [a * b], [x], ())[0],
    "an associative scan of two": lambda s, x: tuple(
        hop.associative_scan(lambda a, b, c, d: [a + c, b * d], [x, x * 2], ())
    ),
}  # fmt: skip
ALL = {**CONDS, **LOOPS, **SCANS}


@pytest.mark.parametrize("name", ALL)
def test_right_at_every_size_on_both_sides(name: str) -> None:
    verified(ALL[name])


@pytest.mark.parametrize("name", ["cond in cond", "a carried integer is a size inside", "a layer in the body"])
@pytest.mark.parametrize("opset", [18, 26])
def test_right_at_other_opsets_and_with_fixed_sizes(name: str, opset: int) -> None:
    verified(ALL[name], opset_version=opset, dynamic=opset == 18)


@pytest.mark.parametrize("name", ["cond_on_value", "scan_sum", "halved_until_small"])
def test_cases_of_the_zoo_are_right_at_all_their_sizes(name: str) -> None:
    built = zoo.get(name).build()
    first = built.samples[0]
    program = to_onnx(built.module, first.args, kwargs=first.kwargs, dynamic_shapes=built.dynamic_shapes)
    verify(program, built.module, built.samples).check()


def test_no_rows_give_no_turns() -> None:
    """Scan and map refuse an axis without elements, in eager too."""
    verified(lambda s, x: while_loop(lambda i, y: i < y.shape[0], lambda i, y: (i + 1, y + i), (0, x)), sizes=(0, 1))


def test_a_program_of_torch_export_decomposed_by_the_caller() -> None:
    module = Holder(CONDS["cond in cond"]).eval()
    program = torch.export.export(module, (rows(),), dynamic_shapes=({0: Dim.DYNAMIC},)).run_decompositions()
    verify(to_onnx(program), module, [Sample((rows(),)), Sample((-rows(7),))]).check()


def test_what_was_written_before_the_branch_is_read_in_it() -> None:
    def function(s: Holder, x: Tensor) -> tuple[Tensor, Tensor]:
        y = x * 2
        before = cond(positive(x), lambda y: y + 1, lambda y: y - 1, (y,))
        y[0].mul_(3)
        return before, cond(positive(x), lambda y: y + 1, lambda y: y - 1, (y,))

    verified(function)


def test_writes_into_views_inside_a_branch() -> None:
    def tripled(x: Tensor) -> Tensor:
        y = x * 2
        y[0].mul_(3)
        return y + 1

    verified(lambda s, x: cond(positive(x), tripled, lambda x: x - 1, (x,)))


def test_a_branch_without_gradients_is_translated_in_place() -> None:
    def quiet(x: Tensor) -> Tensor:
        with torch.no_grad():
            y = x + 1
        return y * 2

    verified(lambda s, x: cond(positive(x), quiet, lambda x: x - 1, (x,)))


def graphs(graph: ir.Graph) -> Iterator[ir.Graph]:
    """The graph and all graphs inside it."""
    yield graph
    for node in graph:
        for attribute in node.attributes.values():
            if attribute.type == ir.AttributeType.GRAPH:
                yield from graphs(attribute.as_graph())


@pytest.mark.parametrize("name", ["cond in cond", "operands come back", "while in while", "scan in scan", "only one result is used"])
def test_every_name_is_given_once_and_outputs_are_made_in_their_own_graph(name: str) -> None:
    model = exported(ALL[name], rows())[0].model
    found = list(graphs(model.graph))
    assert len(found) > 1
    values = [v.name for g in found for v in [*g.inputs, *(o for node in g for o in node.outputs if o.name)]]
    assert len(values) == len(set(values))
    for graph in found[1:]:
        assert all(output.producer() is not None and output.producer().graph is graph for output in graph.outputs)
        assert len({id(output) for output in graph.outputs}) == len(graph.outputs)
    onnx.checker.check_model(ir.to_proto(model), full_check=True)


def test_what_a_branch_and_the_outside_share_is_computed_once_outside() -> None:
    model = exported(lambda s, x: (x.exp(), cond(positive(x), lambda x: x.exp() + 1, lambda x: x.exp() - 1, (x,))), rows())[0].model
    assert [node.op_type for graph in graphs(model.graph) for node in graph].count("Exp") == 1


def test_what_two_branches_compute_stays_in_each() -> None:
    model = exported(lambda s, x: cond(positive(x), lambda x: x.exp() + 1, lambda x: x.exp() - 1, (x,)).exp(), rows())[0].model
    assert [node.op_type for graph in graphs(model.graph) for node in graph].count("Exp") == 3
    verified(lambda s, x: cond(positive(x), lambda x: x.exp() + 1, lambda x: x.exp() - 1, (x,)) + x.exp())


def test_the_outputs_have_the_types_and_sizes_of_the_capture() -> None:
    model = exported(SCANS["rows of numbers and of booleans"], rows())[0].model
    (node,) = [node for node in model.graph if node.op_type == "Scan"]
    assert [(o.dtype, len(o.shape)) for o in node.outputs] == [(ir.DataType.FLOAT, 1), (ir.DataType.BOOL, 2), (ir.DataType.FLOAT, 1)]


@torch.library.custom_op("exportlab_test::mystery", mutates_args=())
def mystery(x: Tensor) -> Tensor:
    """An operator that nobody translates."""
    return x + 1


@mystery.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


riddle = torch.library.custom_op("exportlab_test::riddle", lambda x: x.clone(), mutates_args=(), schema="(Tensor x) -> Tensor")
riddle.register_fake(torch.empty_like)


@pytest.mark.parametrize(
    "function",
    [
        lambda s, x: cond(positive(x), lambda x: mystery(x), lambda x: x - 1, (x,)),
        lambda s, x: cond(positive(x), lambda x: cond(x.sum() > 1, mystery, lambda x: x - 1, (x,)), lambda x: x - 1, (x,)),
        lambda s, x: while_loop(lambda y: mystery(y).sum() < 1, lambda y: (y + 1,), (x,)),
        lambda s, x: while_loop(lambda y: y.sum() < 1, lambda y: (mystery(y),), (x,)),
        lambda s, x: scan(lambda t, r: (t + r, mystery(r)), s.offset, x),
        lambda s, x: map_(lambda r: mystery(r), x),
    ],
    ids=["cond", "cond in cond", "condition of while", "body of while", "scan", "map"],
)
def test_an_operator_without_translation_is_named(function: Callable[..., Any]) -> None:
    with pytest.raises(ToOnnxError, match=r"exportlab_test\.mystery"):
        exported(function, rows())


def test_the_error_has_the_line_that_leads_to_the_operator() -> None:
    with pytest.raises(ToOnnxError, match=r"test_control_flow\.py:\d+") as caught:
        exported(lambda s, x: cond(positive(x), mystery, lambda x: x - 1, (x,)), rows())
    assert "eval_with_key" not in str(caught.value)


def test_failures_of_both_branches_are_told() -> None:
    with pytest.raises(ToOnnxError) as caught:
        exported(lambda s, x: cond(positive(x), lambda x: mystery(x), lambda x: riddle(x), (x,)), rows())
    assert "mystery" in str(caught.value)
    assert "riddle" in str(caught.value)


@pytest.mark.parametrize(
    "function",
    [
        lambda s, x: scan(lambda t, r: (t * 2 + s.offset, r + t), s.offset, x),
        lambda s, x: scan(lambda t, r: ([t[0] * 2 + t[1], t[0] + r], t[1] * 1), [s.offset, s.offset], x),
    ],
    ids=["closure", "two states"],
)
def test_a_scan_that_torch_captures_wrong_is_refused(function: Callable[..., Any]) -> None:
    """torch.export 2.13 takes the state for the tensor it starts from when the body reads that too: eager differs from the capture."""
    with pytest.raises(ToOnnxError, match="pass a copy of it"):
        exported(function, rows())


def test_a_scan_that_starts_from_a_copy_is_right() -> None:
    verified(lambda s, x: scan(lambda t, r: (t * 0.5 + s.offset, r + t), s.offset.clone(), x))
    verified(lambda s, x: scan(lambda t, r: ([t[0] * 0.5 + t[1], t[0] + r], t[1] * 1), [s.offset, s.offset.clone()], x))
