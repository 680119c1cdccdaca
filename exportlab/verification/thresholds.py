"""Sizes beyond those of the samples, on either side of each test of a size: a branch that a file has lost shows there, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import nn
from torch.utils import _pytree as pytree

from ..cases import Sample
from ..exporters import Artifact
from ..messages import first_line
from ..outcomes import Outcome
from ..samples import bound, named
from .probe import Probe
from .report import Check
from .size_tests import Axes, SizeTests, cost_of, covered, sizes_tested
from .values import is_additive_mask, mapped_leaves

NAME = "beyond a test of sizes"
MOST = 8  # sizes that are tried
INPUTS = 16 * 2**20  # bytes that the arguments may have at such a size
RESULT, RESULTS = 2**28, 2**31  # bytes that one result of an operator, and all together, may have
UNKNOWN = 4 * 2**20  # bytes of arguments, where it cannot be told what a call computes
USUAL = 4  # times the size of a sample: what is no larger costs about what the sample does
SHRUNK = 0.1  # by which floats differ from those that they repeat, so that they are no equals


@dataclass(frozen=True)
class Place:
    """A size to be tried: of which axis, and beside which test."""

    axis: str
    size: int
    test: str


@dataclass
class Thresholds:
    """The probes at further sizes, and what is told of those that are left out."""

    probes: list[Probe] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    left: set[str] = field(default_factory=set)

    def leave_out(self, place: Place, why: str) -> None:
        """Take in what is not tried, and why; both sides of a test are left out alike, and told once."""
        if place.test not in self.left:
            where = f"{place.axis} {place.size}"
            self.checks.append(Check(NAME, where, Outcome.SKIPPED, detail=f"not tried: {why} (the test at {place.test})"))
        self.left.add(place.test)


def thresholds(artifact: Artifact, module: nn.Module, samples: Sequence[Sample]) -> Thresholds:
    """Return probes beside the tests of sizes of which the samples, all of one kind, show one side alone.

    The tests are those that the model makes, found in a run without data; and the numbers that the file compares sizes with.
    """
    found, first = Thresholds(), samples[0]
    axes = _axes(artifact, module, samples)
    if not axes:
        return found
    read = sizes_tested(module, first, axes)
    if read.problem:
        found.checks.append(Check(NAME, "", Outcome.SKIPPED, detail=f"the model's tests of sizes were not all read: {read.problem}"))
    sizes = [_sizes(axes, sample) for sample in samples]
    places: dict[tuple[str, int], Place] = {}
    for place in _places(read, artifact, sizes):
        places.setdefault((place.axis, place.size), place)
    for number, place in enumerate(places.values()):
        if number < MOST:
            _try(found, module, first, axes, place)
        else:
            found.leave_out(place, f"{MOST} others were")
    return found


def _try(found: Thresholds, module: nn.Module, first: Sample, axes: Axes, place: Place) -> None:
    sizes, given = _sizes(axes, first), _bytes(first, axes, place)
    if given > INPUTS:
        return found.leave_out(place, f"its arguments would take {given / 2**20:,.0f} MiB")
    sample = resized(first, axes, place.axis, place.size)
    if place.size > USUAL * sizes[place.axis] and (why := _too_much(module, sample, given)):
        return found.leave_out(place, why)
    why = f"{place.axis} {place.size} is beside the test at {place.test}: "
    found.probes.append(Probe(NAME, (sample,), Outcome.FROZEN, refusable=True, why=why, asked=False))
    return None


def _too_much(module: nn.Module, sample: Sample, given: int) -> str:
    """Why a call is not made; nothing where it can be afforded."""
    try:
        cost = cost_of(module, sample)
    except Exception as error:  # noqa: BLE001 - a module need not run without data: then small arguments are taken for a small call
        return f"what it would compute is not known: {first_line(error)}" if given > UNKNOWN else ""
    if cost.largest > RESULT:
        return f"a result would take {cost.largest / 2**20:,.0f} MiB"
    return f"its results would take {cost.together / 2**30:.1f} GiB" if cost.together > RESULTS else ""


def _places(read: SizeTests, artifact: Artifact, sizes: Sequence[Mapping[str, int]]) -> Iterator[Place]:
    """The sizes beside the nearest edge of each test of which the samples show one side, and beside the numbers of the file."""
    first = sizes[0]
    for test in read.tests:
        for name in sorted(map(str, test.test.free_symbols)) if not covered(test, sizes) else ():
            edges = sorted(test.edges(name, first), key=lambda edge: min(abs(edge[0] - first[name]), abs(edge[1] - first[name])))
            yield from (Place(name, size, test.line) for edge in edges[:1] for size in edge if size not in {one[name] for one in sizes})
    for number in sorted(artifact.compared_sizes()):
        for name in first:
            seen = {one[name] for one in sizes}
            if not min(seen) <= number < max(seen):
                yield from (Place(name, size, f"{number} in the file") for size in (number, number + 1) if size >= 2 and size not in seen)


def _axes(artifact: Artifact, module: nn.Module, samples: Sequence[Sample]) -> Axes:
    """The axes whose sizes the samples change, or the artifact leaves open; those of equal sizes in all samples share a name."""
    leaves = [sample.leaves() for sample in samples]
    declared, names = artifact.moving_axes(samples[0]), _names(module, samples[0])
    groups: dict[object, str] = {}
    found = {}
    for place, leaf in enumerate(leaves[0]):
        for axis in range(leaf.dim()) if isinstance(leaf, torch.Tensor) else ():
            sizes = tuple(other[place].shape[axis] for other in leaves)
            if len(set(sizes)) > 1 or (place, axis) in declared:
                key = sizes if len(set(sizes)) > 1 else (declared[place, axis], sizes)
                found[place, axis] = groups.setdefault(key, f"axis {axis} of {names.get(id(leaf), f'argument {place}')}")
    return found


def _names(module: nn.Module, sample: Sample) -> dict[int, str]:
    try:
        flat = pytree.tree_flatten_with_path(bound(module, sample.args, sample.kwargs))[0]
    except (TypeError, ValueError):  # what cannot be bound has no names
        return {}
    return {id(leaf): named(path) for path, leaf in flat if isinstance(leaf, torch.Tensor)}


def _sizes(axes: Axes, sample: Sample) -> dict[str, int]:
    leaves = sample.leaves()
    return {name: leaves[place].shape[axis] for (place, axis), name in axes.items()}


def _bytes(sample: Sample, axes: Axes, place: Place) -> int:
    total = 0
    for leaf, tensor in enumerate(sample.leaves()):
        if isinstance(tensor, torch.Tensor):
            shape = [place.size if axes.get((leaf, axis)) == place.axis else size for axis, size in enumerate(tensor.shape)]
            total += tensor.element_size() * int(torch.Size(shape).numel())
    return total


def resized(sample: Sample, axes: Axes, name: str, size: int) -> Sample:
    """Return the sample with all axes of this name at another size: its values repeated, floats a little smaller."""

    def change(place: int, tensor: torch.Tensor) -> torch.Tensor:
        changed = tensor
        for axis in (axis for axis in range(tensor.dim()) if axes.get((place, axis)) == name and tensor.shape[axis]):
            changed = changed.index_select(axis, torch.arange(size) % tensor.shape[axis])
        return changed if changed is tensor or not tensor.is_floating_point() or is_additive_mask(tensor) else _shrunk(changed)

    return mapped_leaves(sample, change)


def _shrunk(tensor: torch.Tensor) -> torch.Tensor:
    factors = 1 - SHRUNK * torch.rand(tensor.shape, generator=torch.Generator().manual_seed(0))
    return tensor * factors.to(tensor.dtype)
