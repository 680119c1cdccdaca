"""Sizes that torch itself works out: a call made once more with tensors that have no elements, and symbols for sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sympy
import torch
from torch._dynamo.source import ConstantSource
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv
from torch.utils import _pytree as pytree

from ...build.values import Size, sizes_of
from .program import Described
from .sample import Setting

STEPPING = ("conv", "pool", "unfold", "im2col", "upsample", "slice", "arange", "linspace", "pad", "stft", "split", "chunk", "diagonal")
Sizes = list[tuple[Size, ...] | None]


class OperatorSizes:
    """Works out the sizes of results from those of the arguments, in an environment of its own, which forgets what is asked of them."""

    def __init__(self, example: Mapping[sympy.Symbol, int], names: Mapping[sympy.Symbol, str]) -> None:
        self._environment = ShapeEnv(specialize_zero_one=False, duck_shape=False)
        for symbol, size in example.items():
            self._environment.create_symbol(
                size, ConstantSource(names[symbol]), dynamic_dim=DimDynamic.DYNAMIC, do_not_specialize_zero_one=True
            )
        self._mode = FakeTensorMode(shape_env=self._environment)
        self._example: Setting = dict(example)

    def of(self, node: torch.fx.Node) -> Sizes:
        """Return the sizes of each result of a call; none where torch cannot say, or changes its mind about a size on the way."""
        try:
            with torch._C.DisableTorchFunction(), torch.no_grad(), self._mode:
                args, kwargs = pytree.tree_map(self._argument, (node.args, dict(node.kwargs)))
                made = node.target(*args, **kwargs)  # type: ignore[operator]
        except Exception:  # noqa: BLE001 - it is one way of several to learn a size, and each is held against what the runs gave
            return []
        return [sizes_of(result) if isinstance(result, torch.Tensor) else None for result in pytree.tree_leaves(made)]

    def _argument(self, leaf: Any) -> Any:
        if isinstance(leaf, torch.fx.Node):
            value = leaf.meta["val"]
            return torch.empty([self._number(size) for size in value.sizes], dtype=value.dtype) if isinstance(value, Described) else value
        return self._number(leaf) if isinstance(leaf, sympy.Basic) else leaf

    def _number(self, size: Any) -> Any:
        if isinstance(size, int):
            return size
        return self._environment.create_symintnode(size, hint=int(size.subs(self._example)))


def steps(op: torch._ops.OpOverload) -> bool:
    """Return whether an operator goes along an axis in steps, so that a few sizes may all give the same."""
    return any(part in op._opname for part in STEPPING)


def moving(arguments: Sequence[torch.fx.Node]) -> bool:
    """Return whether the sizes of any of these move."""
    values = (node.meta.get("val") for node in arguments)
    return any(not isinstance(size, int) for value in values if isinstance(value, Described) for size in value.sizes)
