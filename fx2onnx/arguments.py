"""Checks of the arguments of `to_onnx`: unsupported values of `torch.onnx.export` raise an error with an alternative."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from .compat import trees as pytree
from .compat.dispatch import is_fake_mode_active
from .errors import UnsupportedArgument, format_value
from .files import check_replaceable

TrainingMode, Operators = torch.onnx.TrainingMode, torch.onnx.OperatorExportTypes
Call = tuple[tuple[Any, ...], dict[str, Any]]

ONLY: dict[str, tuple[tuple[Any, ...], str]] = {
    "dynamo": ((True,), "to_onnx does not contain the legacy exporter: call torch.onnx.export(…, dynamo=False)"),
    "training": (
        (TrainingMode.EVAL, TrainingMode.PRESERVE),
        "pass TrainingMode.EVAL or PRESERVE; TRAINING needs a model in training mode, so call model.train() first",
    ),
    "operator_export_type": ((Operators.ONNX,), "only ONNX is supported: translate custom operators with custom_translation_table"),
    "do_constant_folding": ((True,), "pass optimize=False, which disables most constant folding"),
    "custom_opsets": ((None, {}), "the functions in custom_translation_table determine the opset of a domain"),
    "autograd_inlining": (
        (True,),
        "torch.export always inlines autograd functions: turn the function into an operator with torch.library.custom_op, and translate "
        "that with custom_translation_table",
    ),
}
"""The arguments that support only some values: those values, and what to do instead of using another."""
FLAG = (True, False, None, 1, 0), "pass True or False"
"""The same for all other arguments of `check_only`."""


def check_only(model: Any, **given: Any) -> None:
    """Refuse unsupported values of the arguments in `ONLY`, and other arguments that are not flags.

    Raises:
        UnsupportedArgument: an argument has an unsupported value.
    """
    for name, value in given.items():
        accepted, instead = ONLY.get(name, FLAG)
        if not any(isinstance(value, type(one)) and value == one for one in accepted) and not _is_so_anyway(model, name, value):
            raise UnsupportedArgument(f"{name}={format_value(value)}: {instead}")


def _is_so_anyway(model: Any, name: str, value: Any) -> bool:
    if name == "dynamo":  # torch.onnx.export ignores dynamo if the model is already captured
        return isinstance(model, torch.export.ExportedProgram)
    return (
        name == "training"
        and isinstance(value, TrainingMode)
        and value == TrainingMode.TRAINING
        and isinstance(model, nn.Module)
        and getattr(model, "training", False)
    )


def check_surroundings() -> None:
    """Refuse a call inside `torch.autocast`, whose casts torch.export does not record, or inside a `FakeTensorMode`.

    Raises:
        UnsupportedArgument: one of them is active.
    """
    if is_fake_mode_active():
        raise UnsupportedArgument("to_onnx is called inside a FakeTensorMode, where tensors have no values: call it outside this mode")
    if torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda"):
        text = "to_onnx is called inside torch.autocast, which would be lost: move the with-statement into forward, or export outside it"
        raise UnsupportedArgument(text)


def check_weights(model: Any) -> None:
    """Refuse a module whose weights have no values.

    Raises:
        UnsupportedArgument: weights are on the device `meta`.
    """
    weights = [*model.named_parameters(), *model.named_buffers()] if isinstance(model, nn.Module) else []
    if empty := [name for name, weight in weights if weight.is_meta]:
        raise UnsupportedArgument(f"{', '.join(empty)}: weights on the meta device have no values: load them before the export")


def names_of(input_names: Any, output_names: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of inputs and outputs, which are empty if not given.

    Raises:
        UnsupportedArgument: an argument is not a list of names, or a name is empty.
    """
    for what, names in (("input_names", input_names), ("output_names", output_names)):
        named = isinstance(names, Sequence) and not isinstance(names, str) and all(isinstance(name, str) and name for name in names)
        if names is not None and not named:
            raise UnsupportedArgument(f'{what}={format_value(names)}: pass a list of names that are not empty, such as ["x", "y"]')
    return tuple(input_names or ()), tuple(output_names or ())


def check_file(f: Any, *, export_params: bool, keep_initializers_as_inputs: bool, external_data: bool | None) -> None:
    """Refuse an `f` that is not a path or cannot be written, and options for saving without an `f`.

    Raises:
        UnsupportedArgument: `f` is not a path, or an option needs one.
        OSError: the file cannot be written. This is checked before the export.
    """
    check_only(None, export_params=export_params, keep_initializers_as_inputs=keep_initializers_as_inputs)
    if isinstance(f, Mapping):
        raise UnsupportedArgument("f is a mapping, but the third argument is the path to save to: pass keyword arguments with kwargs=")
    if f is not None and not isinstance(f, (str, os.PathLike)):
        raise UnsupportedArgument(f"f is a {type(f).__name__}, not a path: omit f, and write program.model_proto.SerializeToString()")
    if f is not None:
        check_replaceable(f, beside=bool(external_data) and export_params)
    if f is None and not export_params:
        raise UnsupportedArgument("export_params=False needs a file: pass f, or call program.save(path, include_initializers=False)")
    if f is None and keep_initializers_as_inputs:
        raise UnsupportedArgument(
            "keep_initializers_as_inputs=True needs a file: pass f, or call program.save(path, keep_initializers_as_inputs=True)"
        )


def call_of(model: Any, args: Any, kwargs: Mapping[str, Any] | None) -> Call:
    """Return the arguments of the call to export: a single tensor becomes a tuple, and a dict at the end stays positional.

    `torch.onnx.export` uses a dict at the end as keyword arguments. This function does so only if `forward` accepts it no other way.

    Raises:
        UnsupportedArgument: args is not a tuple, kwargs not a mapping of names, or `forward` accepts its last dict either way.
    """
    args = (args,) if isinstance(args, torch.Tensor) else args
    if not isinstance(args, tuple):
        raise UnsupportedArgument(f"args must be a tuple of positional arguments, not a {type(args).__name__}: write (x,) for one argument")
    if kwargs is not None and not (isinstance(kwargs, Mapping) and all(isinstance(name, str) for name in kwargs)):
        raise UnsupportedArgument(f"kwargs={format_value(kwargs)}: pass a dict from argument names to values")
    check_ends(args, kwargs)
    if kwargs or not args or not isinstance(args[-1], dict) or not isinstance(model, nn.Module):
        return args, dict(kwargs or {})
    *before, last = args
    signature = inspect.signature(model.forward)
    if not _binds(signature, before, last):
        return args, {}
    if not _binds(signature, args, {}):
        return tuple(before), last
    if last and set(last) <= set(signature.parameters):
        raise UnsupportedArgument(
            f"args ends in a dict whose keys are parameters of forward ({', '.join(last)}): if it contains keyword arguments, as for "
            "torch.onnx.export, pass it as kwargs; if it is one argument, pass it by name, kwargs={name: {…}}"
        )
    return args, {}


def check_ends(*given: Any) -> None:
    """Refuse arguments that are nested too deeply, or contain themselves.

    Raises:
        UnsupportedArgument: an argument is.
    """
    try:
        pytree.tree_leaves(given)
    except RecursionError:
        raise UnsupportedArgument("args, kwargs or dynamic_shapes are nested too deeply, or contain themselves") from None


def check_fed(given: Sequence[Any], inputs: Sequence[str]) -> None:
    """Refuse arguments that an exported model does not accept.

    Raises:
        UnsupportedArgument: an argument is neither a dense tensor nor a number, or there are more tensors than inputs. Further numbers
            may be constants of the model.
    """
    if any(isinstance(value, torch.Tensor) for value in given[len(inputs) :]):
        raise UnsupportedArgument(
            f"the exported model has {len(inputs)} inputs ({', '.join(inputs)}), but the call has {len(given)} arguments"
        )
    for name, value in zip(inputs, given, strict=False):
        if not isinstance(value, (torch.Tensor, int, float)):
            raise UnsupportedArgument(f"{name} is a {type(value).__name__}: the exported model accepts only tensors and numbers")
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise UnsupportedArgument(f"{name} does not fit into 64 bits")
        if isinstance(value, torch.Tensor) and (value.is_meta or value.layout != torch.strided):
            raise UnsupportedArgument(f"{name} is a {value.layout} tensor on the device {value.device}: pass a dense tensor with values")


def check_state(state_dict: Any) -> None:
    """Refuse weights that are not a mapping from names to dense tensors.

    Raises:
        UnsupportedArgument: they are not.
    """
    if not isinstance(state_dict, Mapping) or not all(isinstance(value, torch.Tensor) for value in state_dict.values()):
        raise UnsupportedArgument(
            f"state_dict={format_value(state_dict)}: pass a dict from names to tensors, as model.state_dict() returns it"
        )
    if empty := [name for name, value in state_dict.items() if value.is_meta or value.layout != torch.strided]:
        raise UnsupportedArgument(f"{', '.join(map(str, empty))}: pass dense tensors with values, not on the meta device")


def _binds(signature: inspect.Signature, args: Any, kwargs: Mapping[Any, Any]) -> bool:
    try:
        signature.bind(*args, **kwargs)
    except TypeError:  # the arguments do not match, or a key is not a string
        return False
    return True
