"""Sums of products named by letters: right in ONNX Runtime at the export's size and at another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from inputs import normal, whole
from operators import check, check_both, check_further, nodes_of, report_of
from torch import Tensor
from torch.export import Dim

LAST = {"options": {"opset_version": 26}}

PRODUCTS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "inner": (torch.inner, ((2, 3, 4), (5, 4))),
    "inner of vectors": (torch.inner, ((4,), (4,))),
    "inner with a number": (torch.inner, ((2, 3), ())),
    "tensordot": (lambda a, b: torch.tensordot(a, b, dims=([1, 0], [0, 2])), ((2, 3, 4), (3, 5, 2))),
    "tensordot of none": (lambda a, b: torch.tensordot(a, b, dims=0), ((2, 3), (4,))),
    "tensordot of all": (lambda a, b: torch.tensordot(a, b, dims=2), ((2, 3), (2, 3))),
}  # fmt: skip
EQUATIONS: dict[str, tuple[tuple[int, ...], ...]] = {
    "ij,jk->ik": ((2, 3), (3, 4)),
    "ij,kj": ((2, 3), (4, 3)),
    "ij,kj->ki": ((2, 3), (4, 3)),
    "bhqd,bhkd->bhqk": ((2, 3, 4, 5), (2, 3, 6, 5)),
    "bqhd,bkhd->bhqk": ((2, 4, 3, 5), (2, 6, 3, 5)),
    "bhqk,bkhd->bqhd": ((2, 3, 4, 6), (2, 6, 3, 5)),
    "bid,dhk->bihk": ((2, 3, 4), (4, 2, 5)),
    "bihk,hkd->bid": ((2, 3, 2, 5), (2, 5, 4)),
    "i,j->ij": ((2,), (3,)),
    "i,i->": ((3,), (3,)),
    "ij,ij->ij": ((2, 3), (2, 3)),
    "ij,ij->i": ((2, 3), (2, 3)),
    "ij,j->ji": ((2, 3), (3,)),
    "ij->ji": ((2, 3),),
    "ij->": ((2, 3),),
    "ba": ((2, 3),),
    "ii->i": ((3, 3),),
    "ii": ((3, 3),),
    "iij,ki->kj": ((3, 3, 2), (2, 3)),
    "ij,jk,kl->il": ((2, 3), (3, 4), (4, 5)),
    "bi,bj,bk->ijk": ((2, 3), (2, 4), (2, 5)),
    "ij,ik->jk": ((2, 3), (2, 4)),
    "ij,kl->i": ((2, 3), (4, 5)),
    "...ij,...jk->...ik": ((2, 5, 3, 4), (4, 2)),
    "b...i,ij->b...j": ((2, 3, 4, 5), (5, 2)),
    "...i,...i": ((2, 3, 4), (4,)),
    "... , ... -> ...": ((2, 3), (3,)),
    "Ab,bC->CA": ((2, 3), (3, 4)),
    "ij,ij->j": ((2, 3), (1, 3)),
    "i,->i": ((3,), ()),
    "blhn,bhpn,bclh->bclhp": ((2, 3, 2, 4), (2, 2, 5, 4), (2, 6, 3, 2)),
}  # fmt: skip


@pytest.mark.parametrize("name", PRODUCTS)
def test_of_floats(name: str) -> None:
    function, sizes = PRODUCTS[name]
    check_both(function, *(normal(*size) for size in sizes))


@pytest.mark.parametrize("name", PRODUCTS)
def test_of_int64(name: str) -> None:
    function, sizes = PRODUCTS[name]
    check(function, *(whole(*size) for size in sizes), dynamic=True)


@pytest.mark.parametrize("name", ["tensordot", "inner"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.int32], ids=str)
def test_of_other_dtypes(name: str, dtype: torch.dtype) -> None:
    function, sizes = PRODUCTS[name]
    check(function, *(whole(*size, dtype=dtype) for size in sizes), dynamic=True)


@pytest.mark.parametrize("name", ["tensordot"])
def test_at_the_last_opset(name: str) -> None:
    function, sizes = PRODUCTS[name]
    check_both(function, *(normal(*size) for size in sizes), **LAST)


NOTHING_TO_SUM = [
    (torch.inner, (2, 0), (3, 0)), (lambda a, b: torch.einsum("ij,j->i", a, b), (2, 0), (0,)),
    (lambda a, b: torch.einsum("bij,bj->bi", a, b), (0, 2, 3), (0, 3)), (lambda a, b: torch.einsum("ij,kj->ik", a, b), (2, 0), (3, 0)),
    (lambda a: torch.einsum("ij->ji", a), (0, 3)), (lambda a: torch.einsum("ii->i", a), (0, 0)),
    (lambda a: torch.einsum("ij->i", a), (2, 0)),
]  # fmt: skip


@pytest.mark.parametrize(("function", "sizes"), [(function, sizes) for function, *sizes in NOTHING_TO_SUM])
def test_of_nothing(function: Callable[..., Any], sizes: list[tuple[int, ...]]) -> None:
    check(function, *(torch.ones(*size) for size in sizes))


@pytest.mark.parametrize("length", [0, 1, 7])
@pytest.mark.parametrize(
    ("function", "sizes"),
    [
        (lambda a, b: torch.einsum("bhi,bji->bhj", a, b), (("n", 2, 3), ("n", 4, 3))),
        (lambda a, b: torch.einsum("bhi,bij->bhj", a, b), ((2, 3, "n"), (2, "n", 4))),
        (lambda a: torch.einsum("ni->n", a), (("n", 3),)),
        (lambda a: torch.einsum("ni->i", a), (("n", 3),)),
    ],
)  # fmt: skip
def test_a_free_axis_of_any_length(function: Callable[..., Any], sizes: tuple[Any, ...], length: int) -> None:
    def tensors(n: int) -> tuple[Tensor, ...]:
        return tuple(normal(*(n if size == "n" else size for size in given)) for given in sizes)

    axes = tuple({axis: Dim.DYNAMIC for axis, size in enumerate(given) if size == "n"} for given in sizes)
    check_further(function, tensors(3), tensors(length), axes, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("equation", EQUATIONS)
def test_einsum(equation: str) -> None:
    check_both(lambda *x: torch.einsum(equation, *x), *(normal(*sizes) for sizes in EQUATIONS[equation]))
    check(lambda *x: torch.einsum(equation, *x), *(whole(*sizes) for sizes in EQUATIONS[equation]))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(data=st.data())
def test_any_equation(data: st.DataObject) -> None:
    sizes = {letter: data.draw(st.integers(1, 3)) for letter in "abcd"}
    terms = data.draw(st.lists(st.text("abcd", max_size=4), min_size=1, max_size=3))
    used = sorted(set("".join(terms)))
    output = "".join(data.draw(st.lists(st.sampled_from(used), unique=True))) if used else ""
    tensors = [whole(*(sizes[letter] for letter in term)) for term in terms]
    report_of(lambda *x: torch.einsum(f"{','.join(terms)}->{output}", *x), *tensors, dynamic=data.draw(st.booleans())).check()


def test_sums_of_int64_are_exact_and_wrap_around() -> None:
    huge = torch.tensor([[2**60 + 1, 2**60 + 3, -5], [2**62, 1, 1]])
    check_both(lambda x: torch.einsum("ij->i", x), huge)
    check(lambda x: torch.einsum("ij->i", x), huge[None].expand(4, 2, 3).contiguous()[:, 0])


@pytest.mark.parametrize(
    ("function", "sizes", "nodes"),
    [
        (lambda a, b: torch.einsum("ij,jk->ik", a, b), ((2, 3), (3, 4)), ["MatMul"]),
        (lambda a, b: torch.einsum("bhqd,bhkd->bhqk", a, b), ((2, 3, 4, 5), (2, 3, 6, 5)), ["Transpose", "MatMul"]),
        (lambda a, b: torch.einsum("ij,kj->ki", a, b), ((2, 3), (4, 3)), ["Transpose", "MatMul"]),
    ],
)
def test_as_few_nodes_as_it_takes(function: Callable[..., Any], sizes: Any, nodes: list[str]) -> None:
    assert nodes_of(function, *(normal(*size) for size in sizes)) == nodes
