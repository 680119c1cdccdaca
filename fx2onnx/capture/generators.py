"""Random numbers from a generator that the model is given or makes: no file has one, so torch.export must not leave it out."""

from __future__ import annotations

import traceback
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from ..errors import CaptureError
from .raised import line_among

OF_A_GENERATOR = "random numbers are drawn from a torch.Generator, which no file has,"
INSTEAD_OF_A_GENERATOR = (
    "Leave `generator` out, and the file draws numbers of its own in each call. Where the numbers matter, draw them outside of the model "
    "and pass the tensor as an input, or keep it as a buffer"
)


class NoGenerators(TorchFunctionMode):
    """While it lasts, a call that is given a generator is refused."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Make the call."""
        kwargs = kwargs or {}
        if isinstance(kwargs.get("generator"), torch.Generator):
            line = line_among(reversed(traceback.extract_stack()))
            raise CaptureError(f"{OF_A_GENERATOR} at {line}: {INSTEAD_OF_A_GENERATOR}.")
        return func(*args, **kwargs)
