"""Measure the distance from the exact result that rounding alone explains, with runs that change each result by half a rounding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from fx2onnx.compat import trees as pytree
from fx2onnx.compat.dispatch import TorchDispatchMode

from ..cases import Sample
from ..eager import fresh, run_calls
from .difference import distances
from .fast_path import disable_fast_path

RUNS = 4
ROUNDED = (torch.float16, torch.bfloat16, torch.float32)


def makes_its_results(func: Any) -> bool:
    """Whether an operator returns new tensors, and not views of its arguments or the arguments themselves."""
    return all(result.alias_info is None for result in getattr(getattr(func, "_schema", None), "returns", ()))


class _Jittered(TorchDispatchMode):
    """Change all results by up to half a rounding of their dtypes, so that each is rounded up or down at random."""

    supports_higher_order_operators = True

    def __init__(self, seed: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.generator = torch.Generator().manual_seed(seed)

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
        returned = func(*args, **(kwargs or {}))
        return pytree.tree_map_only(torch.Tensor, self._moved, returned) if makes_its_results(func) else returned

    def _moved(self, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.dtype not in ROUNDED:
            return tensor
        half = torch.rand(tensor.shape, generator=self.generator, dtype=torch.float64).to(tensor.device) - 0.5
        return (tensor.double() * (1 + torch.finfo(tensor.dtype).eps * half)).to(tensor.dtype)


def noise_of(module: nn.Module, calls: Sequence[Sample], exact: Sequence[Any]) -> list[list[torch.Tensor | None]]:
    """Return the distances of all outputs from their exact values for several runs; None for outputs that cannot be compared.

    The runs use the same operators as exports, not fused kernels.

    Raises:
        Errors of the module while it is observed.
    """
    runs = []
    for seed in range(RUNS):
        with torch.compiler.set_stance("force_eager"), disable_fast_path(), sdpa_kernel(SDPBackend.MATH), _Jittered(seed):
            returned = run_calls(fresh(module), calls)
        runs.append([_measure_distance(*pair) for pair in zip(exact, pytree.tree_leaves(returned), strict=True)])
    return runs


def _measure_distance(exact: Any, found: Any) -> torch.Tensor | None:
    if not isinstance(exact, torch.Tensor) or not isinstance(found, torch.Tensor) or exact.shape != found.shape:
        return None
    return distances(exact, found)
