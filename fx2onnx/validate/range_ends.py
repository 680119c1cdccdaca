"""The ends that were given for moving sizes: a model is run there, and where it raises no file can keep what was asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import sympy
import torch
from torch import nn

from ..errors import ToOnnxError, first_sentence
from ..guards.dims import DynamicDim, has_end, promise
from ..guards.dynamic_shapes import quote_names
from ..trace.compute_budget import MAX_FLOPS, runs_of
from ..trace.refusal import NeedsRealValues, RangeBoundRaises
from ..trace.run import trace
from ..trace.size_domain import MAX_TRACED_SIZE_WITH_VALUES, SizeAssignment, SizeDomain

Arguments = tuple[tuple[Any, ...], dict[str, Any]]
OF_FAKE_TENSORS = torch._subclasses.fake_tensor.__name__


def ends_kept(
    model: nn.Module, axes: SizeDomain, arguments: Arguments, asked: Sequence[DynamicDim], accepted: Sequence[str]
) -> tuple[str, ...]:
    """Return what the ends promise that `dynamic_shapes` gives, one line for each axis, and which of them the model does not keep.

    Raises:
        RangeBoundRaises: the model raises at an end, and the axis is not in `accepted`.
    """
    lines: dict[str, str] = {}
    for dim in asked:
        if dim.name in lines or not has_end(dim):
            continue
        symbol = axes.sizes[dim.tensor, dim.axis]
        told = [text for size in _ends(dim) if (text := _describe_failure(model, axes, arguments, symbol, size))]
        if told and dim.name not in accepted:
            raise RangeBoundRaises(
                f"{promise(dim)}, but the model {' and '.join(told)}. Correct the range of the Dim, "
                f"or accept the restriction with accept_ranges={quote_names([dim.name])}."
            )
        lines[dim.name] = f"{promise(dim)}{''.join(f', and the model {text}' for text in told)}; the exported model does not check this"
    return tuple(lines.values())


def _ends(dim: DynamicDim) -> Iterator[int]:
    """The ends that can be run: of a longer one nobody can say what it costs."""
    if dim.least > 0:
        yield dim.least
    if isinstance(dim.most, int) and dim.most <= MAX_TRACED_SIZE_WITH_VALUES:
        yield dim.most


def _describe_failure(model: nn.Module, axes: SizeDomain, arguments: Arguments, symbol: sympy.Expr, size: int) -> str:
    """What the model raises where this size has this end, the others as in the example; empty where it answers, or runs do not tell."""
    if symbol not in axes.example:
        return ""
    setting = {**axes.example, symbol: size}
    for products in (MAX_FLOPS, None):
        try:
            with runs_of(products):
                _run(model, axes, arguments, setting)
        except NeedsRealValues:
            continue
        except ToOnnxError:
            return ""
        except Exception as error:  # noqa: BLE001 - whatever the model raises is told
            is_torchs = type(error).__module__ == OF_FAKE_TENSORS
            return "" if is_torchs else f"raises {type(error).__name__} at {size}: {first_sentence(error)}"
        return ""
    return ""


def _run(model: nn.Module, axes: SizeDomain, arguments: Arguments, setting: SizeAssignment) -> None:
    trace(model, axes.at(arguments, setting))
