"""Find sizes on both sides of size tests for which all samples give the same answer, since a lost branch shows only there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import nn

from fx2onnx.compat import trees as pytree

from ..cases import Sample
from ..exporters import Artifact
from ..messages import first_line
from ..outcomes import Outcome
from ..samples import bound, format_leaf_path
from .check_spec import CheckSpec
from .report import Check
from .size_tests import Axes, SizeTests, cost_of, is_covered, sizes_tested
from .values import is_additive_mask, mapped_leaves

NAME = "size threshold"
MOST = 8  # maximum number of sizes to run
INPUTS = 16 * 2**20  # maximum bytes of the arguments
RESULT, RESULTS = 2**28, 2**31  # maximum bytes of one operator's result, and of all results together
UNKNOWN = 4 * 2**20  # maximum bytes of the arguments if the cost of a call is unknown
USUAL = 4  # up to this multiple of a sample's size, a call costs about as much as the sample
SHRUNK = 0.1  # maximum relative change of repeated floats, so that sorts find few equal elements


@dataclass(frozen=True)
class Place:
    """A size to run, its axis, and the nearest test."""

    axis: str
    size: int
    test: str


@dataclass
class Thresholds:
    """The probes at additional sizes, and a check for each size that is too large to run."""

    probes: list[CheckSpec] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    left: set[str] = field(default_factory=set)

    def leave_out(self, place: Place, why: str) -> None:
        """Record why a size is not run; both sides of a test share one check."""
        if place.test not in self.left:
            where = f"{place.axis} {place.size}"
            self.checks.append(Check(NAME, where, Outcome.SKIPPED, detail=f"not run: {why} (the test at {place.test})"))
        self.left.add(place.test)


def thresholds(artifact: Artifact, module: nn.Module, samples: Sequence[Sample]) -> Thresholds:
    """Return probes on both sides of each size test for which all samples, which are of one kind, give the same answer.

    The module's tests come from a run without data. The exported model's tests are the numbers that it compares sizes with.
    """
    found, first = Thresholds(), samples[0]
    axes = _axes(artifact, module, samples)
    if not axes:
        return found
    read = sizes_tested(module, first, axes)
    if read.problem:
        found.checks.append(Check(NAME, "", Outcome.SKIPPED, detail=_unread(read.problem)))
    sizes = [_sizes(axes, sample) for sample in samples]
    places: dict[tuple[str, int], Place] = {}
    for place in _places(read, artifact, sizes):
        places.setdefault((place.axis, place.size), place)
    for number, place in enumerate(places.values()):
        if any(_is_of_test(limit, place.test) for limit in artifact.limits()):
            found.leave_out(place, "the export lists this as a limit")
        elif number < MOST:
            _try(found, module, first, axes, place)
        else:
            found.leave_out(place, f"no more than {MOST} sizes are run")
    return found


def _unread(problem: str) -> str:
    if "DataDependent" in problem:
        return "the model's tests of sizes are known up to its first test of a value"
    return f"some of the model's tests of sizes could not be read: {problem}"


def _is_of_test(limit: str, test: str) -> bool:
    """Whether a limit that starts with `file.py:3 in forward` is about the test at `file.py:3 ...`."""
    return Path(limit.partition(" in ")[0]).name == test.partition(" `")[0]


def _try(found: Thresholds, module: nn.Module, first: Sample, axes: Axes, place: Place) -> None:
    sizes, given = _sizes(axes, first), _bytes(first, axes, place)
    if given > INPUTS:
        return found.leave_out(place, f"its arguments would need {given / 2**20:,.0f} MiB")
    sample = resize_axes(first, axes, place.axis, place.size)
    if place.size > USUAL * sizes[place.axis] and (why := _too_much(module, sample, given)):
        return found.leave_out(place, why)
    why = f"{place.axis} = {place.size}, next to the test at {place.test}: "
    found.probes.append(CheckSpec(NAME, (sample,), Outcome.FROZEN, refusable=True, why=why, asked=False))
    return None


def _too_much(module: nn.Module, sample: Sample, given: int) -> str:
    """Return why a call is too expensive; empty if it isn't."""
    try:
        cost = cost_of(module, sample)
    except Exception as error:  # noqa: BLE001 - some modules need data to run; then accept only small arguments
        return f"its cost is unknown: {first_line(error)}" if given > UNKNOWN else ""
    if cost.largest > RESULT:
        return f"a result would need {cost.largest / 2**20:,.0f} MiB"
    return f"its results would need {cost.together / 2**30:.1f} GiB" if cost.together > RESULTS else ""


def _places(read: SizeTests, artifact: Artifact, sizes: Sequence[Mapping[str, int]]) -> Iterator[Place]:
    """Yield the sizes at the nearest edge of each uncovered test, and next to the numbers in the exported model."""
    first = sizes[0]
    for test in read.tests:
        for name in sorted(map(str, test.test.free_symbols)) if not is_covered(test, sizes) else ():
            edges = sorted(test.edges(name, first), key=lambda edge: min(abs(edge[0] - first[name]), abs(edge[1] - first[name])))
            yield from (Place(name, size, test.line) for edge in edges[:1] for size in edge if size not in {one[name] for one in sizes})
    for number in sorted(artifact.compared_sizes()):
        for name in first:
            seen = {one[name] for one in sizes}
            if not min(seen) <= number < max(seen):
                yield from (Place(name, size, f"{number} in the file") for size in (number, number + 1) if size >= 2 and size not in seen)


def _axes(artifact: Artifact, module: nn.Module, samples: Sequence[Sample]) -> Axes:
    """Return the axes that differ between samples or are dynamic in the artifact. Axes with the same sizes in all samples share a name."""
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
    except (TypeError, ValueError):  # forward has no readable signature
        return {}
    return {id(leaf): format_leaf_path(path) for path, leaf in flat if isinstance(leaf, torch.Tensor)}


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


def resize_axes(sample: Sample, axes: Axes, name: str, size: int) -> Sample:
    """Resize all axes with this name: repeat the values, and make floats slightly smaller."""

    def change(place: int, tensor: torch.Tensor) -> torch.Tensor:
        changed = tensor
        for axis in (axis for axis in range(tensor.dim()) if axes.get((place, axis)) == name and tensor.shape[axis]):
            changed = changed.index_select(axis, torch.arange(size, device=tensor.device) % tensor.shape[axis])
        return changed if changed is tensor or not tensor.is_floating_point() or is_additive_mask(tensor) else _shrunk(changed)

    return mapped_leaves(sample, change)


def _shrunk(tensor: torch.Tensor) -> torch.Tensor:
    factors = 1 - SHRUNK * torch.rand(tensor.shape, generator=torch.Generator().manual_seed(0))
    return tensor * factors.to(tensor)
