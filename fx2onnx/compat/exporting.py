"""What torch.export uses to bind arguments, and graph modules that compile late."""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch
import torch._export.non_strict_utils
import torch._functorch.apis
import torch.export._trace
import torch.fx.experimental._config as experimental_config
from torch import _check as check_condition
from torch import _check_tensor_all as check_all_values
from torch._export.utils import _bind_signature_to_inputs as bind_signature_to_inputs
from torch._export.utils import _compiling_state_context as compiling_state_context
from torch.export.dynamic_shapes import _combine_args as combine_args
from torch.export.dynamic_shapes import _tree_map_with_path as tree_map_with_path
from torch.fx._lazy_graph_module import _LazyGraphModule as LazyGraphModule

__all__ = [
    "LazyGraphModule", "backed_size_oblivious", "bind_signature_to_inputs", "check_all_values", "check_condition", "combine_args",
    "compiling_state_context", "forget_static_exports", "tree_map_with_path",
]  # fmt: skip


def backed_size_oblivious() -> AbstractContextManager[None]:
    """Return a context in which torch does not treat axes whose example has size 1 as constant."""
    found: AbstractContextManager[None] = experimental_config.patch(backed_size_oblivious=True)  # type: ignore[attr-defined]  # a ConfigModule
    return found


def forget_static_exports() -> None:
    """Forget the code that torch.export compiled earlier in this process."""
    torch._dynamo.reset()
