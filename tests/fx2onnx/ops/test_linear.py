"""Products of matrices and vectors, layers: right in ONNX Runtime at the export's size and at another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from inputs import NAN, normal, whole
from operators import check, check_both, check_further, nodes_of, report_of
from torch import Tensor, nn
from torch.export import Dim

from exportlab.verification.verify import verify
from fx2onnx import to_onnx

functional = torch.nn.functional
LAST = {"options": {"opset_version": 26}}

PRODUCTS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "mm": (torch.mm, ((2, 3), (3, 4))),
    "bmm": (torch.bmm, ((2, 3, 4), (2, 4, 5))),
    "mv": (torch.mv, ((2, 3), (3,))),
    "dot": (torch.dot, ((3,), (3,))),
    "vdot": (torch.vdot, ((3,), (3,))),
    "outer": (torch.outer, ((2,), (3,))),
    "ger": (torch.ger, ((2,), (3,))),
    "matmul of matrices": (torch.matmul, ((2, 3), (3, 4))),
    "matmul of vectors": (torch.matmul, ((3,), (3,))),
    "matmul of a matrix and a vector": (torch.matmul, ((2, 3), (3,))),
    "matmul of a vector and a matrix": (torch.matmul, ((3,), (3, 4))),
    "matmul of a vector and many": (torch.matmul, ((3,), (2, 3, 4))),
    "matmul of many and a vector": (torch.matmul, ((2, 4, 3), (3,))),
    "matmul, broadcast": (torch.matmul, ((2, 1, 4, 3), (5, 3, 2))),
    "linalg.matmul": (torch.linalg.matmul, ((2, 4, 3), (3, 2))),
    "addmm": (torch.addmm, ((4,), (2, 3), (3, 4))),
    "addmm, scaled": (lambda c, a, b: torch.addmm(c, a, b, beta=2, alpha=3), ((2, 4), (2, 3), (3, 4))),
    "addmm, column": (lambda c, a, b: torch.addmm(c, a, b, alpha=2), ((2, 1), (2, 3), (3, 4))),
    "addmv": (lambda c, a, b: torch.addmv(c, a, b, beta=2, alpha=3), ((2,), (2, 3), (3,))),
    "addbmm": (lambda c, a, b: torch.addbmm(c, a, b, beta=2, alpha=3), ((3, 5), (2, 3, 4), (2, 4, 5))),
    "baddbmm": (lambda c, a, b: torch.baddbmm(c, a, b, beta=2, alpha=3), ((2, 3, 5), (2, 3, 4), (2, 4, 5))),
    "baddbmm, broadcast": (torch.baddbmm, ((5,), (2, 3, 4), (2, 4, 5))),
    "addr": (lambda c, a, b: torch.addr(c, a, b, beta=2, alpha=3), ((2, 3), (2,), (3,))),
    "cross": (torch.cross, ((2, 3), (2, 3))),
    "linalg.cross": (lambda a, b: torch.linalg.cross(a, b, dim=0), ((3, 2), (3, 2))),
    "matrix_power": (lambda a: torch.linalg.matrix_power(a, 5), ((2, 3, 3),)),
    "matrix_power 1": (lambda a: torch.matrix_power(a, 1), ((3, 3),)),
}  # fmt: skip
FROZEN_BY_EXPORT: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "multi_dot": (lambda *x: torch.linalg.multi_dot(x), ((2, 3), (3, 4), (4, 2))),
    "multi_dot of vectors too": (lambda *x: torch.linalg.multi_dot(x), ((3,), (3, 4), (4,))),
    "chain_matmul": (torch.chain_matmul, ((2, 3), (3, 4), (4, 5))),
    "kron": (torch.kron, ((2, 3), (4, 5))),
    "kron of two ranks": (torch.kron, ((2,), (3, 4, 2))),
}  # fmt: skip


@pytest.mark.parametrize("name", FROZEN_BY_EXPORT)
def test_of_sizes_that_do_not_move(name: str) -> None:
    function, sizes = FROZEN_BY_EXPORT[name]
    check(function, *(normal(*size) for size in sizes))
    check(function, *(whole(*size) for size in sizes), **LAST)


def test_vecdot() -> None:
    check_both(torch.linalg.vecdot, normal(2, 3), normal(2, 3).roll(1))
    check_both(torch.linalg.vecdot, normal(3, 1), normal(3, 4), dim=0)


@pytest.mark.parametrize("name", PRODUCTS)
def test_of_floats(name: str) -> None:
    function, sizes = PRODUCTS[name]
    check_both(function, *(normal(*size) for size in sizes))


@pytest.mark.parametrize("name", [name for name in PRODUCTS if name != "matrix_power 1"])
def test_of_int64(name: str) -> None:
    function, sizes = PRODUCTS[name]
    check(function, *(whole(*size) for size in sizes), dynamic=True)


@pytest.mark.parametrize("name", ["mm", "matmul of many and a vector", "addmm, scaled", "baddbmm", "outer"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.int32], ids=str)
def test_of_other_dtypes(name: str, dtype: torch.dtype) -> None:
    function, sizes = PRODUCTS[name]
    check(function, *(whole(*size, dtype=dtype) for size in sizes), dynamic=True)


@pytest.mark.parametrize("name", ["mm", "matmul of a vector and many", "addmm", "addbmm", "cross"])
def test_at_the_last_opset(name: str) -> None:
    function, sizes = PRODUCTS[name]
    check_both(function, *(normal(*size) for size in sizes), **LAST)


@pytest.mark.parametrize("sizes", [(3, 3), (2, 4, 4), (1, 1)])
def test_determinants(sizes: tuple[int, ...]) -> None:
    check_both(torch.linalg.det, normal(*sizes))


@pytest.mark.parametrize("function", [torch.outer, torch.kron])
def test_of_booleans(function: Callable[..., Any]) -> None:
    check(function, whole(3) > 0, whole(4) > 0)


NOTHING_TO_SUM = [
    (torch.mm, (2, 0), (0, 3)), (torch.mm, (0, 2), (2, 3)), (torch.bmm, (2, 3, 0), (2, 0, 4)), (torch.bmm, (0, 3, 2), (0, 2, 4)),
    (torch.mv, (2, 0), (0,)), (torch.dot, (0,), (0,)), (torch.matmul, (0,), (5, 0, 2)), (torch.matmul, (5, 2, 0), (0,)),
    (torch.matmul, (0,), (0, 2)), (torch.matmul, (0, 2, 3), (3, 4)), (torch.matmul, (0, 1, 3, 4), (2, 4, 5)),
    (torch.matmul, (2, 0), (3, 0, 4)), (torch.outer, (0,), (3,)), (torch.addmm, (3,), (2, 0), (0, 3)),
    (lambda c, a, b: torch.addmm(c, a, b, beta=2.5), (3,), (2, 0), (0, 3)), (torch.addmv, (2,), (2, 0), (0,)),
    (torch.baddbmm, (1, 2, 3), (1, 2, 0), (1, 0, 3)), (torch.addbmm, (2, 3), (0, 2, 4), (0, 4, 3)),
    (functional.linear, (2, 0), (3, 0), (3,)), (functional.linear, (0, 4, 2), (3, 2), (3,)), (functional.linear, (2, 4, 0), (3, 0)),
    (torch.kron, (0, 2), (3, 1)), (torch.linalg.vecdot, (2, 0), (2, 0)), (torch.linalg.det, (0, 3, 3)),
]  # fmt: skip


@pytest.mark.parametrize(("function", "sizes"), [(function, sizes) for function, *sizes in NOTHING_TO_SUM])
def test_of_nothing(function: Callable[..., Any], sizes: list[tuple[int, ...]]) -> None:
    check(function, *(torch.ones(*size) for size in sizes))


@pytest.mark.parametrize("length", [0, 1, 7])
@pytest.mark.parametrize(
    ("function", "sizes"),
    [
        (torch.matmul, (("n",), (5, "n", 2))),
        (torch.matmul, ((5, 2, "n"), ("n",))),
        (torch.mv, ((2, "n"), ("n",))),
        (lambda c, a, b: torch.addmm(c, a, b, beta=0.5), ((2, 3), (2, "n"), ("n", 3))),
        (torch.matmul, ((2, "n"), (3, "n", 4))),
        (torch.matmul, (("n", 1, 2, 3), (4, 3, 2))),
    ],
)  # fmt: skip
def test_a_free_axis_of_any_length(function: Callable[..., Any], sizes: tuple[Any, ...], length: int) -> None:
    def tensors(n: int) -> tuple[Tensor, ...]:
        return tuple(normal(*(n if size == "n" else size for size in given)) for given in sizes)

    axes = tuple({axis: Dim.DYNAMIC for axis, size in enumerate(given) if size == "n"} for given in sizes)
    check_further(function, tensors(3), tensors(length), axes, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("function", [torch.addmm, torch.addmv, torch.addr, torch.baddbmm, torch.addbmm])
def test_beta_0_forgets_what_would_be_added(function: Callable[..., Any]) -> None:
    matrices = {torch.addmm: ((2, 2), (2, 2)), torch.addmv: ((2, 2), (2,)), torch.addr: ((2,), (2,))}.get(function, ((3, 2, 2), (3, 2, 2)))
    forgotten = torch.full((2,) if function is torch.addmv else (2, 2), NAN)
    check_both(lambda c, a, b: function(c, a, b, beta=0, alpha=2), forgotten, *(normal(*size) for size in matrices))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("sizes", [(4,), (2, 4), (2, 3, 4), (2, 3, 2, 4)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16], ids=str)
def test_linear_layers(sizes: tuple[int, ...], bias: bool, dtype: torch.dtype) -> None:
    module, x = nn.Linear(4, 5, bias).to(dtype).eval(), normal(*sizes, dtype=dtype)
    free = dict.fromkeys(range(len(sizes) - 1), torch.export.Dim.DYNAMIC)
    program = to_onnx(module, (x,), dynamic_shapes=(free,))
    verify(program, module, [(x,), (torch.cat([x, x])[: 2 * len(x)] if free else x,)]).check()
    assert "Transpose" not in [node.op_type for node in program.model.graph]


def test_linear_with_a_vector_for_a_weight_or_of_integers() -> None:
    check_both(functional.linear, normal(2, 3, 4), normal(4))
    check_both(functional.linear, normal(4), normal(3, 4), normal(3))
    check_both(functional.linear, whole(2, 3, 4), whole(5, 4))
    check_both(functional.linear, whole(3, 4), whole(5, 4))


def test_products_of_int64_are_exact() -> None:
    check_both(torch.mm, torch.tensor([[2**60 + 1, 3], [2**61, 5]]), torch.tensor([[1, 0], [2, 1]]))


def test_addmm_of_float64_scales_in_float64() -> None:
    sizes = ((3, 3), (3, 4), (4, 3))
    assert "Gemm" not in nodes_of(lambda c, a, b: torch.addmm(c, a, b, alpha=0.1), *(normal(*s, dtype=torch.float64) for s in sizes))


@settings(max_examples=25, deadline=None, derandomize=True)
@given(data=st.data())
def test_matmul_of_any_shapes(data: st.DataObject) -> None:
    batch = data.draw(st.lists(st.integers(1, 3), max_size=2))
    rows, inner, columns = (data.draw(st.integers(0, 3)) for _ in range(3))
    left = data.draw(st.sampled_from([(inner,), (rows, inner), (*batch, rows, inner)]))
    right = data.draw(st.sampled_from([(inner,), (inner, columns), (*batch, inner, columns)]))
    dtype = data.draw(st.sampled_from([torch.float32, torch.int64, torch.float64]))
    report_of(torch.matmul, whole(*left, dtype=dtype), whole(*right, dtype=dtype), dynamic=data.draw(st.booleans())).check()


@pytest.mark.parametrize(
    ("function", "sizes", "nodes"),
    [(torch.addmm, ((3,), (2, 4), (4, 3)), ["Gemm"]), (torch.matmul, ((5, 2, 3), (3,)), ["MatMul"])],
)
def test_as_few_nodes_as_it_takes(function: Callable[..., Any], sizes: Any, nodes: list[str]) -> None:
    assert nodes_of(function, *(normal(*size) for size in sizes)) == nodes
