"""Inline the functions of a model. ONNX Runtime inlines them too, but loses the information which call a node came from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from .attribution import graphs

if TYPE_CHECKING:
    import onnx

NAMESPACE = "namespace"
Called = tuple[str, str, str]


def inline_functions(file: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model in which each function call is replaced by its nodes, with the module scopes of the call."""
    import onnx.inliner

    if not file.functions:
        return file
    functions = {_key(function.domain, function.name, function.overload): function for function in file.functions}
    copies: list[onnx.FunctionProto] = []
    for graph in graphs(file.graph):
        _copy_called_functions(graph.node, functions, copies)
    del file.functions[:]
    file.functions.extend(copies)
    return onnx.inliner.inline_local_functions(file)


def _copy_called_functions(
    nodes: Sequence[onnx.NodeProto], functions: dict[Called, onnx.FunctionProto], copies: list[onnx.FunctionProto]
) -> None:
    """Replace each call by a call of a copy of its function, which records the scope of the call."""
    for call in nodes:
        function = functions.get(_key(call.domain, call.op_type, call.overload))
        if function is None:
            continue
        copy = type(function)()
        copy.CopyFrom(function)
        copy.name = call.op_type = f"{function.name}_{len(copies)}"
        copies.append(copy)
        for node in copy.node:
            _tell(node, call)
        _copy_called_functions(list(_all(copy.node)), functions, copies)


def _all(nodes: Sequence[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from _all(inner.node)


def _tell(node: onnx.NodeProto, call: onnx.NodeProto) -> None:
    """Replace a node's outer module scopes by those of its call, and add metadata that it lacks."""
    own = {entry.key: entry for entry in node.metadata_props}
    for entry in call.metadata_props:
        if entry.key not in own:
            node.metadata_props.add(key=entry.key, value=entry.value)
        elif entry.key == NAMESPACE:
            own[NAMESPACE].value = _rebase_scopes(own[NAMESPACE].value, entry.value)


def _rebase_scopes(inner: str, call: str) -> str:
    """Return the scopes of a node in a function below the scopes of its call: `l.0: B/l.0.fc: Linear` below `l.1: B`."""
    around, scopes = call.split("/"), inner.split("/")
    before, after = scopes[: len(around)][-1].partition(": ")[0], around[-1].partition(": ")[0]
    moved = [after + scope.removeprefix(before) if scope.startswith(f"{before}.") else scope for scope in scopes[len(around) :]]
    return "/".join([*around, *moved])


def _key(domain: str, name: str, overload: str) -> Called:
    return domain, name, overload
