"""FlexAttention as the operators that its eager implementation consists of, where torch would keep one operator that takes functions."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

MODULE = "torch.nn.attention.flex_attention"


@contextmanager
def flex_attention_followed() -> Iterator[None]:
    """Have `flex_attention`, while it lasts, call torch's eager implementation without compiling it.

    Weights may require gradients, which it refuses on a CPU: a file computes none.
    """
    with ExitStack() as stack:
        if (module := sys.modules.get(MODULE)) is not None:  # a model that calls it has imported it
            for name, instead in _instead().items():
                if hasattr(module, name):  # not every torch that is supported has all of them
                    stack.enter_context(patch.object(module, name, instead))
        yield


def _instead() -> dict[str, Any]:
    from torch._higher_order_ops.flex_attention import math_attention

    return {
        "flex_attention_hop": math_attention,
        "setup_compilation_env": lambda: nullcontext("eager"),  # torch's own hides the calls from the tracer
        "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG": True,
        "_validate_device": lambda *tensors: None,
    }
