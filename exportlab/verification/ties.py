"""Check whether eager with stable sorting matches the model. Without `stable=True`, torch doesn't define the order of equal elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from fx2onnx.compat.dispatch import TorchDispatchMode

from ..cases import Sample
from ..eager import fresh, run_calls
from .difference import Tolerances, difference_of

aten = torch.ops.aten
WORDS = "eager gives the same answer if equal elements stay in order, which torch.sort and topk don't guarantee"


def _sort_stably(x: Tensor, dim: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    return aten.sort.stable(x, stable=True, dim=dim, descending=descending)


def _sorted_as_asked(x: Tensor, *, stable: bool | None, dim: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    return _sort_stably(x, dim, descending)


def _topk(x: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Tensor, Tensor]:
    if not x.dim():
        return aten.topk.default(x, k, dim, largest, sorted)
    values, places = _sort_stably(x, dim, largest)
    return values.narrow(dim, 0, k), places.narrow(dim, 0, k)


IN_ORDER: Mapping[Any, Callable[..., Any]] = {
    aten.sort.default: _sort_stably,
    aten.sort.stable: _sorted_as_asked,
    aten.argsort.default: lambda *args, **kwargs: _sort_stably(*args, **kwargs)[1],
    aten.argsort.stable: lambda *args, **kwargs: _sorted_as_asked(*args, **kwargs)[1],
    aten.topk.default: _topk,
}


class InOrder(TorchDispatchMode):
    """Make sorts stable; `sorts` is True if there was a sort."""

    supports_higher_order_operators = True
    sorts = False

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operator, or its stable replacement."""
        in_order = IN_ORDER.get(function)
        self.sorts |= in_order is not None
        return (in_order or function)(*args, **(kwargs or {}))


def apart_in_order(module: nn.Module, calls: Sequence[Sample], actual: Any, tolerances: Tolerances | None) -> float | None:
    """Return the distance of the model from eager with stable sorting; None if the results still differ."""
    sorts, expected = _run_in_order(module, calls)
    found = difference_of(expected, actual, tolerances) if sorts else None
    return found.worst if found is not None and not found.problem else None


def sorts(module: nn.Module, calls: Sequence[Sample]) -> bool:
    """Return whether the module sorts in these calls; False if eager cannot be observed."""
    return _run_in_order(module, calls)[0]


def _run_in_order(module: nn.Module, calls: Sequence[Sample]) -> tuple[bool, Any]:
    try:
        mode = InOrder()  # type: ignore[no-untyped-call]
        with torch.compiler.set_stance("force_eager"), mode:  # code that was compiled under a mode would fail without it
            expected = run_calls(fresh(module), tuple(calls))
        return mode.sorts, expected
    except Exception:  # noqa: BLE001 - eager accepted these calls, but cannot be observed: excuse nothing
        return False, None
