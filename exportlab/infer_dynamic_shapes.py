"""Find the dimensions that differ between samples, and make samples of intermediate sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import torch
from torch import nn

from fx2onnx.compat import trees as pytree

from .samples import Sample, bound, format_leaf_path
from .specs import Maker

DynamicShapes = dict[str, Any] | tuple[Any, ...] | list[Any] | None  # dynamic axes of each input, as torch.onnx.export accepts them
SEQUENCE = 1  # the sequence axis of token tensors and attention masks


@dataclass(frozen=True)
class Axis:
    """An axis of one tensor among the arguments."""

    leaf: int
    path: str
    axis: int


@dataclass(frozen=True)
class Moving:
    """A dynamic dimension: its name, its size in each sample, its axes, and the dimensions that it is the sum of, plus a constant."""

    name: str
    seen: tuple[int, ...]
    places: tuple[Axis, ...]
    sum_of: tuple[str, ...] = ()
    plus: int = 0

    def how(self) -> str:
        """Describe the sizes and axes that identify this dimension."""
        where = ", ".join(f"{place.path} axis {place.axis}" for place in self.places)
        same_size = " (always the same size)" if len(self.places) > 1 else ""
        parts = (*self.sum_of, *([str(self.plus)] if self.plus else []))
        total = f", always {' + '.join(parts)}" if self.sum_of else ""
        return f"{self.name} is {', '.join(map(str, self.seen))}: {where}{same_size}{total}"


@dataclass(frozen=True)
class Sizes:
    """The dynamic dimensions of the samples, and the problems: changing numbers, different structures, a tensor that is passed twice."""

    moving: tuple[Moving, ...]
    changing: tuple[str, ...] = ()
    unlike: str = ""
    twice: tuple[str, ...] = ()


def sizes_of(module: nn.Module, samples: Sequence[Sample]) -> Sizes:
    """Compare the samples leaf by leaf."""
    flat = [pytree.tree_flatten_with_path(arguments_of(module, sample)) for sample in samples]
    paths = [format_leaf_path(path) for path, _ in flat[0][0]]
    columns = [[leaf for _, leaf in leaves] for leaves, _ in flat]
    twice = _twice(paths, columns[0])
    if any(spec != flat[0][1] for _, spec in flat[1:]):
        return Sizes((), unlike="the samples have different structures", twice=twice)
    unlike = next((reason for i, path in enumerate(paths) if (reason := _unlike(path, [column[i] for column in columns]))), "")
    if unlike:
        return Sizes((), unlike=unlike, twice=twice)
    return Sizes(_moving(paths, columns), tuple(_changing(paths, columns)), twice=twice)


def arguments_of(module: nn.Module, sample: Sample) -> dict[str, Any]:
    """Return the arguments by name; use positions as names where `forward` doesn't accept the arguments."""
    try:
        return bound(module, sample.args, sample.kwargs)
    except TypeError:
        return {**{str(i): arg for i, arg in enumerate(sample.args)}, **sample.kwargs}


def _unlike(path: str, leaves: Sequence[Any]) -> str:
    """Return why these values cannot be the same argument of several calls; empty if they can."""
    if len({isinstance(leaf, torch.Tensor) for leaf in leaves}) > 1:
        return f"{path} is a tensor in some samples and something else in others"
    if not isinstance(leaves[0], torch.Tensor):
        return ""
    for what, values in (("dtypes", {str(leaf.dtype) for leaf in leaves}), ("numbers of dimensions", {leaf.dim() for leaf in leaves})):
        if len(values) > 1:
            return f"{path} has several {what} in the samples: {', '.join(map(str, sorted(values)))}"
    return ""


def _changing(paths: Sequence[str], columns: Sequence[Sequence[Any]]) -> Iterator[str]:
    for i, path in enumerate(paths):
        values = [column[i] for column in columns]
        if not isinstance(values[0], torch.Tensor) and any(value != values[0] for value in values[1:]):
            yield f"{path} ({', '.join(map(repr, values))})"


def _twice(paths: Sequence[str], leaves: Sequence[Any]) -> tuple[str, ...]:
    counts = Counter(id(leaf) for leaf in leaves if isinstance(leaf, torch.Tensor))
    return tuple(path for path, leaf in zip(paths, leaves, strict=True) if counts[id(leaf)] > 1)


def _moving(paths: Sequence[str], columns: Sequence[Sequence[Any]]) -> tuple[Moving, ...]:
    """Return the dynamic dimensions. Axes with the same size in each sample are one dimension."""
    groups: dict[tuple[int, ...], list[Axis]] = {}
    for i, path in enumerate(paths):
        tensors = [column[i] for column in columns]
        for axis in range(tensors[0].dim() if isinstance(tensors[0], torch.Tensor) else 0):
            seen = tuple(tensor.shape[axis] for tensor in tensors)
            if len(set(seen)) > 1:
                groups.setdefault(seen, []).append(Axis(i, path, axis))
    names, still = _names(groups, columns[0]), _lengths_that_stay(columns)
    return tuple(Moving(names[seen], seen, tuple(places), *_sum_of(seen, names, still)) for seen, places in groups.items())


def _lengths_that_stay(columns: Sequence[Sequence[Any]]) -> set[int]:
    """Return the constant lengths of token tensors, such as 1 in a decoding step; a mask is as long as the cache plus this length."""
    tokens = (leaves for leaves in zip(*columns, strict=True) if isinstance(leaves[0], torch.Tensor) and _is_token_tensor(leaves[0]))
    lengths = ({tensor.shape[SEQUENCE] for tensor in leaves} for leaves in tokens)
    return {seen.pop() for seen in lengths if len(seen) == 1}


def _names(groups: Mapping[tuple[int, ...], Sequence[Axis]], leaves: Sequence[Any]) -> dict[tuple[int, ...], str]:
    """Name each dimension: `batch` for axis 0, `seq` for axis 1 of an integer tensor, otherwise the argument and axis."""
    names: dict[tuple[int, ...], str] = {}
    for seen, places in groups.items():
        first = places[0]
        name = _usual(places, leaves) or f"{_identifier(first.path)}_{first.axis}"
        names[seen] = name if name not in names.values() else f"{_identifier(first.path)}_{first.axis}"
    return names


def _usual(places: Sequence[Axis], leaves: Sequence[Any]) -> str:
    if any(place.axis == 0 for place in places):
        return "batch"
    return "seq" if any(_is_token_tensor(leaves[p.leaf]) for p in places if p.axis == SEQUENCE) else ""


def _is_token_tensor(tensor: torch.Tensor) -> bool:
    return tensor.dim() == SEQUENCE + 1 and not tensor.is_floating_point()


def _identifier(path: str) -> str:
    return "".join(c if c.isascii() and c.isalnum() else "_" for c in path).strip("_") or "input"


def _sum_of(seen: tuple[int, ...], names: Mapping[tuple[int, ...], str], still: set[int]) -> tuple[tuple[str, ...], int]:
    """Return the dimensions, and the constant token length, whose sum equals this dimension in each sample."""
    for a, b in combinations(names, 2):
        if seen not in (a, b) and all(x + y == total for x, y, total in zip(a, b, seen, strict=True)):
            return (names[a], names[b]), 0
    for other in (other for other in names if other != seen and "batch" not in (names[other], names[seen])):
        more = {total - size for total, size in zip(seen, other, strict=True)}
        if len(more) == 1 and more <= still:
            return (names[other],), more.pop()
    return (), 0


def dynamic_shapes_of(module: nn.Module, sample: Sample, moving: Sequence[Moving]) -> DynamicShapes:
    """Return `dynamic_shapes` for `torch.onnx.export`, or None without dynamic dimensions."""
    if not moving:
        return None
    arguments = arguments_of(module, sample)
    leaves = pytree.tree_leaves(arguments)
    maker = Maker({}, 0)
    for size in moving:
        for place in size.places:
            maker.axes.setdefault(id(leaves[place.leaf]), {})[place.axis] = size.name
    return maker.dynamic_shapes(arguments) if sample.kwargs else tuple(maker.dynamic_shapes(tuple(arguments.values())))


def make_intermediate_samples(module: nn.Module, samples: Sequence[Sample], moving: Sequence[Moving]) -> list[tuple[str, Sample]]:
    """Return samples of new sizes, each with a description: all dimensions halfway between minimum and maximum, then each alone."""
    halves = {size.name: (min(size.seen) + max(size.seen)) // 2 for size in moving}
    first = {size.name: size.seen[0] for size in moving}
    wanted = [halves, *({**first, name: half} for name, half in halves.items() if len(halves) > 1)]
    given = [{size.name: size.seen[i] for size in moving} for i in range(len(samples))]
    made: list[tuple[str, Sample]] = []
    known = [*given]
    for sizes in (_added_up(sizes, moving) for sizes in wanted):
        if sizes not in known:
            known.append(sizes)
            made.append((", ".join(f"{name} {size}" for name, size in sizes.items()), resize_sample(module, samples, moving, sizes)))
    return made


def _added_up(sizes: Mapping[str, int], moving: Sequence[Moving]) -> dict[str, int]:
    sums = {size.name: size.plus + sum(sizes[part] for part in size.sum_of) for size in moving if size.sum_of}
    return {**sizes, **sums}


def resize_sample(module: nn.Module, samples: Sequence[Sample], moving: Sequence[Moving], sizes: Mapping[str, int]) -> Sample:
    """Cut the largest sample to these sizes, so that tokens, masks and positions stay valid; repeat it where it is too short."""
    largest = max(samples, key=lambda sample: sum(leaf.numel() for leaf in sample.leaves() if isinstance(leaf, torch.Tensor)))
    leaves = pytree.tree_leaves(arguments_of(module, largest))
    made: dict[int, torch.Tensor] = {}
    for size in moving:
        for place in size.places:
            leaf = leaves[place.leaf]
            made[id(leaf)] = _cut(made.get(id(leaf), leaf), place.axis, sizes[size.name])
    return Sample(*pytree.tree_map(lambda leaf: made.get(id(leaf), leaf), (largest.args, dict(largest.kwargs))))


def _cut(tensor: torch.Tensor, axis: int, size: int) -> torch.Tensor:
    length = tensor.shape[axis]
    return tensor.index_select(axis, torch.arange(size, device=tensor.device) % length) if length else tensor
