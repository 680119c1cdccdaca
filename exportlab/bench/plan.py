"""Define what a benchmark measures: named sizes, number of calls, and devices. The module `observe` does the measuring."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product

import torch
from torch import nn

from fx2onnx.compat import trees as pytree

from ..cases import Built, Case, DynamicShapes, Sample
from ..exporters.session import CPU
from ..infer_dynamic_shapes import Axis, Moving, arguments_of, dynamic_shapes_of, resize_sample, sizes_of
from ..samples import format_leaf_path
from ..target import BadInput

AS_GIVEN = "as given"  # label for samples whose sizes don't have names
BATCH = "batch"


@dataclass(frozen=True)
class Plan:
    """The settings of a benchmark.

    Attributes:
        sizes: values by name of the dimension. All combinations are measured. Other dimensions keep their sizes.
        calls: number of calls per size and round, alternating with eager mode.
        providers: providers of ONNX Runtime. device: device of eager mode, torch.compile and AOTInductor.
    """

    sizes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    calls: int = 15
    threads: int = 1
    providers: tuple[str, ...] = (CPU,)
    device: str = "cpu"

    @classmethod
    def of(cls, text: str) -> Plan:
        """Return the plan from its JSON, as returned by `text`."""
        found = json.loads(text)
        sizes = {name: tuple(values) for name, values in found.pop("sizes").items()}
        return cls(sizes, **{**found, "providers": tuple(found["providers"])})

    def text(self) -> str:
        """Return the plan as JSON."""
        return json.dumps(asdict(self))

    def rows(self) -> list[dict[str, int]]:
        """Return all combinations of the sizes."""
        return [dict(zip(self.sizes, values, strict=True)) for values in product(*self.sizes.values())] if self.sizes else []


@dataclass(frozen=True, eq=False)
class Measured:
    """A model, the samples to verify it with (the sample of the export first), and the samples to time it with, by size."""

    module: nn.Module
    samples: list[Sample]
    timed: Mapping[str, Sample]
    dynamic_shapes: DynamicShapes


def label(sizes: Mapping[str, int]) -> str:
    """Format sizes as a label, such as `batch 8, seq 16`."""
    return ", ".join(f"{name} {size}" for name, size in sizes.items()) or AS_GIVEN


def measured(case: Case, plan: Plan) -> Measured:
    """Build a case once, with samples at the requested sizes.

    Raises:
        BadInput: a dimension name is unknown, or the batch dimension can't be determined. Any exception of the factory.
    """
    return _build_from_dims(case, plan) if case.dims else _build_from_samples(case.made(), plan)


def _build_from_dims(case: Case, plan: Plan) -> Measured:
    if unknown := [name for name in plan.sizes if name not in case.dims]:
        known, example = ", ".join(case.dims), next(iter(case.dims))
        raise BadInput(f"{case.name} has no dimension {unknown[0]!r}: it names {known}; use one of these, as in --sizes {example}=1,8")
    own = case.sizes()
    wanted = [{**own[0], **row} for row in plan.rows()] or [row for row in own if all(row.values())]
    rows = [*own, *wanted]
    made = replace(case, dims={name: tuple(row[name] for row in rows) for name in case.dims}).made()
    timed = dict(zip(map(label, wanted), made.samples[len(own) :], strict=True))
    return Measured(made.module, made.samples, timed, made.dynamic_shapes)


def _build_from_samples(made: Built, plan: Plan) -> Measured:
    moving = list(sizes_of(made.module, made.samples).moving)
    seen = [size.name for size in moving]
    if BATCH in plan.sizes and BATCH not in seen:
        moving.append(_assume_batch_axis(made))
    known = {size.name: size.seen[0] for size in moving}
    if unknown := [name for name in plan.sizes if name not in known]:
        raise BadInput(_explain_unknown_dimension(unknown[0], seen, len(made.samples)))
    first = {size.name: size.seen for size in moving}
    given = {label({name: seen[i] for name, seen in first.items() if i < len(seen)}): s for i, s in enumerate(made.samples)}
    timed = {label(row): resize_sample(made.module, made.samples, moving, {**known, **row}) for row in plan.rows()} or given
    samples = [*made.samples, *(s for s in timed.values() if not any(s is other for other in made.samples))]
    return Measured(made.module, samples, timed, dynamic_shapes_of(made.module, made.samples[0], moving))


def _explain_unknown_dimension(name: str, moving: Sequence[str], samples: int) -> str:
    """Explain why a dimension name can't be assigned to an axis."""
    if samples == 1:
        why = "there is only one sample, so no size differs"
    else:
        why = f"only {', '.join(moving)} differs between the samples" if moving else "no size differs between the samples"
    return f"cannot tell which dimension {name!r} is: {why}; return [sample, sample] of two sizes, or declare it by @case(dims=…)"


def _assume_batch_axis(made: Built) -> Moving:
    """Assume that the batch is axis 0 of each tensor whose first size equals that of the first tensor."""
    leaves, _ = pytree.tree_flatten_with_path(arguments_of(made.module, made.samples[0]))
    tensors = [(i, path, leaf) for i, (path, leaf) in enumerate(leaves) if isinstance(leaf, torch.Tensor) and leaf.dim()]
    if not tensors:
        raise BadInput("no argument is a tensor with at least one axis, so the model does not have a batch: omit --batches")
    size = tensors[0][2].shape[0]
    places = [Axis(i, format_leaf_path(path), 0) for i, path, leaf in tensors if leaf.shape[0] == size]
    return Moving(BATCH, (size,), tuple(places))


def assumed_batch(made: Built, asked: Sequence[str]) -> str:
    """Return a note on the axis assumed to be the batch, or "" if the samples determine it."""
    moving = [size.name for size in sizes_of(made.module, made.samples).moving]
    if BATCH not in asked or BATCH in moving:
        return ""
    paths = ", ".join(place.path for place in _assume_batch_axis(made).places)
    return f"the batch is assumed to be axis 0 of {paths}: use @case(dims=…) to declare another axis"
