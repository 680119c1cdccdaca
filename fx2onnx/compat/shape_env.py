"""Torch's environment of symbolic sizes, its guards and their locations."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from torch._dynamo.source import ConstantSource
from torch._guards import CompileContext, SLoc
from torch.fx.experimental.sym_node import SymNode
from torch.fx.experimental.symbolic_shapes import (
    DimDynamic,
    ShapeEnv,
    ShapeGuardPythonPrinter,
    StatelessSymbolicContext,
    free_unbacked_symbols,
    statically_known_true,
    uninteresting_files,
)

__all__ = [
    "CompileContext", "ConstantSource", "DimDynamic", "SLoc", "ShapeEnv", "ShapeGuardPythonPrinter", "StatelessSymbolicContext", "SymNode",
    "free_unbacked_symbols", "sizes_known_to", "statically_known_true", "uninteresting_files",
]  # fmt: skip


def sizes_known_to(environment: Any) -> MutableMapping[Any, Any]:
    """Return the mutable mapping of a `ShapeEnv` from input symbols to their example sizes."""
    return environment.backed_var_to_val if hasattr(environment, "backed_var_to_val") else environment.var_to_val  # until torch 2.10
