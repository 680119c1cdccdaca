"""Attribute convolutions in ONNX Runtime's blocked layout. They can be found only by their names, because no value of the file is between
them.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx

BLOCKED = "_nchwc"  # suffix of such a node's name, after the name of a value

Nodes = list["onnx.NodeProto"]


def claims(
    ran: Sequence[onnx.NodeProto], file: Sequence[onnx.NodeProto], makers: Mapping[str, Nodes], kept: Container[str]
) -> dict[str, Nodes]:
    """Return, by name of each such node, the nodes of the file that it replaces: a node of the same operator and the nodes fused into it.

    Args:
        ran, file: the nodes of the optimised graph and of the file, in topological order.
        makers: the nodes of the file by output.
        kept: values of the file that still exist. The node that computes such a value is separate.
    """
    found = {node.name: _back(node, makers) for node in ran if node.name.removesuffix(BLOCKED) in makers and node.name.endswith(BLOCKED)}
    order = {name: place for place, name in enumerate(found)}
    owner = {value: name for name, nodes in found.items() for node in nodes for value in node.output}
    for node in file:
        owners = [owner[value] for value in node.input if value in owner]
        if owners and not any(value in owner or value in kept for value in node.output):
            last = max(owners, key=lambda name: order[name])
            found[last].append(node)
            owner.update(dict.fromkeys(node.output, last))
    return found


def _back(node: onnx.NodeProto, makers: Mapping[str, Nodes]) -> Nodes:
    """Return the nodes from the value in the node's name back to the first node of its operator, for example through an activation."""
    found: Nodes = []
    for value in _chain(node.name.removesuffix(BLOCKED), makers):
        found.append(makers[value][0])
        if found[-1].op_type == node.op_type:
            return found
    return found[:1]


def _chain(value: str, makers: Mapping[str, Nodes]) -> list[str]:
    """Return a value and its predecessors along the first computed input."""
    found: list[str] = []
    left: str | None = value
    while left is not None and left not in found:
        found.append(left)
        left = next((name for name in makers[left][0].input if name in makers), None)
    return found
