"""Inputs declared by named dimensions, and what is made of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from .checks import kind_of, must_be, must_be_whole, must_end

Dimension = int | str
Sizes = Mapping[str, int]


@dataclass(frozen=True, eq=False)
class TensorSpec:
    """A tensor to be made once the sizes are known: `dims` are ints, names, or sums of both (`"past+seq"`)."""

    dims: tuple[Dimension, ...]
    fill: Callable[[tuple[int, ...], torch.Generator], torch.Tensor]

    def __post_init__(self) -> None:
        for dim in self.dims:
            must_be(int, str, dimension=dim)
            if isinstance(dim, int):
                must_be_whole(0, dimension=dim)

    def axes(self) -> dict[int, str]:
        """Return its dynamic axes by position, as `dynamic_shapes` wants them."""
        return {axis: dim for axis, dim in enumerate(self.dims) if isinstance(dim, str)}

    def make(self, sizes: Sizes, generator: torch.Generator) -> torch.Tensor:
        """Return the tensor at these sizes."""
        return self.fill(tuple(size_of(dim, sizes) for dim in self.dims), generator)


@dataclass(frozen=True, eq=False)
class BuiltSpec:
    """An object (a cache, a dataclass) that `build` makes of further specs."""

    build: Callable[..., Any]
    parts: tuple[Any, ...]


def tensor(*dims: Dimension, dtype: torch.dtype = torch.float32) -> TensorSpec:
    """Declare standard normal values of `dtype`, shape `dims`; the same spec used twice is the same tensor twice.

    Raises:
        TypeError: a dimension is neither a whole number nor a name, or `dtype` is none. ValueError: a dimension is less than 0.
    """
    must_be(torch.dtype, dtype=dtype)
    return TensorSpec(dims, lambda shape, generator: torch.randn(shape, generator=generator).to(dtype))


def integers(*dims: Dimension, low: int = 0, high: int = 10, dtype: torch.dtype = torch.int64) -> TensorSpec:
    """Declare integers from `low` up to, not including, `high`. Raises what `tensor` raises, and where there is none between them."""
    must_be(torch.dtype, dtype=dtype)
    must_be_whole(-(2**63), low=low, high=high)
    if high >= 2**63:
        raise ValueError(f"high={high} has more than 64 bits")
    if low >= high:
        raise ValueError(f"low={low} and high={high}: there is no integer between them")
    return TensorSpec(dims, lambda shape, generator: torch.randint(low, high, shape, generator=generator, dtype=dtype))


def flags(*dims: Dimension) -> TensorSpec:
    """Declare booleans, true three times in four. Raises what `tensor` raises about dimensions."""
    return TensorSpec(dims, lambda shape, generator: torch.rand(shape, generator=generator) < 0.75)


def ones(*dims: Dimension, dtype: torch.dtype = torch.int64) -> TensorSpec:
    """Declare ones, as in an attention mask that masks nothing. Raises what `tensor` raises."""
    must_be(torch.dtype, dtype=dtype)
    return TensorSpec(dims, lambda shape, _: torch.ones(shape, dtype=dtype))


def built(build: Callable[..., Any], *parts: Any) -> BuiltSpec:
    """Declare what `build(*parts)` returns, its parts made first: for caches, dataclasses and whatever a `forward` takes.

    Raises:
        TypeError: `build` cannot be called. ValueError: the parts have no end.
    """
    if not callable(build):
        raise TypeError(f"build must be a function, not {kind_of(build)}")
    must_end(parts=parts)
    return BuiltSpec(build, parts)


def size_of(dim: Dimension, sizes: Sizes) -> int:
    """Return the size of a dimension: itself, or the sum of the sizes named in `"past+seq"`.

    Raises:
        ValueError: the case declares no such dimension.
    """
    if isinstance(dim, int):
        return dim
    if unknown := [term for term in dim.split("+") if not term.isdecimal() and term not in sizes]:
        raise ValueError(f"{dim!r} has no dimension {unknown[0]!r}: the case declares {', '.join(sizes) or 'none'}")
    return sum(int(term) if term.isdecimal() else sizes[term] for term in dim.split("+"))


class Maker:
    """Turns one tree of specs into values at one set of sizes, and remembers which tensor has which dynamic axes."""

    def __init__(self, sizes: Sizes, seed: int) -> None:
        self.sizes = sizes
        self.generator = torch.Generator().manual_seed(seed)
        self.made: dict[int, torch.Tensor] = {}
        self.axes: dict[int, dict[int, str]] = {}
        self.built: list[Any] = []  # kept alive, since `axes` goes by id

    def make(self, tree: Any) -> Any:
        """Return the tree with every spec replaced by its value; whatever is no spec stays."""
        return pytree.tree_map(self._leaf, tree)

    def dynamic_shapes(self, value: Any) -> Any:
        """Return the `dynamic_shapes` of a value made here; a registered class becomes the list of its children, as torch wants it."""
        if isinstance(value, dict):
            return {key: self.dynamic_shapes(child) for key, child in value.items()}
        if isinstance(value, (list, tuple)):
            children = map(self.dynamic_shapes, value)
            return type(value)(*children) if hasattr(value, "_fields") else type(value)(children)
        if type(value) in pytree.SUPPORTED_NODES:
            return [self.dynamic_shapes(child) for child in pytree.SUPPORTED_NODES[type(value)].flatten_fn(value)[0]]
        return self.axes.get(id(value)) or None

    def _leaf(self, leaf: Any) -> Any:
        if isinstance(leaf, BuiltSpec):
            return self._built(leaf)
        return self._tensor(leaf) if isinstance(leaf, TensorSpec) else leaf

    def _built(self, spec: BuiltSpec) -> Any:
        parts = self.make(spec.parts)
        self.built.append(spec.build(*parts))
        for leaf in filter(torch.is_tensor, pytree.tree_leaves(self.built[-1])):
            self.axes.setdefault(id(leaf), self._axes_of_equal(leaf, parts))
        return self.built[-1]

    def _axes_of_equal(self, copied: torch.Tensor, parts: tuple[Any, ...]) -> dict[int, str]:
        """The axes of the part that `copied` equals: a cache copies what it is given."""
        if copied.is_meta or copied.layout != torch.strided:
            return {}
        known = (part for part in pytree.tree_leaves(parts) if id(part) in self.axes)
        return next((self.axes[id(part)] for part in known if part.dtype == copied.dtype and torch.equal(part, copied)), {})

    def _tensor(self, spec: TensorSpec) -> torch.Tensor:
        if id(spec) not in self.made:
            self.made[id(spec)] = spec.make(self.sizes, self.generator)
            self.axes[id(self.made[id(spec)])] = spec.axes()
        return self.made[id(spec)]
