"""Small models that show whether the hooks into torch still fire. They run once in a process whose torch is untested.

A hook that torch no longer calls raises no error: the file would be wrong without notice. Each canary has a result that only its hook
brings about.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from .errors import FrozenDimension, ToOnnxError, UnsupportedTorch, Untranslated
from .translate.decompose import DECIDES, trace_decomposition


@dataclass(frozen=True)
class Canary:
    """A model, and what its export has to end in.

    Attributes:
        hook: what is replaced in torch, for the error.
        forward: the model.
        capture: how it is captured.
        refusal: the class of the error that the hook leads to; None if the export succeeds.
        words: a part of that error's message.
    """

    hook: str
    forward: Callable[[Tensor], Any]
    capture: str
    refusal: type[Exception] | None = None
    words: str = ""


class Model(nn.Module):
    """Calls a function."""

    def __init__(self, function: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self._function = function

    def forward(self, x: Tensor) -> Any:
        """Return the function of x."""
        return self._function(x)


BY_TEXT = 'lambda x: x * {"3": 1.0, "4": 2.0}.get(str(x.shape[0]), 5.0)'
_by_text = eval(compile(BY_TEXT, "canary.py", "eval"))  # text that this package makes is not refused, so it has another file


def _catch_errors(x: Tensor) -> Tensor:
    try:
        return x * 2 if x.sum() > 0 else x
    except Exception:  # noqa: BLE001 - that is what the hook finds
        return x * 3


def _scale_by_root(x: Tensor) -> Tensor:
    return x * math.sqrt(x.shape[0])


def _branch_on_number(x: Tensor) -> Tensor:
    return x * 2 if x.sum().item() > 1 else x * 3


def _loop_over_rows(x: Tensor) -> Tensor:
    state = x[0]
    for row in range(x.shape[0]):
        state = state * 0.5 + x[row]
    return state


def _differentiate(x: Tensor) -> Any:
    with torch.enable_grad():
        y = x.detach().requires_grad_()
        return torch.autograd.grad((y**2).sum(), y)[0]


def _scale_by_type(x: Tensor) -> Tensor:
    return x * (2 if isinstance(x.sum().item(), float) else 3)


def _map_rows(x: Tensor) -> Tensor:
    return torch.vmap(lambda row: row.cumsum(0) * row.max(), chunk_size=1)(x)


def _decide_by_size(x: Tensor) -> Tensor:
    return x * 2 if x.shape[0] < 5 else x * 3


CANARIES = (
    Canary("torch.SymInt.__repr__", _by_text, "run", ToOnnxError, "converted to text"),
    Canary("torch.SymInt.__repr__ in torch.export", _by_text, "torch.export", ToOnnxError, "converted to text"),
    Canary("the constructors of data-dependent errors", _catch_errors, "torch.export", ToOnnxError, "catches the error"),
    Canary("SymNode.guard_int", lambda x: torch.zeros(int(x.shape[0])).sum() + x, "torch.export", FrozenDimension, "constant 4"),
    Canary("functions of math", _scale_by_root, "run"),
    Canary("torch.Tensor.item", _branch_on_number, "run"),
    Canary("builtins.range", _loop_over_rows, "run"),
    Canary("torch.autograd._engine_run_backward", _differentiate, "run"),
    Canary("ShapeEnv.create_unbacked_symint", _scale_by_type, "torch.export", ToOnnxError, "the model reads a number from a tensor"),
    Canary("torch._functorch.apis.vmap_impl", _map_rows, "torch.export"),
    Canary("builtins.len", lambda x: torch.zeros(len(x)).sum() + x, "torch.export"),
    Canary("comparisons of torch.SymInt", lambda x: x.sum(0, keepdim=x.shape[0] > 3), "run", FrozenDimension, "only rows > 3"),
)


def check_hooks(export: Callable[..., Any]) -> None:
    """Export each canary with `to_onnx`.

    Raises:
        UnsupportedTorch: a hook does not fire.
    """
    silent = [canary.hook for canary in CANARIES if not _fires(canary, export)]
    silent += [] if _records_decisions() else ["ShapeEnv._log_guard"]
    if silent:
        raise UnsupportedTorch(
            f"torch {torch.__version__} does not call what to_onnx replaces in it: {'; '.join(silent)}. An exported model could be wrong. "
            "Install a version of torch that to_onnx is tested with."
        )


def _records_decisions() -> bool:
    """Return whether a decomposition that decides by a size is noticed."""
    program = torch.export.export(Model(torch.exp), (torch.ones(4, 3),), dynamic_shapes=({0: torch.export.Dim("rows", min=2, max=99)},))
    (node,) = (node for node in program.graph.nodes if node.op == "call_function")
    try:
        trace_decomposition(node, _decide_by_size)
    except Untranslated as error:
        return DECIDES in str(error)
    return False


def _fires(canary: Canary, export: Callable[..., Any]) -> bool:
    rows = torch.export.Dim("rows", min=2, max=99)
    try:
        export(Model(canary.forward), (torch.arange(12.0).reshape(4, 3) / 7,), dynamic_shapes=({0: rows},), capture=canary.capture)
    except Exception as error:  # noqa: BLE001 - without its hook, anything can happen
        return canary.refusal is not None and isinstance(error, canary.refusal) and canary.words in str(error)
    return canary.refusal is None
