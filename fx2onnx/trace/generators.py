"""Refuse random numbers from a generator, because ONNX has no generators and torch.export drops them silently."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from ..errors import CaptureError
from ..guards.error_text import line_among
from ..patches.registry import register_context

OF_A_GENERATOR = "the model draws random numbers from a torch.Generator, which an exported model cannot use,"
INSTEAD_OF_A_GENERATOR = (
    "Remove the `generator` argument, and the exported model draws different numbers in each call. If it needs these numbers, draw them "
    "outside the model and pass them as an input, or store them in a buffer"
)
OF_A_SEED = "the model draws random numbers from a seed that it sets, which an exported model cannot reproduce,"


def refuse_generator(args: Iterable[Any], kwargs: Mapping[str, Any], seed: int) -> tuple[str, str] | None:
    """Return the reason and the advice for a call that draws from a generator or another seed; None for other calls."""
    if any(isinstance(given, torch.Generator) for given in (*args, *kwargs.values())):
        return OF_A_GENERATOR, INSTEAD_OF_A_GENERATOR
    return (OF_A_SEED, "") if torch.initial_seed() != seed else None


@register_context("generators", "every function that takes a generator", reason="torch.export drops the generator silently")
class NoGenerators(TorchFunctionMode):
    """Refuses calls with a generator, and drops `generator=None`, because torch does not accept dynamic sizes with it."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Make the call."""
        kwargs = kwargs or {}
        if isinstance(kwargs.get("generator"), torch.Generator):
            line = line_among(reversed(traceback.extract_stack()))
            raise CaptureError(f"{OF_A_GENERATOR} at {line}: {INSTEAD_OF_A_GENERATOR}.")
        return func(*args, **{name: value for name, value in kwargs.items() if name != "generator"})
