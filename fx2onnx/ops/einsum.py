"""Products of tensors over named axes, as transposes and one MatMul for each pair.

ONNX's Einsum is not used: ONNX Runtime 1.31 crashes with a division by zero if an axis is empty, and does not support ellipses of
different lengths.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..compat.operators import aten
from ..ir.expressions import Size
from ..ir.graph import Graph, Tensor
from ..translate.registry import translates
from .reduce import total

Labels = list[str]


@dataclass
class Term:
    """A tensor with a name for each axis."""

    value: Tensor
    labels: Labels

    def size(self, label: str) -> Size:
        """Return the size of the axis with this name."""
        return self.value.sizes[self.labels.index(label)]

    def sizes(self, labels: Sequence[str]) -> list[Size]:
        """Return the sizes of the axes with these names."""
        return [self.size(label) for label in labels]


@translates(aten.einsum.default)
def einsum(g: Graph, equation: str, tensors: Sequence[Tensor], path: Sequence[int] | None = None) -> Tensor:
    """einsum(equation, tensors) → from left to right: Transpose, Reshape, MatMul if axes are summed, else Mul."""
    # "bij,bjk->bik" of (b, i, j) and (b, j, k) is one MatMul over the batch b
    terms, output = _parse_equation(equation, g.promote(*tensors))
    terms = [_diagonal(g, term) for term in terms]
    terms = [_drop_ones(g, term, terms) for term in terms]
    first, *rest = terms
    for position, term in enumerate(rest):
        needed = {*output, *(label for other in rest[position + 1 :] for label in other.labels)}
        wanted = [label for label in output if label in first.labels or label in term.labels]
        wanted += sorted((needed & {*first.labels, *term.labels}) - {*wanted})
        first = pair(g, first, term, wanted)
    return _permute_term(g, _sum_out(g, first, output), output).value


def _parse_equation(equation: str, tensors: Sequence[Tensor]) -> tuple[list[Term], Labels]:
    """Return the terms, with names for the axes of an ellipsis, and the names of the result's axes."""
    given, arrow, output = equation.replace(" ", "").partition("->")
    parts = given.split(",")
    hidden = max(tensor.rank - len(part.replace("...", "")) if "..." in part else 0 for part, tensor in zip(parts, tensors, strict=True))
    names = [f"...{i}" for i in range(hidden)]
    terms = [Term(tensor, _labels(part, names, tensor.rank)) for part, tensor in zip(parts, tensors, strict=True)]
    if arrow:
        return terms, _labels(output, names, None)
    letters = given.replace(",", "").replace("...", "")
    return terms, names + sorted(letter for letter in set(letters) if letters.count(letter) == 1)


def _labels(part: str, names: Labels, rank: int | None) -> Labels:
    before, dots, after = part.partition("...")
    here = rank - len(before) - len(after) if rank is not None else len(names)
    return [*before, *(names[len(names) - here :] if dots else []), *after]


def _diagonal(g: Graph, term: Term) -> Term:
    """Return a term with unique names: for two axes with one name their diagonal, every (n + 1)-th element of both as one axis."""
    twice = next((label for label in term.labels if term.labels.count(label) > 1), None)
    if twice is None:
        return term
    one, other = [i for i, label in enumerate(term.labels) if label == twice][:2]
    rest = [i for i in range(len(term.labels)) if i not in (one, other)]
    size, sizes = term.size(twice), [term.value.sizes[i] for i in rest]
    last = g.set_sizes(g.Transpose(term.value, perm=[*rest, one, other]), [*sizes, size, size])
    line = g.reshape_to(last, [*sizes, size * size])
    found = g.set_sizes(g.Slice(line, [0], [2**63 - 1], [-1], [size + 1]), [*sizes, size])
    return _diagonal(g, Term(found, [*(term.labels[i] for i in rest), twice]))


def _drop_ones(g: Graph, term: Term, terms: Sequence[Term]) -> Term:
    """Return the term without axes of one element for which another term has more elements."""
    drop = [x for x in term.labels if term.size(x) == 1 and any(x in other.labels and other.size(x) != 1 for other in terms)]
    kept = [label for label in term.labels if label not in drop]
    return Term(_reshape_to(g, term.value, term.sizes(kept)), kept) if drop else term


def _sum_out(g: Graph, term: Term, needed: Sequence[str]) -> Term:
    axes = [i for i, label in enumerate(term.labels) if label not in needed]
    if not axes:
        return term
    return Term(total(g, term.value, axes), [label for label in term.labels if label in needed])


def _permute_term(g: Graph, term: Term, labels: Labels) -> Term:
    if term.labels == labels:
        return term
    order = [term.labels.index(label) for label in labels]
    value = g.transpose_matrix(term.value) if order == [1, 0] else g.Transpose(term.value, perm=order)
    return Term(g.set_sizes(value, term.sizes(labels)), labels)


def pair(g: Graph, a: Term, b: Term, wanted: Labels) -> Term:
    """Return the product of two terms, summed over the names that are not wanted, with the wanted axes in order."""
    a = _sum_out(g, a, [*wanted, *b.labels])
    b = _sum_out(g, b, [*wanted, *a.labels])
    both = [label for label in a.labels if label in b.labels]
    batch, summed = [label for label in wanted if label in both], [label for label in both if label not in wanted]
    left, right = [x for x in wanted if x in a.labels and x not in both], [x for x in wanted if x in b.labels and x not in both]
    if not summed:
        return _multiply(g, a, b, wanted)
    if [*batch, *right, *left] == wanted and left and right:
        a, b, left, right = b, a, right, left
    sizes = [*a.sizes(batch), *a.sizes(left), *b.sizes(right)]
    product = g.MatMul(_matrices(g, a, batch, left, summed), _matrices(g, b, batch, summed, right, second=True))
    flat = [math.prod(a.sizes(left))] if batch or len(left) == 0 else a.sizes(left)
    g.set_sizes(product, [*a.sizes(batch), *flat, math.prod(b.sizes(right))])
    return _permute_term(g, Term(_reshape_to(g, product, sizes), [*batch, *left, *right]), wanted)


def _matrices(g: Graph, term: Term, batch: Labels, rows: Labels, columns: Labels, second: bool = False) -> Tensor:
    """Return the term as matrices (*batch, rows, columns), with rows and columns merged into one axis each."""
    term = _permute_term(g, term, [*batch, *rows, *columns])
    joined = [math.prod(term.sizes(rows))] if batch or second or not rows else term.sizes(rows)
    return g.reshape_to(term.value, [*term.sizes(batch), *joined, math.prod(term.sizes(columns))])


def _multiply(g: Graph, a: Term, b: Term, wanted: Labels) -> Term:
    """Append Mul of both terms, with axes of one element for names that only the other term has."""
    a, b = (_permute_term(g, term, [label for label in wanted if label in term.labels]) for term in (a, b))
    spread = [g.reshape_to(t.value, _align_sizes(t, wanted)) for t in (a, b)]
    return Term(g.set_sizes(g.Mul(*spread), [a.size(x) if x in a.labels else b.size(x) for x in wanted]), wanted)


def _reshape_to(g: Graph, value: Tensor, sizes: Sequence[Size]) -> Tensor:
    return g.set_sizes(g.reshape_to(value, sizes), sizes)


def _align_sizes(term: Term, wanted: Labels) -> list[Size]:
    """Return the sizes of the term so that they broadcast with all wanted axes, without leading ones."""
    first = next((i for i, label in enumerate(wanted) if label in term.labels), len(wanted))
    return [term.size(label) if label in term.labels else 1 for label in wanted[first:]]


@translates(aten.tensordot.default)
def tensordot(g: Graph, a: Tensor, b: Tensor, dims_self: Sequence[int], dims_other: Sequence[int]) -> Tensor:
    """tensordot(a, b, dims_a, dims_b) → Transpose, Reshape, MatMul."""
    # the result is (*other axes of a, *other axes of b)
    of_a, of_b = [f"a{i}" for i in range(a.rank)], [f"b{i}" for i in range(b.rank)]
    for i, j in zip(dims_self, dims_other, strict=True):
        of_b[j] = of_a[i]
    wanted = [x for x in of_a if x not in of_b] + [x for x in of_b if x not in of_a]
    terms = [Term(a, of_a), Term(b, of_b)]
    first, second = (_drop_ones(g, term, terms) for term in terms)
    return pair(g, first, second, wanted).value


@translates(aten.inner.default)
def inner(g: Graph, a: Tensor, b: Tensor) -> Tensor:
    """inner(a, b) → the product over the last axis of both; Mul if one is a number."""
    if a.rank == 0 or b.rank == 0:
        return g.Mul(a, b)
    return tensordot(g, a, b, [a.rank - 1], [b.rank - 1])
