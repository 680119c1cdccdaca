"""What torch.export uses to bind arguments, graph modules that compile late, and errors of torch's exporters."""

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
    "compiling_state_context", "forget_static_exports", "has_cpp_compiler", "is_capture_error", "tree_map_with_path",
]  # fmt: skip


def backed_size_oblivious() -> AbstractContextManager[None]:
    """Return a context in which torch does not treat axes whose example has size 1 as constant."""
    found: AbstractContextManager[None] = experimental_config.patch(backed_size_oblivious=True)  # type: ignore[attr-defined]  # a ConfigModule
    return found


def forget_static_exports() -> None:
    """Forget the code that torch.export compiled earlier in this process."""
    torch._dynamo.reset()


def is_capture_error(error: Exception) -> bool:
    """Return whether `torch.onnx.export` failed with this error because torch.export did."""
    from torch.onnx._internal.exporter._errors import TorchExportError  # slow: imports onnxscript

    return isinstance(error, TorchExportError)


def has_cpp_compiler() -> bool:
    """Return whether AOTInductor finds a C++ compiler."""
    from torch._inductor.cpp_builder import get_cpp_compiler
    from torch._inductor.exc import InvalidCxxCompiler

    try:
        get_cpp_compiler()
    except InvalidCxxCompiler:
        return False
    return True
