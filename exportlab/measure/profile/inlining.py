"""A file without functions of its own: ONNX Runtime puts their nodes in the place of each call as well, and forgets which call it was."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from .attribution import graphs

if TYPE_CHECKING:
    import onnx

NAMESPACE = "namespace"
Called = tuple[str, str, str]


def inline_functions(file: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model in which each call of a function is its nodes, each in the modules of its call; the model itself where it has none."""
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
    """Make each call that of a copy of its function, which says where that call is."""
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
    """Give a node the modules of its call in the place of those that the function was made of, and what else it does not say itself."""
    own = {entry.key: entry for entry in node.metadata_props}
    for entry in call.metadata_props:
        if entry.key not in own:
            node.metadata_props.add(key=entry.key, value=entry.value)
        elif entry.key == NAMESPACE:
            own[NAMESPACE].value = _rebase_scopes(own[NAMESPACE].value, entry.value)


def _rebase_scopes(inner: str, call: str) -> str:
    """The scopes of a node inside a function, those around it being those of its call: `l.0: B/l.0.fc: Linear` below `l.1: B`."""
    around, scopes = call.split("/"), inner.split("/")
    before, after = scopes[: len(around)][-1].partition(": ")[0], around[-1].partition(": ")[0]
    moved = [after + scope.removeprefix(before) if scope.startswith(f"{before}.") else scope for scope in scopes[len(around) :]]
    return "/".join([*around, *moved])


def _key(domain: str, name: str, overload: str) -> Called:
    return domain, name, overload
