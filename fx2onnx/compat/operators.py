"""Torch's operators. Those that the installed version lacks are text."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch._higher_order_ops import utils as hop_utils
from torch._higher_order_ops.associative_scan import generic_associative_scan, wrap_combine_fn_flat
from torch._ops import HigherOrderOperator, OpOverload, OpOverloadPacket

__all__ = [
    "COMPILES_AND_CALLS", "HigherOrderOperator", "OpOverload", "OpOverloadPacket", "Operators", "aten", "find_decompositions",
    "find_python_function", "generic_associative_scan", "has_compile_and_call", "is_batchedtensor", "mapping_over_indices",
    "native_functions", "native_nn", "parse_schema", "wrap_combine_fn_flat",
]  # fmt: skip

COMPILES_AND_CALLS = "_hop_compile_and_call"  # from torch 2.12 on; before, operators that take functions call torch.compile
native_nn: Any = torch._C._nn
parse_schema: Any = torch._C.parse_schema
native_functions: Any = torch._VF
is_batchedtensor: Any = torch._C._functorch.is_batchedtensor


class Operators:
    """The attributes of `torch.ops.aten` or of an operator; text, such as `aten.cholesky.default`, for those that this torch lacks.

    A node never has text as its target, so the translation of a missing operator is never used.
    """

    def __init__(self, torchs: Any, name: str) -> None:
        self._torchs, self._name = torchs, name

    def __getattr__(self, name: str) -> Any:
        found, path = getattr(self._torchs, name, None), f"{self._name}.{name}"
        if found is None and name.startswith("__"):  # Python or `table_of` looks for it
            raise AttributeError(name)
        return found if isinstance(found, OpOverload) else path if "." in self._name else Operators(found, path)


aten: Any = Operators(torch.ops.aten, "aten")


def has_compile_and_call() -> bool:
    """Return whether operators that take functions compile them by `COMPILES_AND_CALLS`."""
    return hasattr(hop_utils, COMPILES_AND_CALLS)


def find_decompositions() -> dict[Any, Any]:
    """Return torch's decompositions by operator."""
    from torch._decomp import core_aten_decompositions, decomposition_table  # slow: only where a model needs them

    return {**core_aten_decompositions(), **decomposition_table}


def find_python_function(operator: OpOverload) -> Callable[..., Any] | None:
    """Return the Python function behind an operator of `torch.library.custom_op`; None for other operators."""
    from torch._library.custom_ops import OPDEFS

    definition = OPDEFS.get(operator.name().partition(".")[0])
    return None if definition is None else definition._init_fn


def mapping_over_indices() -> AbstractContextManager[Any]:
    """Return a context in which `torch.vmap` can map over an index, as in `mask[b, k]`."""
    from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex  # slow: imports the compiler

    return TransformGetItemToIndex()
