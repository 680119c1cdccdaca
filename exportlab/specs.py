"""Declare inputs by named dimensions, and create tensors for given sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from fx2onnx.compat import trees as pytree

from .checks import kind_of, must_be, must_be_whole, must_end

Dimension = int | str
Sizes = Mapping[str, int]


@dataclass(frozen=True, eq=False)
class TensorSpec:
    """A tensor to create once the sizes are known. `dims` are ints, names, or sums (`"past+seq"`)."""

    dims: tuple[Dimension, ...]
    fill: Callable[[tuple[int, ...], torch.Generator], torch.Tensor]

    def __post_init__(self) -> None:
        for dim in self.dims:
            must_be(int, str, dimension=dim)
            if isinstance(dim, int):
                must_be_whole(0, dimension=dim)

    def axes(self) -> dict[int, str]:
        """Return the dynamic axes by position, in the form of `dynamic_shapes`."""
        return {axis: dim for axis, dim in enumerate(self.dims) if isinstance(dim, str)}

    def make(self, sizes: Sizes, generator: torch.Generator) -> torch.Tensor:
        """Create the tensor at these sizes."""
        return self.fill(tuple(size_of(dim, sizes) for dim in self.dims), generator)


@dataclass(frozen=True, eq=False)
class BuiltSpec:
    """An object, such as a cache or a dataclass, that `build` creates from other specs."""

    build: Callable[..., Any]
    parts: tuple[Any, ...]


def tensor(*dims: Dimension, dtype: torch.dtype = torch.float32) -> TensorSpec:
    """Declare standard normal values with dtype `dtype` and shape `dims`. A spec that is used twice gives the same tensor twice.

    Raises:
        TypeError: a dimension is neither an integer nor a name, or `dtype` is not a dtype.
        ValueError: a dimension is negative.
    """
    must_be(torch.dtype, dtype=dtype)
    return TensorSpec(dims, lambda shape, generator: torch.randn(shape, generator=generator).to(dtype))


def integers(*dims: Dimension, low: int = 0, high: int = 10, dtype: torch.dtype = torch.int64) -> TensorSpec:
    """Declare integers in `[low, high)`. Raises the errors of `tensor`, and ValueError if the range is empty or exceeds 64 bits."""
    must_be(torch.dtype, dtype=dtype)
    must_be_whole(-(2**63), low=low, high=high)
    if high >= 2**63:
        raise ValueError(f"high={high} has more than 64 bits")
    if low >= high:
        raise ValueError(f"low={low} must be less than high={high}")
    return TensorSpec(dims, lambda shape, generator: torch.randint(low, high, shape, generator=generator, dtype=dtype))


def flags(*dims: Dimension) -> TensorSpec:
    """Declare booleans that are true with probability 0.75. Raises the errors of `tensor` for dimensions."""
    return TensorSpec(dims, lambda shape, generator: torch.rand(shape, generator=generator) < 0.75)


def ones(*dims: Dimension, dtype: torch.dtype = torch.int64) -> TensorSpec:
    """Declare ones, such as an attention mask that hides nothing. Raises the errors of `tensor`."""
    must_be(torch.dtype, dtype=dtype)
    return TensorSpec(dims, lambda shape, _: torch.ones(shape, dtype=dtype))


def built(build: Callable[..., Any], *parts: Any) -> BuiltSpec:
    """Declare the result of `build(*parts)`, such as a cache or a dataclass. The parts are created first.

    Raises:
        TypeError: `build` is not callable.
        ValueError: the parts are nested too deeply.
    """
    if not callable(build):
        raise TypeError(f"build must be a function, not {kind_of(build)}")
    must_end(parts=parts)
    return BuiltSpec(build, parts)


def size_of(dim: Dimension, sizes: Sizes) -> int:
    """Return the size of a dimension: an int itself, or the sum of the sizes named in `"past+seq"`.

    Raises:
        ValueError: the case doesn't declare the dimension.
    """
    if isinstance(dim, int):
        return dim
    if unknown := [term for term in dim.split("+") if not term.isdecimal() and term not in sizes]:
        raise ValueError(f"{dim!r} has no dimension {unknown[0]!r}: the case declares {', '.join(sizes) or 'none'}")
    return sum(int(term) if term.isdecimal() else sizes[term] for term in dim.split("+"))


class Maker:
    """Convert trees of specs to values at one set of sizes, and record the dynamic axes of each tensor."""

    def __init__(self, sizes: Sizes, seed: int) -> None:
        self.sizes = sizes
        self.generator = torch.Generator().manual_seed(seed)
        self.made: dict[int, torch.Tensor] = {}
        self.axes: dict[int, dict[int, str]] = {}
        self.built: list[Any] = []  # kept alive, because `axes` uses ids as keys

    def make(self, tree: Any) -> Any:
        """Return the tree with each spec replaced by its value; other leaves are unchanged."""
        return pytree.tree_map(self._leaf, tree)

    def dynamic_shapes(self, value: Any) -> Any:
        """Return the `dynamic_shapes` of a value created here. A registered class becomes the list of its children, as torch expects."""
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
        """Return the axes of the part that equals `copied`, because a cache copies its inputs."""
        if copied.is_meta or copied.layout != torch.strided:
            return {}
        known = (part for part in pytree.tree_leaves(parts) if id(part) in self.axes)
        return next((self.axes[id(part)] for part in known if part.dtype == copied.dtype and torch.equal(part, copied)), {})

    def _tensor(self, spec: TensorSpec) -> torch.Tensor:
        if id(spec) not in self.made:
            self.made[id(spec)] = spec.make(self.sizes, self.generator)
            self.axes[id(self.made[id(spec)])] = spec.axes()
        return self.made[id(spec)]
