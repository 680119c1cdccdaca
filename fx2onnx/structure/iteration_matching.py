"""Compare two calls, or the graphs passed to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sympy
import torch

from ..compat import trees as pytree
from ..ir.captured_program import SymbolicMeta
from ..trace.events import alike
from .stacked_outputs import Node


def same_graph(one: torch.fx.GraphModule, other: torch.fx.GraphModule, at: Mapping[Any, int]) -> bool:
    """Return whether two graphs make the same calls, with `at` substituted in the second."""
    if len(one.graph.nodes) != len(other.graph.nodes):
        return False
    same: dict[Node, Node] = {}
    for a, b in zip(one.graph.nodes, other.graph.nodes, strict=True):
        (mine, spec), (its, own) = (pytree.tree_flatten((node.args, dict(node.kwargs))) for node in (a, b))
        if a.op != b.op or spec != own or (a.op == "call_function" and a.target is not b.target):
            return False
        if a.op == "get_attr" and not same_graph(one.get_submodule(str(a.target)), other.get_submodule(str(b.target)), at):  # type: ignore[arg-type]
            return False
        if not same_value(a.meta.get("val"), b.meta.get("val")):
            return False
        for x, y in zip(mine, its, strict=True):
            if isinstance(x, Node) or isinstance(y, Node):
                if same.get(x) is not y:
                    return False
            elif not same_leaf(x, y, at):
                return False
        same[a] = b
    return True


def same_value(one: Any, other: Any) -> bool:
    """Return whether two results have the same sizes and dtypes."""
    if isinstance(one, (list, tuple)):
        return isinstance(other, (list, tuple)) and len(one) == len(other) and all(map(same_value, one, other))
    if isinstance(one, SymbolicMeta) and isinstance(other, SymbolicMeta):
        return one.sizes == other.sizes and one.dtype == other.dtype
    return type(one) is type(other)


def same_leaf(one: Any, other: Any, at: Mapping[Any, int]) -> bool:
    """Return whether two arguments are equal, with `at` substituted in the second."""
    other = other.subs(at) if isinstance(other, sympy.Basic) else other
    if isinstance(one, sympy.Basic) or isinstance(other, sympy.Basic):
        return bool(sympy.sympify(one) == other)
    return alike(one, other)
