"""Record where a model computes gradients, and refuse those that would change the gradients of its parameters."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch.autograd  # noqa: F401 - it is patched
from torch import nn

from ..errors import CaptureError
from ..guards.error_text import line_among
from ..patches.registry import apply_patches, register_patch

INPUTS = 4  # the position of the tensors to differentiate


@contextmanager
def explain_gradients(model: nn.Module) -> Iterator[list[str]]:
    """Record the lines that compute gradients.

    Raises:
        CaptureError: If the model calls `backward`, which would leave gradients in its parameters.
    """
    lines: list[str] = []
    with apply_patches("gradients", lines=lines, has_gradients=any(parameter.requires_grad for parameter in model.parameters())):
        yield lines


@register_patch(
    "gradients", "torch.autograd._engine_run_backward", reason="backward() would add to the gradients of the parameters of the model"
)
def _recording(engine: Callable[..., Any], lines: list[str], has_gradients: bool) -> Callable[..., Any]:
    def recorded(*args: Any, accumulate_grad: bool, **kwargs: Any) -> Any:
        lines.append(line_among(reversed(traceback.extract_stack())))
        if accumulate_grad and has_gradients and not args[INPUTS]:
            raise CaptureError(
                f"backward() adds gradients to the parameters of the model at {lines[-1]}, which an exported model cannot do. "
                "Compute the gradients that you need with torch.autograd.grad(result, x)"
            )
        return engine(*args, accumulate_grad=accumulate_grad, **kwargs)

    return recorded
