"""Torchlib's translations, which are onnxscript functions: which of them are used, and checks of their results."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import onnx_ir as ir
import torch

from ..compat.operators import OpOverload
from ..errors import Untranslated
from ..ir.dtypes import FLOATS, onnx_dtype
from ..ir.graph import Graph, Tensor
from ..ir.translation import Translation
from . import schema_nodes
from .custom import translate_with_onnxscript
from .dispatch import Source, functional_variant
from .logs import logged_from
from .packages import needed_package

if TYPE_CHECKING:
    from ..compat.onnxscript_signatures import ONNXRegistry

NAMESPACES = ("aten", "prims", "quantized_decomposed", "torchvision", "onnx_symbolic")  # torchlib has no translations of other namespaces
WRONG_IN_TORCHLIB = {
    "one element, where torch gives NaN": ("prims::var",),
    "no elements to multiply: ONNX Runtime's Gemm then ignores beta": ("aten::addmm",),
    "steps of fractions": ("aten::arange", "aten::arange.start", "aten::arange.start_step", "aten::linspace"),
    "numbers and intermediate results in float64": (
        "aten::full", "aten::full_like", "aten::new_full", "aten::fill.Scalar", "aten::softmax.int", "aten::log_softmax.int",
        "aten::special_softmax", "aten::special_log_softmax",
    ),
    "intermediate values that overflow": ("aten::log_sigmoid", "aten::special_erfcx", "aten::logcumsumexp"),
    "an option that is ignored": (
        "aten::as_strided", "aten::avg_pool2d", "aten::avg_pool3d", "aten::native_batch_norm", "aten::_native_batch_norm_legit",
        "aten::_native_batch_norm_legit_functional", "aten::scatter_reduce.two",
        "aten::_upsample_bilinear2d_aa", "aten::_upsample_bicubic2d_aa",
    ),
    "no axes": ("aten::nonzero", "aten::topk", "aten::linalg_vector_norm"),
    "states of two sizes, which ONNX Runtime refuses": ("aten::lstm.input",),
    "the sign of zero": ("aten::atan2", "aten::signbit", "aten::copysign.Tensor"),
    "crashes": (
        "aten::embedding_bag", "aten::embedding_bag.padding_idx", "aten::_embedding_bag", "aten::_embedding_bag_forward_only",
    ),
}  # fmt: skip
REFUSED = frozenset(name for names in WRONG_IN_TORCHLIB.values() for name in names)


@cache
def _registry(opset: int) -> ONNXRegistry:
    with needed_package("onnxscript", "the fallback to torchlib"):
        import onnxscript  # noqa: F401 - so that a MissingPackage names it

        from ..compat.onnxscript_signatures import ONNXRegistry
    with logged_from(logging.ERROR, ONNXRegistry.__module__):  # it warns that torchvision is missing
        return ONNXRegistry.from_torchlib(opset)


def torchlib_source(opset: int) -> Source:
    """Return torchlib as a source of translations, built at the first operator that needs it.

    In-place operators use the translations of their out-of-place variants.

    The source raises:
        MissingPackage: onnxscript, which torchlib needs, is not installed.
    """

    def source(node: torch.fx.Node) -> Translation | None:
        target = functional_variant(node.target) or node.target
        if not isinstance(target, OpOverload) or target.name() in REFUSED:
            return None
        if target.namespace == "onnx":
            return partial(_onnx_operator, target.name())
        if target.namespace not in NAMESPACES:
            return None
        found = [meta for meta in _registry(opset).get_decomps(target) if not meta.is_complex]
        return partial(_translate_checked, translate_with_onnxscript(found[0].onnx_function)) if found else None

    return source


def _translate_checked(translation: Translation, g: Graph, *args: Any, **kwargs: Any) -> Any:
    """Return torchlib's results, or refuse if their dtype differs from torch's: torchlib expects promoted types."""
    made = translation(g, *args, **kwargs)
    if any(isinstance(argument, Tensor) and argument.known_sizes == () for argument in args):
        made = _drop_extra_axes(g, made)
    for value, fake in zip(_to_list(made), _to_list(g.at.meta["val"]), strict=True):
        if not isinstance(fake, torch.Tensor):
            continue
        wanted = onnx_dtype(fake.dtype)
        if value.dtype != wanted and (wanted in FLOATS or value.dtype == ir.DataType.BOOL):
            raise Untranslated(f"torchlib computes it in {value.dtype.name}, but torch computes it in {wanted.name}")
    return made


def _drop_extra_axes(g: Graph, made: Any) -> Any:
    """Return the results without the extra axis of torchlib's constants, for results that have no axes."""
    fakes = _to_list(g.at.meta["val"])
    bare = [g.scalar(v, v.dtype) if isinstance(f, torch.Tensor) and f.dim() == 0 else v for v, f in zip(_to_list(made), fakes, strict=True)]
    return bare if isinstance(made, (list, tuple)) else bare[0]


def _onnx_operator(name: str, g: Graph, *inputs: Any, **attributes: Any) -> Any:
    """`torch.ops.onnx.RotaryEmbedding.opset23` → the ONNX operator of that name."""
    outputs = len(g.result()) if isinstance(g.at.meta["val"], (tuple, list)) else 1
    made = schema_nodes.node(g, "", name.removeprefix("onnx::").partition(".")[0], list(inputs), attributes, outputs)
    return made[0] if outputs == 1 else made


def _to_list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else [value]
