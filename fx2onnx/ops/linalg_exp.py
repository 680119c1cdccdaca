"""The exponential of matrices."""

from __future__ import annotations

from ..build import matrix_exp as routines
from ..build.graph import Graph, Tensor
from ..build.matrices import flat, unflat
from ..build.routines import called
from ..compat import aten
from ..translate.registry import translates


@translates(aten.linalg_matrix_exp.default, aten.matrix_exp.default)
def matrix_exp(g: Graph, x: Tensor) -> Tensor:
    """matrix_exp(A) → the function `matrix_exp`: products of matrices, and a Loop that squares."""
    return unflat(g, called(g, "matrix_exp", routines.matrix_exp, flat(g, x))[0], x.sizes)
