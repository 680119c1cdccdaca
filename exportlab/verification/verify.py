"""Is it right: an artifact against eager, at the sizes of the export and at others, for every way in which exports go silently wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from .. import show
from ..cases import Inputs, Sample
from ..eager import called_once, fresh, last_returned
from ..exporters import Artifact, Exported, artifact_of
from ..messages import first_line
from ..outcomes import Outcome
from .difference import TOLERANCES, Tolerances, difference_of, tolerance_text


class VerificationError(AssertionError):
    """The artifact is not right."""


@dataclass(frozen=True)
class Check:
    """One thing that was looked at: on which inputs, with which outcome, how far off, and what was seen."""

    name: str
    inputs: str
    outcome: Outcome
    worst: float | None = None
    detail: str = ""

    @property
    def failed(self) -> bool:
        """Whether something is not right; what was skipped says nothing."""
        return self.outcome not in (Outcome.OK, Outcome.SKIPPED)


@dataclass(frozen=True, repr=False)
class Report(show.Tabular):
    """All checks of one artifact; prints as a table, renders as HTML."""

    exporter: str
    checks: tuple[Check, ...]
    tolerance: str

    @property
    def outcome(self) -> Outcome:
        """The most serious outcome of its checks; what does not even run at the size of the export is `run`, and never `frozen`."""
        seen = {check.outcome for check in self.failed}
        return Outcome.worst(seen - {Outcome.FROZEN} if Outcome.RUN in seen else seen)

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks in which something is not right."""
        return tuple(check for check in self.checks if check.failed)

    @property
    def worst(self) -> float:
        """The largest absolute difference of all checks."""
        return max((check.worst for check in self.checks if check.worst is not None), default=0.0)

    def check(self) -> Report:
        """Return itself when all is right.

        Raises:
            VerificationError: something is not; the message holds the worst element, its position, and both values.
        """
        if not self.failed:
            return self
        lines = [f"  {c.name} ({c.inputs}): {c.outcome}: {c.detail}" for c in self.failed]
        raise VerificationError("\n".join([f"{self.exporter}: {self.outcome}, tolerance {self.tolerance}", *lines]))

    def _table(self) -> show.Table:
        rows = [
            {
                "check": c.name,
                "inputs": c.inputs,
                "outcome": c.outcome,
                "max diff": "" if c.worst is None else f"{c.worst:.1e}",
                "what was seen": c.detail,
            }
            for c in self.checks
        ]
        return show.table(rows, f"{self.exporter}: {self.outcome} ({self.tolerance})")


def verify(exported: Exported, module: nn.Module, samples: Sequence[Inputs], *, tolerances: Tolerances = TOLERANCES) -> Report:
    """Run an artifact and the module side by side, in inference mode, and say where they part.

    The first sample is the one that was exported with; the others are for sizes never seen. From the first, further
    checks follow: other values (signs flipped, integers and masks moved along), separate tensors where one was given
    twice, and the same call twice. Names and opset are held against what was asked for. The module and the samples
    are copied, never changed.

    Args:
        exported: an `Artifact`, a `torch.onnx.ONNXProgram` or a `torch.export.ExportedProgram`.
        samples: each a tuple of positional arguments, a dict of keyword arguments, or a `Sample` with both.
        tolerances: `(rtol, atol)` by dtype; other dtypes are compared exactly.

    Raises:
        TypeError: `exported` or a sample is none of these. ValueError: there is no sample. Whatever `module` itself raises.
    """
    artifact, given = artifact_of(exported), [Sample.of(s) for s in samples]
    if not given:
        raise ValueError("verify needs at least one sample, the arguments that the model was exported with")
    checks = [_probe(p, artifact, module, tolerances) for p in _probes(given)]
    return Report(artifact.exporter, (*checks, *_contract(artifact)), _tolerance_of(module, given[0], tolerances))


@dataclass(frozen=True)
class Probe:
    """Calls in a row, the last of which is compared; `failure` is the outcome when it differs.

    A refusal is `narrow` where it is `refusable`, as what was not seen at the export is; else `run`.
    """

    name: str
    calls: tuple[Sample, ...]
    failure: Outcome
    required: bool = True
    refusable: bool = False


def _probes(samples: list[Sample]) -> list[Probe]:
    first = samples[0]
    probes = [Probe("export inputs", (first,), Outcome.WRONG)]
    probes += [Probe("unseen size", (sample,), Outcome.FROZEN, refusable=True) for sample in samples[1:]]
    probes.append(Probe("other values", (_other_values(first),), Outcome.WRONG, required=False, refusable=True))
    if _repeated(first):
        probes.append(Probe("separate tensors", (_separated(first),), Outcome.WRONG))
    return [*probes, Probe("called twice", (first, first), Outcome.WRONG)]


def _probe(probe: Probe, artifact: Artifact, module: nn.Module, tolerances: Tolerances) -> Check:
    inputs = describe(probe.calls[-1])
    try:
        expected = last_returned(fresh(module), probe.calls)
    except Exception as error:
        if probe.required:
            error.add_note(f"raised by the module itself, in eager, on {inputs}: {probe.name}")
            raise
        return Check(probe.name, inputs, Outcome.SKIPPED, detail=f"eager refuses these values: {first_line(error)}")
    return Check(probe.name, inputs, *_compared(probe, artifact, expected, tolerances))


def _compared(probe: Probe, artifact: Artifact, expected: Any, tolerances: Tolerances) -> tuple[Outcome, float | None, str]:
    """Outcome, worst difference and what was seen."""
    try:
        actual = last_returned(artifact.fresh(), probe.calls)
    except Exception as error:  # noqa: BLE001 - whatever the runtime raises is what this check reports
        return Outcome.NARROW if probe.refusable else Outcome.RUN, None, first_line(error)
    difference = difference_of(expected, actual, tolerances)
    return probe.failure if difference.problem else Outcome.OK, difference.worst, difference.problem


def _contract(artifact: Artifact) -> list[Check]:
    """Whether names, their order, and the opset are as asked; nothing where nothing was asked."""
    asked, got = artifact.asked, artifact.got()
    pairs = (
        ("input names", asked.input_names, got.input_names),
        ("output names", asked.output_names, got.output_names),
        ("opset", asked.opset_version, got.opset_version),
    )
    return [_as_asked(name, wanted, given) for name, wanted, given in pairs if wanted is not None]


def _as_asked(name: str, wanted: Any, given: Any) -> Check:
    same = given[: len(wanted)] == wanted if isinstance(wanted, tuple) and given else given == wanted
    if same:
        return Check(name, "", Outcome.OK, detail="as asked")
    return Check(name, "", Outcome.WRONG, detail=f"asked for {_listed(wanted)}, got {_listed(given)}")


def _listed(value: Any) -> str:
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def _other_values(sample: Sample) -> Sample:
    return _mapped(sample, _moved)


def _moved(tensor: torch.Tensor) -> torch.Tensor:
    """Values that take other branches but stay in range: floats negated, integers and masks rolled, a single flag flipped."""
    if tensor.is_floating_point() or tensor.is_complex():
        return -tensor
    if tensor.dtype == torch.bool and tensor.numel() == 1:
        return ~tensor
    return tensor.roll(1) if tensor.numel() else tensor


def _repeated(sample: Sample) -> bool:
    counts = Counter(id(leaf) for leaf in sample.leaves() if isinstance(leaf, torch.Tensor))
    return max(counts.values(), default=0) > 1


def _separated(sample: Sample) -> Sample:
    """Every tensor its own: the i-th occurrence of one is scaled (floats) or rolled i times."""
    seen: Counter[int] = Counter()

    def separate(tensor: torch.Tensor) -> torch.Tensor:
        seen[id(tensor)] += 1
        times = seen[id(tensor)] - 1
        return tensor * (1 + 0.5 * times) if tensor.is_floating_point() else tensor.roll(times)

    return _mapped(sample, separate)


def _mapped(sample: Sample, change: Callable[[torch.Tensor], torch.Tensor]) -> Sample:
    return Sample(*pytree.tree_map_only(torch.Tensor, change, (sample.args, dict(sample.kwargs))))


def describe(sample: Sample) -> str:
    """Return the arguments in a few characters: dtype and shape of each tensor, other values as they are."""
    return ", ".join(_described(leaf) for leaf in sample.leaves())


def _described(leaf: Any) -> str:
    if not isinstance(leaf, torch.Tensor):
        return repr(leaf)
    return show.annotation(str(leaf.dtype).removeprefix("torch."), leaf.shape)


def _tolerance_of(module: nn.Module, sample: Sample, tolerances: Tolerances) -> str:
    dtypes = {leaf.dtype for leaf in pytree.tree_leaves(called_once(module, sample)) if isinstance(leaf, torch.Tensor)}
    return "; ".join(f"{str(dtype).removeprefix('torch.')} {tolerance_text(dtype, tolerances)}" for dtype in sorted(dtypes, key=str))
