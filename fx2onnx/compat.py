"""Differences between versions of torch: the supported versions, and names that only some of them have."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, MutableMapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch._higher_order_ops import utils as hop_utils
from torch.utils import _pytree as pytree

from .errors import UnsupportedTorch
from .patches.registry import apply_patches, register_patch

OLDEST, NEWEST = (2, 10), (2, 14)
COMPILES_AND_CALLS = "_hop_compile_and_call"  # from torch 2.12 on; before, operators that take functions call torch.compile


def check_torch(installed: str = torch.__version__, stacklevel: int = 4) -> None:
    """Refuse a version of torch that is too old, and warn once if it is newer than the tested ones.

    Raises:
        UnsupportedTorch: it is too old.
    """
    version = _version(installed)
    if version < OLDEST:
        newer = f"pip install 'torch>={_format_version(OLDEST)}'"
        raise UnsupportedTorch(f"torch {installed} is too old for to_onnx, which supports {SUPPORTED}: run {newer}")
    if version > NEWEST and installed not in _WARNED:
        _WARNED.add(installed)
        text = f"to_onnx is tested with {SUPPORTED}, but torch {installed} is installed: compare the exported model with eager"
        warnings.warn(text, stacklevel=stacklevel)


def _version(installed: str) -> tuple[int, ...]:
    found = re.match(r"(\d+)\.(\d+)", installed)
    return tuple(map(int, found.groups())) if found else NEWEST


def _format_version(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


SUPPORTED = f"torch {_format_version(OLDEST)} to {_format_version(NEWEST)}"
_WARNED: set[str] = set()


class Operators:
    """The attributes of `torch.ops.aten` or of an operator; text, such as `aten.cholesky.default`, for those that this torch lacks.

    A node never has text as its target, so the translation of a missing operator is never used.
    """

    def __init__(self, torchs: Any, name: str) -> None:
        self._torchs, self._name = torchs, name

    def __getattr__(self, name: str) -> Any:
        found, path = getattr(self._torchs, name, None), f"{self._name}.{name}"
        if found is None and name.startswith("__"):  # Python or `table_of` looks for it
            raise AttributeError(name)
        return found if isinstance(found, torch._ops.OpOverload) else path if "." in self._name else Operators(found, path)


aten: Any = Operators(torch.ops.aten, "aten")


def children_of(spec: pytree.TreeSpec) -> Sequence[pytree.TreeSpec]:
    """Return the children of a tree spec."""
    return spec.children() if hasattr(spec, "children") else spec.children_specs


def sizes_known_to(environment: Any) -> MutableMapping[Any, Any]:
    """Return the mutable mapping of a `ShapeEnv` from input symbols to their example sizes."""
    return environment.backed_var_to_val if hasattr(environment, "backed_var_to_val") else environment.var_to_val  # until torch 2.10


def functions_called_by(call: Callable[..., Any]) -> AbstractContextManager[None]:
    """Make operators with function arguments pass these to `call(function, args, kwargs)` inside the context, not to torch.compile."""
    return apply_patches("functions_called" if hasattr(hop_utils, COMPILES_AND_CALLS) else "functions_compiled", call=call)


@register_patch(
    "functions_called",
    f"torch._higher_order_ops.utils.{COMPILES_AND_CALLS}",
    optional=True,
    reason="operators that take functions would compile them first, from torch 2.12 on",
)
def _call_instead(compile_and_call: Callable[..., Any], call: Callable[..., Any]) -> Callable[..., Any]:
    return call


@register_patch("functions_compiled", "torch.compile", reason="operators that take functions would compile them first, until torch 2.11")
def _instead_of(compile: Callable[..., Any], call: Callable[..., Any]) -> Callable[..., Any]:
    def compiled(model: Any = None, **options: Any) -> Any:
        if getattr(model, "__name__", "").endswith("_op_wrapper"):
            return lambda *args, **kwargs: call(model, args, kwargs)
        return compile(model, **options)

    return compiled


def signature_of_function(function: Any, domain: str, version: int) -> Any:
    """Return the signature of an onnxscript function."""
    from torch.onnx._internal.exporter import _schemas

    if hasattr(_schemas, "op_signature_from_function"):  # from torch 2.11 on
        return _schemas.op_signature_from_function(function, domain, function.name, since_version=version)
    return _schemas.OpSignature.from_function(function, domain, function.name)  # type: ignore[attr-defined]
