"""Training and evaluation mode: a model in training mode is exported as `eval()`, with a warning, unless the caller keeps its mode."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from types import CodeType
from typing import TypeVar

import torch
from torch import nn

from .compat.modules import DropoutNd
from .copies import copy_sharing_parameters
from .errors import UnsupportedArgument

Model = TypeVar("Model", nn.Module, nn.Module | torch.export.ExportedProgram)
SAID = "the model was in training mode; exported as eval()"
OF_THEIR_CHILDREN = (nn.TransformerEncoder, nn.TransformerEncoderLayer)  # which read `training` only to choose a fast path
CONTAINERS = ("torch.fx", "torch._dynamo", "torch.jit", "torch.export")  # whose classes only pass the mode on
BY_DROPOUT = (nn.RNNBase, nn.MultiheadAttention)  # whose mode affects only their dropout


def is_in_training(model: object) -> bool:
    """Return whether any part of a model is in training mode and would behave differently in evaluation mode."""
    return isinstance(model, nn.Module) and any(module.training and _heeds_it(module) for module in model.modules())


def set_to_eval(model: nn.Module) -> nn.Module:
    """Return a copy of the model in evaluation mode; parameters are shared, not copied.

    Raises:
        UnsupportedArgument: the model cannot be copied.
    """
    try:
        return copy_sharing_parameters(model).eval()
    except Exception as error:
        raise UnsupportedArgument("the model is in training mode and cannot be copied: call model.eval() before the export") from error


def switch_to_eval(model: Model, instead: str) -> Model:
    """Return the model to export: a model in training mode is replaced by a copy in evaluation mode, with a warning.

    Args:
        instead: the argument that keeps training mode, for the warning.

    Raises:
        UnsupportedArgument: the model is in training mode and cannot be copied.
    """
    if not isinstance(model, nn.Module) or not is_in_training(model):
        return model
    warnings.warn(f"{SAID}: pass {instead} to keep training mode", stacklevel=3)
    return set_to_eval(model)


def _heeds_it(module: nn.Module) -> bool:
    if isinstance(module, OF_THEIR_CHILDREN):
        return False
    if isinstance(module, BY_DROPOUT):
        return bool(module.dropout)
    if isinstance(module, DropoutNd):
        return bool(module.p)
    return any(_asks(kind) for kind in type(module).__mro__ if kind not in nn.Module.__mro__ and not kind.__module__.startswith(CONTAINERS))


def _asks(kind: type) -> bool:
    """Return whether a class overrides `train`, or one of its functions reads `training`."""
    functions = [inspect.unwrap(value) for value in vars(kind).values() if inspect.isfunction(value)]
    return "train" in vars(kind) or any("training" in names for function in functions for names in _names(function.__code__))


def _names(code: CodeType) -> Iterator[tuple[object, ...]]:
    """Yield the names and constants of a function, and of the functions inside it."""
    yield code.co_names
    yield code.co_consts
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
