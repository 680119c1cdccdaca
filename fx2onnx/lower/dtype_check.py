"""Checks that eager accepts the captured dtypes: torch.export calls kernels without data, which accept what real ones refuse."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import torch

from ..compat import trees as pytree
from ..errors import CaptureError, first_sentence, op_title, users_line
from ..ir.source_node import overload_of

ABOUT_TYPES = re.compile(r"dtype|data ?type|scalar type|LongTensor|not implemented for '(Byte|Char|Short|Int|Long|Bool)'")
WANTS_INTEGERS = {"index", "indices", "num_classes"}  # arguments for which these operators accept no floats
UNBACKED = 2  # an example size for an axis that only a call determines
Key = tuple[Any, ...]


def check_types(module: torch.fx.GraphModule) -> None:
    """Call each operator that mixes dtypes, or has integer arguments, on zeros: once for each combination of dtypes.

    Raises:
        CaptureError: eager refuses the dtypes, so the model cannot be called, and the exported model has no correct result.
    """
    asked: set[Key] = set()
    for node in _calls(module):
        key = _types(node)
        if key is not None and key not in asked:
            asked.add(key)
            _ask(node)


def _calls(module: torch.fx.GraphModule) -> Iterator[torch.fx.Node]:
    for part in module.modules():
        if isinstance(part, torch.fx.GraphModule):
            yield from (node for node in part.graph.nodes if node.op == "call_function")


def _types(node: torch.fx.Node) -> Key | None:
    """Return the operator and the dtypes of its arguments; None if they are floats of one dtype, or eager cannot be called here."""
    overload = overload_of(node)
    if overload is None or overload.namespace != "aten" or torch.Tag.nondeterministic_seeded in overload.tags:
        return None
    values = [a.meta.get("val") for a in node.all_input_nodes]
    tensors = [value for value in pytree.tree_leaves(values) if isinstance(value, torch.Tensor)]
    dtypes = tuple((t.dtype, t.dim()) for t in tensors)
    floats = len({dtype for dtype, _ in dtypes}) < 2 and all(dtype.is_floating_point for dtype, _ in dtypes)
    asked = not floats or not WANTS_INTEGERS.isdisjoint(argument.name for argument in overload._schema.arguments)
    return (overload, *dtypes) if asked and all(t.device.type == "cpu" for t in tensors) else None


def _ask(node: torch.fx.Node) -> None:
    overload = overload_of(node)
    assert overload is not None
    args, kwargs = pytree.tree_map_only(torch.fx.Node, lambda n: pytree.tree_map(_zeros, n.meta.get("val")), (node.args, node.kwargs))
    try:
        with torch.no_grad():
            overload(*args, **kwargs)
    except Exception as error:
        if ABOUT_TYPES.search(said := first_sentence(error)):
            text = f"{op_title(overload)} at {users_line(node)}: {said}"
            raise CaptureError(
                f"eager PyTorch rejects the dtypes of {text}: call the model before the export, and pass dtypes that it accepts"
            ) from error


def _zeros(value: Any) -> Any:
    """Return a tensor of zeros that needs no memory for a captured tensor, and an example for a symbol."""
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return value.node.pytype(value.node.hint if value.node.has_hint() else UNBACKED)
    if not isinstance(value, torch.Tensor):
        return value
    return torch.zeros((), dtype=value.dtype).expand([size if isinstance(size, int) else _zeros(size) for size in value.shape])
