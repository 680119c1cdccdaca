"""Run the model at the bounds of the declared ranges. If it raises there, the declared range cannot be exported."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import sympy
from torch import nn

from ..errors import ToOnnxError, first_sentence
from ..guards.dims import DynamicDim, has_end, promise
from ..guards.dynamic_shapes import quote_names
from ..trace.compute_budget import MAX_FLOPS, runs_of
from ..trace.refusal import NeedsRealValues, RangeBoundRaises
from ..trace.run import trace
from ..trace.size_domain import MAX_TRACED_SIZE_WITH_VALUES, SizeAssignment, SizeDomain

Arguments = tuple[tuple[Any, ...], dict[str, Any]]
OF_FAKE_TENSORS = "torch._subclasses.fake_tensor"


def ends_kept(
    model: nn.Module, axes: SizeDomain, arguments: Arguments, dims: Sequence[DynamicDim], accepted: Sequence[str]
) -> tuple[str, ...]:
    """Return one line for each declared range, with the bounds at which the model raises.

    Raises:
        RangeBoundRaises: If the model raises at a bound of an axis that is not in `accepted`.
    """
    lines: dict[str, str] = {}
    for dim in dims:
        if dim.name in lines or not has_end(dim):
            continue
        symbol = axes.sizes[dim.tensor, dim.axis]
        failures = [text for size in _ends(dim) if (text := _describe_failure(model, axes, arguments, symbol, size))]
        if failures and dim.name not in accepted:
            raise RangeBoundRaises(
                f"{promise(dim)}, but the model {' and '.join(failures)}. Correct the range of the Dim, "
                f"or accept the restriction with accept_ranges={quote_names([dim.name])}."
            )
        lines[dim.name] = f"{promise(dim)}{''.join(f', and the model {text}' for text in failures)}; the exported model does not check this"
    return tuple(lines.values())


def _ends(dim: DynamicDim) -> Iterator[int]:
    """The bounds that can be run; larger ones might be too expensive."""
    if dim.least > 0:
        yield dim.least
    if isinstance(dim.most, int) and dim.most <= MAX_TRACED_SIZE_WITH_VALUES:
        yield dim.most


def _describe_failure(model: nn.Module, axes: SizeDomain, arguments: Arguments, symbol: sympy.Expr, size: int) -> str:
    """Describe the exception of the model at this bound, with the example's other sizes; empty if there is none or runs cannot tell."""
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
        except Exception as error:  # noqa: BLE001 - any exception of the model is reported
            is_torchs = type(error).__module__ == OF_FAKE_TENSORS
            return "" if is_torchs else f"raises {type(error).__name__} at {size}: {first_sentence(error)}"
        return ""
    return ""


def _run(model: nn.Module, axes: SizeDomain, arguments: Arguments, setting: SizeAssignment) -> None:
    trace(model, axes.at(arguments, setting))
