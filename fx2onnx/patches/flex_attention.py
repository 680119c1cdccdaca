"""FlexAttention as the operators of its eager implementation, not as one higher-order operator."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from typing import Any

from .registry import register_patch

MODULE = "torch.nn.attention.flex_attention"


_register = partial(register_patch, "flex_attention", optional=True)  # a model that calls it has imported it; not every torch has all names


@_register(
    f"{MODULE}.flex_attention_hop", reason="torch would capture one higher-order operator; its eager implementation is traced instead"
)
def _call_eager(original: Any) -> Any:
    from ..compat.flex_attention import math_attention

    return math_attention


@_register(f"{MODULE}.setup_compilation_env", reason="torch would compile it, which hides the calls from the tracer")
def _set_up_nothing(original: Any) -> Any:
    return lambda: nullcontext("eager")


@_register(f"{MODULE}._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", reason="torch would warn that it is not compiled")
def _disable_compilation(original: bool) -> bool:
    return True


@_register(
    f"{MODULE}._validate_device", reason="torch refuses weights that require gradients on a CPU; an exported model computes no gradients"
)
def _accept_any_device(original: Any) -> Any:
    return lambda *tensors: None
