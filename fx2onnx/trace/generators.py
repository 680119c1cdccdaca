"""Random numbers from a generator that the model is given or makes: no file has one, so torch.export must not leave it out."""

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
    """Return what is said of a call that draws from a generator, or from another seed than this, and what to do; None for other calls."""
    if any(isinstance(given, torch.Generator) for given in (*args, *kwargs.values())):
        return OF_A_GENERATOR, INSTEAD_OF_A_GENERATOR
    return (OF_A_SEED, "") if torch.initial_seed() != seed else None


@register_context("generators", "every function that takes a generator", reason="torch.export leaves the generator out without a word")
class NoGenerators(TorchFunctionMode):
    """While it lasts, a call that is given a generator is refused; `generator=None`, with which torch takes no moving size, is left out."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Make the call."""
        kwargs = kwargs or {}
        if isinstance(kwargs.get("generator"), torch.Generator):
            line = line_among(reversed(traceback.extract_stack()))
            raise CaptureError(f"{OF_A_GENERATOR} at {line}: {INSTEAD_OF_A_GENERATOR}.")
        return func(*args, **{name: value for name, value in kwargs.items() if name != "generator"})
