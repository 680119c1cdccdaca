"""Whether eager takes the types that the capture has: torch.export asks kernels without data, which take what those with data refuse."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ..errors import CaptureError, first_sentence, op_title, users_line
from ..ir.source_node import overload_of

ABOUT_TYPES = re.compile(r"dtype|data ?type|scalar type|LongTensor|not implemented for '(Byte|Char|Short|Int|Long|Bool)'")
WANTS_INTEGERS = {"index", "indices", "num_classes"}  # names of arguments of operators that take no float there
UNBACKED = 2  # elements of an axis that only a call tells
Key = tuple[Any, ...]


def check_types(module: torch.fx.GraphModule) -> None:
    """Call each operator that mixes types, or is given integers, on zeros: once for each way in which its types are combined.

    Raises:
        CaptureError: eager refuses the types; the model cannot be called so, and whatever a file answered would be made up.
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
    """The operator and the types of its arguments; None where these are floats of one type, or eager cannot be asked here."""
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
    """A tensor of zeros in place of one that the capture has, which takes no memory; an example in place of a symbol."""
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return value.node.pytype(value.node.hint if value.node.has_hint() else UNBACKED)
    if not isinstance(value, torch.Tensor):
        return value
    return torch.zeros((), dtype=value.dtype).expand([size if isinstance(size, int) else _zeros(size) for size in value.shape])
