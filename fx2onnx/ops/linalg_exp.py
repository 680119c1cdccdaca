"""The matrix exponential."""

from __future__ import annotations

from ..compat.operators import aten
from ..ir.graph import Graph, Tensor
from ..lower.local_functions import call_local_function
from ..translate.registry import translates
from .linalg import matrix_exponential as routines
from .linalg.matrices import flat, unflat


@translates(aten.linalg_matrix_exp.default, aten.matrix_exp.default)
def matrix_exp(g: Graph, x: Tensor) -> Tensor:
    """matrix_exp(A) → the function `matrix_exp`: matrix products, and a Loop that squares."""
    return unflat(g, call_local_function(g, "matrix_exp", routines.matrix_exp, flat(g, x))[0], x.sizes)
