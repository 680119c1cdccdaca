"""Convert other declarations of dynamic dimensions to `dynamic_shapes`: `dynamic_axes`, `ShapesCollection` and `AdditionalInputs`."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.export import AdditionalInputs, Dim, ShapesCollection

from ..caches import caches_known
from ..compat import trees as pytree
from ..errors import CaptureError, UnsupportedArgument, format_value
from ..structure.capture_result import separate_shared_inputs


def asked_shapes(
    model: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    dynamic_shapes: Any,
    dynamic_axes: Mapping[str, Any] | None,
    names: tuple[Sequence[str], Sequence[str]],
) -> Any:
    """Return the declared dimensions as a tree like the arguments. `dynamic_shapes` has precedence, as in torch.onnx.export.

    Args:
        names: the input names and the output names of the exported model.

    Raises:
        UnsupportedArgument, CaptureError: As `convert_dynamic_axes` and `resolve_shapes_collection`.
    """
    if dynamic_axes and dynamic_shapes is None:
        return convert_dynamic_axes(model, args, kwargs, dynamic_axes, *names)
    with caches_known():
        return group_var_keywords(model, kwargs, resolve_shapes_collection(model, args, kwargs, dynamic_shapes), names[0])


def resolve_shapes_collection(model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], dynamic_shapes: Any) -> Any:
    """Return the tree of a `ShapesCollection` or `AdditionalInputs` for these arguments; anything else unchanged.

    Raises:
        CaptureError: If it has a tensor that is not an argument, an example that does not match, or if `forward` rejects the arguments.
    """
    if not isinstance(dynamic_shapes, (ShapesCollection, AdditionalInputs)):
        return dynamic_shapes
    try:
        return dynamic_shapes.dynamic_shapes(model, args, dict(kwargs))  # type: ignore[no-untyped-call]
    except (TypeError, ValueError) as error:
        raise CaptureError(f"dynamic_shapes, a {type(dynamic_shapes).__name__}, does not match the arguments: {error}") from error


def group_var_keywords(model: Any, kwargs: Mapping[str, Any], dynamic_shapes: Any, input_names: Sequence[str]) -> Any:
    """Return the tree with the entries of `**kwargs` under the name of that parameter, even if they were given separately.

    Raises:
        CaptureError: If it contains names from `input_names`.
    """
    if not isinstance(dynamic_shapes, Mapping) or not isinstance(model, nn.Module):
        return dynamic_shapes
    parameters = inspect.signature(model.forward).parameters
    collecting = next((name for name, one in parameters.items() if one.kind is one.VAR_KEYWORD), None)
    collected = [name for name in kwargs if name not in parameters] if collecting is not None else []
    if renamed := [name for name in dynamic_shapes if name in input_names and name not in parameters and name not in collected]:
        raise CaptureError(
            f"dynamic_shapes uses {', '.join(renamed)} from input_names. Use the argument names of forward instead: {', '.join(parameters)}"
        )
    if collecting is None or collecting in dynamic_shapes or not any(name in dynamic_shapes for name in collected):
        return dynamic_shapes
    others = {name: declared for name, declared in dynamic_shapes.items() if name not in collected}
    return {**others, collecting: {name: dynamic_shapes.get(name) for name in collected}}


def convert_dynamic_axes(
    model: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    dynamic_axes: Mapping[str, Any],
    input_names: Sequence[str],
    output_names: Sequence[str],
) -> dict[str, Any]:
    """Return `dynamic_axes` as `dynamic_shapes`. Axes of outputs are ignored, because they follow from the inputs.

    Raises:
        UnsupportedArgument: If the model is already captured, a name is not an input or output, or an argument is of a class whose tree
            needs `dynamic_shapes`.
    """
    from ..compat.exporting import combine_args

    if not isinstance(model, nn.Module):
        raise UnsupportedArgument(
            "dynamic_axes cannot change a captured program: pass dynamic_shapes to torch.export.export when you capture it"
        )
    if not isinstance(dynamic_axes, Mapping):
        raise UnsupportedArgument(f"dynamic_axes={format_value(dynamic_axes)}: pass a dict from input names to axes, or use dynamic_shapes")
    args, kwargs = separate_shared_inputs(args, dict(kwargs))
    tensors = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    names = {id(tensor): name for tensor, name in zip(tensors, input_names, strict=False)}
    found: dict[str, Any] = {}

    def look(value: Any, path: tuple[str, ...]) -> Any:
        if isinstance(value, torch.Tensor):
            name = names.get(id(value), "_".join(path))
            found[name] = _axes(name, dynamic_axes.get(name))
            return found[name]
        if isinstance(value, dict):
            return {key: look(inside, (*path, str(key))) for key, inside in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)([look(inside, (*path, str(place))) for place, inside in enumerate(value)])
        return _nothing(value, path)

    shapes = {name: look(value, (name,)) for name, value in combine_args(model, args, kwargs).items()}
    if unknown := [name for name in dynamic_axes if name not in found and name not in output_names]:
        raise UnsupportedArgument(
            f"dynamic_axes names {', '.join(unknown)}, but the inputs are {', '.join(found)}: pass input_names, or use dynamic_shapes"
        )
    return shapes


def _axes(name: str, declared: Any) -> dict[int, Any] | None:
    """The dynamic axes of one input: a dict of names, or a list."""
    axes = declared if isinstance(declared, Mapping) else dict.fromkeys(declared or (), Dim.DYNAMIC)
    if not all(isinstance(axis, int) for axis in axes):
        raise UnsupportedArgument(f"dynamic_axes[{name!r}] = {declared!r}: pass a dict {{axis: name}} or a list of axes")
    return dict(axes) or None


def _nothing(value: Any, path: tuple[str, ...]) -> None:
    if any(isinstance(leaf, torch.Tensor) for leaf in pytree.tree_leaves(value)):
        raise UnsupportedArgument(
            f"dynamic_axes cannot name the tensors inside {'.'.join(path)}, a {type(value).__name__}: use dynamic_shapes instead"
        )
