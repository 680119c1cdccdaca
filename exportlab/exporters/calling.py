"""Map a module's nested arguments to the flat inputs of an exported model, and its flat outputs to the module's result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from fx2onnx.compat import trees as pytree

from ..checks import must_end
from .to_onnx import RunProgram


@dataclass(frozen=True)
class Constant:
    """A leaf that the export made a constant, so it is not an input (or output) of the exported model."""

    value: Any


@dataclass(frozen=True)
class Flat:
    """A leaf that is an input or output of the exported model; `python` means that the caller uses an int, float or bool."""

    python: bool = False


Leaf = Constant | Flat


@dataclass(frozen=True)
class Calling:
    """The calling convention: how arguments of `forward` map to inputs, and outputs to the return value."""

    inputs: tuple[Leaf, ...]
    in_spec: pytree.TreeSpec
    outputs: tuple[Leaf, ...]
    out_spec: pytree.TreeSpec

    def feed(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
        """Return the inputs of the exported model, in order.

        Raises:
            TypeError: the arguments have another structure than at export.
            ValueError: an argument differs from the value that became a constant, or the arguments are nested too deeply.
        """
        must_end(arguments=(args, kwargs))
        leaves, spec = pytree.tree_flatten((args, _ordered_like(self.in_spec, kwargs)))
        if spec != self.in_spec:
            raise TypeError(f"exported for arguments like {_shape_of(self.in_spec)}, called with {_shape_of(spec)}")
        for position, (leaf, slot) in enumerate(zip(leaves, self.inputs, strict=True)):
            _check_constant(position, leaf, slot)
        return [leaf for leaf, slot in zip(leaves, self.inputs, strict=True) if isinstance(slot, Flat)]

    def assemble(self, values: Sequence[torch.Tensor]) -> Any:
        """Build the module's return value from the outputs of the exported model.

        Raises:
            ValueError: the number of outputs differs from the module's.
        """
        wanted = sum(isinstance(slot, Flat) for slot in self.outputs)
        if wanted != len(values):
            raise ValueError(f"the module returns {wanted} values, the file {len(values)}")
        rest = iter(values)
        return pytree.tree_unflatten([_take_result(slot, rest) for slot in self.outputs], self.out_spec)


def by_example(
    args: tuple[Any, ...], kwargs: Mapping[str, Any], returned: Any, *, scalars: bool = False, returned_scalars: bool = False
) -> Calling:
    """Infer the convention from one call: each tensor is an input or output, in order. Python numbers are too with the given flags."""
    given, in_spec = pytree.tree_flatten((args, dict(kwargs)))
    results, out_spec = pytree.tree_flatten(returned)
    inputs, outputs = (
        tuple(_infer_leaf(leaf, numbers) for leaf in leaves) for leaves, numbers in ((given, scalars), (results, returned_scalars))
    )
    return Calling(inputs, in_spec, outputs, out_spec)


def _infer_leaf(leaf: Any, scalars: bool) -> Leaf:
    number = scalars and isinstance(leaf, (int, float, bool))
    return Flat(python=number) if number or isinstance(leaf, torch.Tensor) else Constant(leaf)


def by_signature(program: torch.export.ExportedProgram | RunProgram) -> Calling:
    """Return the convention that an `ExportedProgram` records in its graph signature."""
    from torch.export.graph_signature import InputKind, OutputKind

    signature = program.graph_signature
    given = [spec.arg for spec in signature.input_specs if spec.kind == InputKind.USER_INPUT]
    results = [spec.arg for spec in signature.output_specs if spec.kind == OutputKind.USER_OUTPUT]
    calls = program.call_spec
    return Calling(tuple(map(_to_leaf, given)), calls.in_spec, tuple(map(_to_leaf, results)), calls.out_spec)


def _to_leaf(argument: Any) -> Leaf:
    if hasattr(argument, "value"):
        return Constant(argument.value)
    return Flat(python=type(argument).__name__ != "TensorArgument")


def _take_result(slot: Leaf, values: Any) -> Any:
    if isinstance(slot, Constant):
        return slot.value
    return next(values).item() if slot.python else next(values)


def _check_constant(position: int, leaf: Any, slot: Leaf) -> None:
    if isinstance(slot, Constant) and isinstance(leaf, (int, float, bool, str)) and leaf != slot.value:
        raise ValueError(f"argument leaf {position} was exported as the constant {slot.value!r}, called with {leaf!r}")
    if isinstance(slot, Constant) and isinstance(leaf, torch.Tensor) != isinstance(slot.value, torch.Tensor):
        raise ValueError(f"argument leaf {position} was exported as the constant {slot.value!r}, called with a tensor")


def _ordered_like(in_spec: pytree.TreeSpec, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    order = in_spec.child(1).context or []
    return {key: kwargs[key] for key in order} if set(order) == set(kwargs) else dict(kwargs)


def _shape_of(spec: pytree.TreeSpec) -> str:
    return str(pytree.tree_unflatten(["*"] * spec.num_leaves, spec)).replace("'*'", "*")
