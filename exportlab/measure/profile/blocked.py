"""Convolutions for which ONNX Runtime moves the axes: no value of the file lies between them, and names tell what they stand for."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx

BLOCKED = "_nchwc"  # behind the name of the value that such a node makes

Nodes = list["onnx.NodeProto"]


def claims(
    ran: Sequence[onnx.NodeProto], file: Sequence[onnx.NodeProto], makers: Mapping[str, Nodes], kept: Container[str]
) -> dict[str, Nodes]:
    """Return by the name of each such node which nodes of the file it stands for: one of its operator, and what was fused into that.

    Args:
        ran, file: the nodes that are run, and those of the file, each in an order in which they can be.
        makers: the nodes of the file by the values that they make.
        kept: values of the file that are still there: what makes one of them is a node of its own.
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
    """From the value that the node is called after to the first node of its operator: an activation lies behind it."""
    found: Nodes = []
    for value in _chain(node.name.removesuffix(BLOCKED), makers):
        found.append(makers[value][0])
        if found[-1].op_type == node.op_type:
            return found
    return found[:1]


def _chain(value: str, makers: Mapping[str, Nodes]) -> list[str]:
    """A value and those that it is made of, along the first input that a node makes."""
    found: list[str] = []
    left: str | None = value
    while left is not None and left not in found:
        found.append(left)
        left = next((name for name in makers[left][0].input if name in makers), None)
    return found
