"""Compare a program of torch.export with its model where a guard in an installed library has another outcome."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice

import sympy

from ..compat import trees as pytree
from ..guards.accepted_ranges import lost_by
from ..guards.dynamic_shapes import OpenGuard, open_guards, shape_environment, symbol_of
from ..guards.witnesses import witness_sizes
from ..ir.expressions import evaluate_at
from ..trace.size_domain import MAX_TRACED_SIZE_WITH_VALUES
from .eager_comparison import EagerComparison

TRIED = 2  # sizes at which a guard has another outcome


def losses_in_libraries(comparison: EagerComparison, accepted: Sequence[str]) -> Iterator[str]:
    """Yield the lines of guards on accepted dimensions for which a program differs from its model.

    Libraries test `size > 1` without consequences, so such a guard alone is not a reason to refuse a model.

    Raises:
        FrozenDimension: If there is such a guard on another dimension.
    """
    differs = cache(lambda sizes: comparison.differs(dict(sizes)))
    for test in _open_in_libraries(comparison):
        sizes = list(islice(_other_sizes(test), TRIED))
        if sizes and not any(map(differs, sizes)):
            continue
        if not set(test.names) <= set(accepted):
            raise test.error()
        yield lost_by(test)


def _open_in_libraries(comparison: EagerComparison) -> Iterator[OpenGuard]:
    """Yield the guards with another outcome at some size; those in the user's code were checked before."""
    leaves = pytree.tree_leaves(comparison.given)
    symbols = [(dim, found) for dim in comparison.dims if (found := symbol_of(comparison.program, leaves, dim)) is not None]
    if (environment := shape_environment(comparison.program)) is not None:
        yield from open_guards(environment, symbols, (), libraries=True)


def _other_sizes(test: OpenGuard) -> Iterator[tuple[tuple[str, int], ...]]:
    """Yield sizes, by name, at which a test has another outcome and which can be run."""
    for sizes in witness_sizes(dict(test.dims), test.test):
        if max(sizes.values()) <= MAX_TRACED_SIZE_WITH_VALUES and evaluate_at(test.test, sizes) != sympy.true:
            yield tuple((test.dims[symbol].name, size) for symbol, size in sizes.items())
