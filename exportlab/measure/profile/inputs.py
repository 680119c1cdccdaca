"""Prepare the inputs of a model: check the given arrays, or generate arrays from the declared shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy
import torch

from ...checks import kind_of

if TYPE_CHECKING:
    import onnxruntime

SEED = 0
FLOATS = {"float": torch.float32, "double": torch.float64, "float16": torch.float16, "bfloat16": torch.bfloat16}
WHOLE = {name: getattr(torch, name) for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool")}
NUMPY = {"float": "float32", "double": "float64"} | {name: name for name in ("float16", *WHOLE)}


class NoInputs(Exception):
    """The model can't run on the given inputs. The message is one line with the reason and a remedy."""


@dataclass(frozen=True)
class Declared:
    """An input of a model: its name, its type in ONNX Runtime's notation, and its axes, each a number, a name or None."""

    name: str
    type: str
    axes: tuple[int | str | None, ...]

    @property
    def kind(self) -> str:
        """The element type, or "" if the input is not a tensor."""
        return self.type.removeprefix("tensor(").removesuffix(")") if self.type.startswith("tensor(") else ""

    def __str__(self) -> str:
        return f"{self.name} is {self.type}, {list(self.axes)}"


def list_declared_inputs(session: onnxruntime.InferenceSession) -> list[Declared]:
    """Return the inputs that a model requires."""
    return [Declared(value.name, value.type, tuple(value.shape or ())) for value in session.get_inputs()]


def made_up(inputs: Sequence[Declared], sizes: Mapping[str, int]) -> dict[str, torch.Tensor]:
    """Generate inputs of the declared types and sizes: random floating-point values from a fixed seed, integers 1, and booleans True.

    Args:
        sizes: sizes of the named axes.

    Raises:
        NoInputs: a name in `sizes` is unknown, an axis has no size, or the values of a type can't be generated.
    """
    named = list(dict.fromkeys(axis for value in inputs for axis in value.axes if isinstance(axis, str)))
    if unknown := [name for name in sizes if name not in named]:
        raise NoInputs(f"no input has an axis named {unknown[0]!r}: {_axes_of(named)}")
    for value in inputs:
        if value.kind not in FLOATS and value.kind not in WHOLE:
            raise NoInputs(f"the input {value.name!r} is {value.type}, which cannot be generated: pass the inputs as a file (.npz)")
        if None in value.axes:
            raise NoInputs(f"the input {value.name!r} has an axis without a name, {list(value.axes)}: pass the inputs as a file (.npz)")
    if missing := [name for name in named if name not in sizes]:
        raise NoInputs(f"the file leaves {', '.join(missing)} open: pass sizes, as in {','.join(f'{name}=8' for name in missing)}")
    random = torch.Generator().manual_seed(SEED)
    return {value.name: _fill_tensor(value, [sizes.get(str(axis), axis) for axis in value.axes], random) for value in inputs}


def _axes_of(named: Sequence[str]) -> str:
    return f"the named axes are {', '.join(named)}" if named else "all sizes are fixed in the file"


def _fill_tensor(value: Declared, shape: list[Any], random: torch.Generator) -> torch.Tensor:
    if value.kind in FLOATS:
        return torch.randn(shape, generator=random).to(FLOATS[value.kind])
    return torch.ones(shape, dtype=WHOLE[value.kind])


def check_inputs(inputs: Sequence[Declared], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given values as arrays or tensors of the declared types.

    Raises:
        NoInputs: an input is missing or unknown, or its type or shape differs from the declaration.
    """
    names = [value.name for value in inputs]
    if missing := [name for name in names if name not in given]:
        raise NoInputs(f"the input {missing[0]!r} is missing: the inputs of the model are {', '.join(names)}")
    if unknown := [name for name in given if name not in names]:
        raise NoInputs(f"the model does not have an input {unknown[0]!r}: its inputs are {', '.join(names) or 'none'}")
    return {value.name: _fitting(value, given[value.name]) for value in inputs}


def _fitting(value: Declared, given: Any) -> Any:
    if isinstance(given, torch.Tensor):
        given = given.detach().cpu()
        found = given if given.dtype == torch.bfloat16 else given.numpy()
    else:
        found = numpy.asarray(given)
    fits = len(found.shape) == len(value.axes) and all(
        not isinstance(axis, int) or axis == size for axis, size in zip(value.axes, found.shape, strict=True)
    )
    kind = str(found.dtype).removeprefix("torch.")
    if not fits or NUMPY.get(value.kind, value.kind) != kind:
        raise NoInputs(f"the input {value}, but the given value is {kind}, {list(found.shape)} ({kind_of(given)})")
    return found


def ort_value(value: Any) -> onnxruntime.OrtValue:
    """Convert an array or a tensor to an OrtValue."""
    import onnxruntime

    if isinstance(value, torch.Tensor) and value.dtype == torch.bfloat16:  # numpy doesn't have bfloat16
        return onnxruntime.OrtValue.from_dlpack(value.contiguous())
    return onnxruntime.OrtValue.ortvalue_from_numpy(value.numpy() if isinstance(value, torch.Tensor) else value)
