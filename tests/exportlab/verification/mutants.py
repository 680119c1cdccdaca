"""Changes of exported files, an oracle that asks whether any input tells a change, and what `verify` says of it; not here: the models.

Run it for the whole table: `PYTHONPATH=. python tests/exportlab/verification/mutants.py [CSV]`, some minutes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import onnx_ir as ir

Change = Callable[[ir.Model], None]
COMPARISONS = {"Greater": "GreaterOrEqual", "GreaterOrEqual": "Greater", "Less": "LessOrEqual", "LessOrEqual": "Less"}
PASSED_ON = {"Unsqueeze", "Squeeze", "Expand", "Cast", "Not", "Reshape", "Where", "Transpose", "And", "Slice"}  # by these a mask stays one
KINDS = ("dropped", "constant", "axis", "branch", "mask", "weight")


@dataclass(frozen=True)
class Mutation:
    """One change: its kind, what it does in words, and the change itself, to be made in a copy of the model."""

    kind: str
    what: str
    change: Change

    def applied(self, model: ir.Model) -> ir.Model:
        """Return a changed copy."""
        copy = ir.from_proto(ir.to_proto(model))
        self.change(copy)
        return copy


def mutations(model: ir.Model, seed: int = 0) -> dict[str, list[Mutation]]:
    """Return all changes of a model by kind, shuffled, always alike for a seed."""
    finders = (_dropped, _constants, _axes, _branches, _masks, _weights)
    found = {kind: list(finder(model)) for kind, finder in zip(KINDS, finders, strict=True)}
    for changes in found.values():
        random.Random(seed).shuffle(changes)
    return found


def _nodes(model: ir.Model) -> list[ir.Node]:
    """All nodes, those of branches and of local functions included, in an order that a copy has too."""
    found = list(model.graph.all_nodes())
    return found + [node for function in model.functions.values() for node in function.all_nodes()]


def _in_copy(index: int, change: Callable[[ir.Node], None]) -> Change:
    return lambda copy: change(_nodes(copy)[index])


def _label(node: ir.Node) -> str:
    return f"{node.op_type} {node.outputs[0].name}"


def _replaced(node: ir.Node, kept: int) -> None:
    """Let a node hand on its input number `kept`, whatever it did before."""
    identity = ir.node("Identity", [node.inputs[kept]])
    node.graph.insert_before(node, identity)  # type: ignore[union-attr]
    _outputs_taken(node, identity.outputs[0])


def _outputs_taken(node: ir.Node, value: ir.Value) -> None:
    """Let all who used the first output of a node use `value`; an output of the graph keeps its name."""
    old = node.outputs[0]
    value.type, value.shape = old.type, old.shape
    if old.is_graph_output():
        value.name, old.name = old.name, f"{old.name}_before"
    ir.convenience.replace_all_uses_with(old, value, replace_graph_outputs=True)


def _alike(a: ir.Value | None, b: ir.Value) -> bool:
    """Whether one may stand for the other, as far as shapes and types are known."""
    return a is not None and a.dtype == b.dtype and a.shape is not None and a.shape == b.shape


def _dropped(model: ir.Model) -> Iterator[Mutation]:
    for i, node in enumerate(_nodes(model)):
        for k, value in enumerate(node.inputs):
            if node.op_type != "Identity" and _alike(value, node.outputs[0]) and not _is_size(node.outputs[0]):
                yield Mutation("dropped", f"{_label(node)}: its input {k} instead", _in_copy(i, partial(_replaced, kept=k)))
                break


def _is_size(value: ir.Value) -> bool:
    """Whether a value may be a size or a place: ONNX Runtime ends the process at some that make no sense."""
    return value.dtype == ir.DataType.INT64 and value.shape is not None and len(value.shape) < 2


def _array(value: ir.Value | None) -> np.ndarray[Any, Any] | None:
    """The numbers of a constant, None for what is computed."""
    constant = ir.convenience.get_const_tensor(value) if value is not None else None
    return None if constant is None else constant.numpy()


def _put(node: ir.Node, k: int, array: np.ndarray[Any, Any]) -> None:
    """Give a node another constant as its input number `k`; whoever shares the constant keeps the old one."""
    constant = ir.node("Constant", [], attributes={"value": ir.tensor(array)})
    node.graph.insert_before(node, constant)  # type: ignore[union-attr]
    constant.outputs[0].name = f"{node.outputs[0].name}_changed_{k}"
    node.replace_input_with(k, constant.outputs[0])


def _constants(model: ir.Model) -> Iterator[Mutation]:
    for i, node in enumerate(_nodes(model)):
        if node.op_type in COMPARISONS:
            yield Mutation("constant", f"{_label(node)}: equality on the other side", _in_copy(i, _edge_moved))
        for k, value in enumerate(node.inputs):
            array = _array(value)
            if array is not None and array.size == 1 and array.dtype.kind in "fiub":
                other = _other(array)
                what = f"{_label(node)}: {array.item():.6g} is {other.item():.6g}"
                yield Mutation("constant", what, _in_copy(i, partial(_put, k=k, array=other)))
        for name, attribute in node.attributes.items():
            if attribute.type == ir.AttributeType.FLOAT:
                yield Mutation("constant", f"{_label(node)}: {name} changed", _in_copy(i, partial(_float_changed, name=name)))


def _other(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A number a little away: half as much again, one more, the other truth value."""
    if array.dtype.kind == "f":
        return np.asarray(np.where(array == 0, 0.1, np.clip(array.astype("f8") * 1.5, -3e38, 3e38))).astype(array.dtype)
    return np.asarray(~array if array.dtype.kind == "b" else array + 1).astype(array.dtype)


def _edge_moved(node: ir.Node) -> None:
    node.op_type = COMPARISONS[node.op_type]


def _float_changed(node: ir.Node, name: str) -> None:
    node.attributes[name] = ir.AttrFloat32(name, node.attributes[name].as_float() * 1.5 + 0.1)


def _axes(model: ir.Model) -> Iterator[Mutation]:
    for i, node in enumerate(_nodes(model)):
        if "axis" in node.attributes:
            yield Mutation("axis", f"{_label(node)}: another axis", _in_copy(i, _axis_changed))
        if "perm" in node.attributes:
            yield Mutation("axis", f"{_label(node)}: the last two axes swapped", _in_copy(i, _perm_changed))
        axes = _array(node.inputs[1]) if node.op_type.startswith("Reduce") and len(node.inputs) > 1 else None
        if axes is not None and axes.size:
            other = np.where(axes == 0, 1, np.where(axes < -1, -1, axes - 1)).astype(axes.dtype)
            yield Mutation("axis", f"{_label(node)}: axes {other.tolist()}", _in_copy(i, partial(_put, k=1, array=other)))


def _axis_changed(node: ir.Node) -> None:
    axis = node.attributes["axis"].as_int()
    node.attributes["axis"] = ir.AttrInt64("axis", {-1: -2, 0: 1}.get(axis, axis - 1 if axis > 0 else axis + 1))


def _perm_changed(node: ir.Node) -> None:
    perm = list(node.attributes["perm"].as_ints())
    node.attributes["perm"] = ir.AttrInt64s("perm", [*perm[:-2], perm[-1], perm[-2]])


def _branches(model: ir.Model) -> Iterator[Mutation]:
    for i, node in enumerate(_nodes(model)):
        if node.op_type in ("If", "Where"):
            for side in (True, False):
                change = partial(_put, k=0, array=np.array(side))
                yield Mutation("branch", f"{_label(node)}: always {side}", _in_copy(i, change))


def _masks(model: ir.Model) -> Iterator[Mutation]:
    for i, node in enumerate(_nodes(model)):
        if node.op_type in ("Where", "Add", "Mul", "And") and any(_is_mask(value) for value in node.inputs):
            for k, value in enumerate(node.inputs):
                if not _is_mask(value) and _alike(value, node.outputs[0]) and _array(value) is None:
                    yield Mutation("mask", f"{_label(node)}: without its mask", _in_copy(i, partial(_replaced, kept=k)))
                    break


def _is_mask(value: ir.Value | None, depth: int = 6) -> bool:
    """Whether a value is made of truth values alone."""
    if value is None or depth == 0 or _array(value) is not None:
        return False
    if value.dtype == ir.DataType.BOOL:
        return True
    maker = value.producer()
    return maker is not None and maker.op_type in PASSED_ON and _is_mask(maker.inputs[0], depth - 1)


def _weights(model: ir.Model) -> Iterator[Mutation]:
    chosen = random.Random(1)
    for i, node in enumerate(_nodes(model)):
        for k, value in enumerate(node.inputs):
            array = _array(value)
            if array is None or array.size < 2 or array.dtype.kind != "f":
                continue
            for _ in range(2):
                place = chosen.randrange(array.size)
                moved = array.copy()
                moved.flat[place] += array.dtype.type(np.abs(array).max() / 100)
                yield Mutation("weight", f"{_label(node)}: element {place} of input {k}", _in_copy(i, partial(_put, k=k, array=moved)))
