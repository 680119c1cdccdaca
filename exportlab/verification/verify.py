"""Verify an exported model against eager at the export's sizes and at others, with checks for silent failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from fx2onnx.compat import trees as pytree

from ..cases import Sample
from ..eager import copy_sample, fresh
from ..exporters import Artifact, Exported, artifact_of
from ..exporters.session import ProviderError, check_present, get_requested_providers, running_on
from ..exporters.to_onnx import caches_known
from ..messages import heard
from ..outcomes import Outcome
from ..samples import Samples, check_module, samples_of
from .call_signature import other_kind
from .check_spec import CheckSpec, UnderTest
from .checking import run_check
from .decision_coverage import cover_decisions
from .dependence import Dependence
from .devices import Device, Provider, device_of, named_options
from .difference import Tolerances, check_tolerances, tolerance_text
from .report import VALUES, Check, Report, never_judged
from .runtime import check_runtime
from .thresholds import thresholds
from .values import ELSEWHERE, USUAL, Mutation, mutate_sample


def verify(
    exported: Exported,
    module: nn.Module,
    samples: Samples,
    *,
    tolerances: Tolerances | None = None,
    providers: Sequence[Provider] | None = None,
) -> Report:
    """Run an exported model and the module on the same inputs, without gradients, and report the differences.

    The first sample is the one used for the export. Pass other samples to check other sizes. Further checks are generated:

    - Other values, derived from the first sample: floats that are negated, scaled up and down, zero, or have one large element, one NaN
      or one infinity; integers that are shifted, at their minimum and maximum, zero or doubled; masks that are shifted, all true, all
      false, or flipped at the end. Masks of the other samples are also flipped at the end, because the handling of hidden positions may
      depend on a size.
    - Separate tensors, if one tensor was passed twice, and the same call twice.
    - Both sides of a size test in the module or the exported model for which all samples give the same answer. The arguments must need
      at most 16 MiB. Sizes of 0 and 1 need a sample.
    - Conditions, masks and numbers that the module depends on. The report lists those that no sample changes, because their other side
      is untested.
    - Requested names and opset.

    Differences that are only rounding, according to the module in float64, count as right and are reported. If eager itself is more than
    100 tolerances from its float64 result, an output is not judged, and the report is not ok unless other inputs cover that output. The
    module and the samples are copied and never changed. Samples that eager rejects are reported and skipped. The report is not ok if
    `verify` itself fails to run a check.

    Args:
        exported: an `Artifact`, a `torch.onnx.ONNXProgram` or a `torch.export.ExportedProgram`.
        samples: a list, or one: a tuple of arguments, `(args, kwargs)`, a dict of keyword arguments, a tensor, or a `Sample`.
        tolerances: `(rtol, atol)` by dtype, used without scaling; other dtypes must be equal. The default is
            `exportlab.verification.difference.TOLERANCES`, with `atol` multiplied by the scale of the output.
        providers: the ONNX Runtime providers to use, by default the CPU. Each is a name, such as `"CUDAExecutionProvider"`, or a pair
            with options, such as `("CUDAExecutionProvider", {"use_tf32": "1"})`. TF32 is off unless requested. If torch supports CUDA
            too, the module also runs there. The report contains the provider and its options.

    Raises:
        MissingRuntime (an `ImportError`): `exported` is an ONNX model, and ONNX Runtime cannot be imported.
        ProviderError (a `ValueError`): a requested provider is not in this ONNX Runtime, doesn't start, or cannot run this artifact.
        TypeError: `exported`, `module`, a sample or the tolerances have the wrong type, or the module cannot be copied.
        ValueError: there are no samples, or a tensor is not dense or has no data.
    """
    artifact = artifact_of(exported)
    check_runtime(artifact)
    check_module(module)
    given = samples_of(samples, module)
    check_tolerances(tolerances)
    if providers is None:
        return _heard(artifact, module, given, tolerances, device_of(get_requested_providers(), {}))
    names, options = named_options(providers)
    check_present(names)
    with running_on(names, options=options):
        ready = artifact.unloaded()
        _check_used(ready)
        return _heard(ready, module, given, tolerances, device_of(names, options))


def _check_used(artifact: Artifact) -> None:
    """Check that each requested provider is used.

    Raises:
        ProviderError: a provider is not used.
    """
    try:
        artifact.load()
    except Exception:  # noqa: BLE001 - the first check reports errors of the runtime
        return
    if why := artifact.unused():
        raise ProviderError(why)


def _heard(
    artifact: Artifact, module: nn.Module, given: Sequence[Sample], tolerances: Tolerances | None, device: Device | None = None
) -> Report:
    with heard() as said, caches_known():
        _check_dense(given)
        _check_copied(module, given)
        report = _looked_at(artifact, module, given, tolerances, device)
    return replace(report, said=tuple(said), ran_on=artifact.ran_on(), instead=artifact.instead(), settings=artifact.settings())


def _check_dense(samples: Sequence[Sample]) -> None:
    for leaf in (leaf for sample in samples for leaf in sample.leaves() if isinstance(leaf, torch.Tensor)):
        if leaf.is_meta:
            raise ValueError("a sample contains a tensor on the meta device, which has no data: pass one with data")
        if leaf.layout != torch.strided:
            raise ValueError(f"a sample contains a {leaf.layout} tensor, whose values cannot be varied: convert it with to_dense()")


def _check_copied(module: nn.Module, samples: Sequence[Sample]) -> None:
    """Raise errors of copying before any checks run, so that they are not attributed to eager."""
    fresh(module)
    for sample in samples:
        copy_sample(sample)


def _looked_at(
    artifact: Artifact, module: nn.Module, given: Sequence[Sample], tolerances: Tolerances | None, device: Device | None
) -> Report:
    subject, dependence = UnderTest(artifact, module, tolerances, (given[0],), device), Dependence()
    kinds = [other_kind(module, given[0], sample) for sample in given[1:]]
    probes = [*_sizes(given, kinds), *_usual(given[0]), *_elsewhere(given[1:], kinds)]
    checks = [run_check(probe, subject, dependence) for probe in probes]
    checks += _beyond(subject, [given[0], *(other for other, kind in zip(given[1:], kinds, strict=True) if not kind)])
    accepted = [probe for probe, check in zip(probes, checks, strict=False) if not (check.refused or check.is_unchecked)]
    reach = cover_decisions(module, given[0], accepted, subject.patience.seconds)
    checks += [run_check(_make_values_probe(variation, sample), subject, dependence) for variation, sample in reach.further]
    checks += [run_check(probe, subject) for probe in _repeats(given[0])]
    checks += [*never_judged(checks), *dependence.checks(module), *reach.checks(), *_contract(artifact)]
    return Report(artifact.exporter, tuple(_frozen_only_if_right_before(checks)), _tolerance_of(subject.dtypes, tolerances))


def _beyond(subject: UnderTest, samples: Sequence[Sample]) -> list[Check]:
    """Return the checks on both sides of size tests, without sizes that eager rejects."""
    found = thresholds(subject.artifact, subject.module, samples)
    checks = (run_check(probe, subject) for probe in found.probes)
    return [*(check for check in checks if not check.refused), *found.checks]


def _frozen_only_if_right_before(checks: Sequence[Check]) -> Iterator[Check]:
    """Replace `frozen` by `wrong` if the model is also wrong at the size of the export."""
    stuck = checks[0].outcome is not Outcome.WRONG
    for check in checks:
        yield check if stuck or check.outcome is not Outcome.FROZEN else replace(check, outcome=Outcome.WRONG)


def _sizes(samples: Sequence[Sample], kinds: Sequence[str]) -> list[CheckSpec]:
    """Return the probes for the given samples, in order."""
    first, *others = samples
    probes = [CheckSpec("unseen size", (sample,), Outcome.FROZEN, refusable=True) for sample in others]
    unlike = [
        CheckSpec("another kind of call", (sample,), Outcome.WRONG, refusable=True, why=f"{kind}: ")
        for sample, kind in zip(others, kinds, strict=True)
    ]
    chosen = [b if kind else a for a, b, kind in zip(probes, unlike, kinds, strict=True)]
    return [CheckSpec("export inputs", (first,), Outcome.WRONG), *chosen]


def _elsewhere(others: Sequence[Sample], kinds: Sequence[str]) -> list[CheckSpec]:
    """Return the probes with other values at sizes other than the export's."""
    sizes = [sample for sample, kind in zip(others, kinds, strict=True) if not kind]
    return [_make_values_probe(*changed, Outcome.FROZEN) for sample in sizes for changed in mutate_sample(sample, ELSEWHERE)]


def _usual(first: Sample) -> list[CheckSpec]:
    return [_make_values_probe(variation, sample) for variation, sample in mutate_sample(first, USUAL)]


def _make_values_probe(variation: Mutation, sample: Sample, failure: Outcome = Outcome.WRONG) -> CheckSpec:
    return CheckSpec(VALUES, (sample,), failure, refusable=True, variation=variation)


def _repeats(first: Sample) -> list[CheckSpec]:
    probes = [CheckSpec("separate tensors", (_separate_tensors(first),), Outcome.WRONG)] if _has_repeated_tensor(first) else []
    return [*probes, CheckSpec("called twice", (first, first), Outcome.WRONG)]


def _contract(artifact: Artifact) -> list[Check]:
    """Compare the requested names, their order, and the opset with those of the model."""
    asked, got = artifact.asked, artifact.got()
    pairs = (
        ("input names", asked.input_names, got.input_names),
        ("output names", asked.output_names, got.output_names),
        ("opset", asked.opset_version, got.opset_version),
    )
    return [_check_against_request(name, wanted, given) for name, wanted, given in pairs if wanted is not None]


def _check_against_request(name: str, wanted: Any, given: Any) -> Check:
    same = given[: len(wanted)] == wanted if isinstance(wanted, tuple) and given else given == wanted
    if same:
        return Check(name, "", Outcome.OK, detail="as asked")
    return Check(name, "", Outcome.WRONG, detail=f"asked for {_format_names(wanted)}, got {_format_names(given)}")


def _format_names(value: Any) -> str:
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def _has_repeated_tensor(sample: Sample) -> bool:
    counts = Counter(id(leaf) for leaf in sample.leaves() if isinstance(leaf, torch.Tensor))
    return max(counts.values(), default=0) > 1


def _separate_tensors(sample: Sample) -> Sample:
    """Make all tensors distinct: scale (floats) or roll the i-th occurrence of a tensor i times."""
    seen: Counter[int] = Counter()

    def separate(tensor: torch.Tensor) -> torch.Tensor:
        seen[id(tensor)] += 1
        times = seen[id(tensor)] - 1
        return tensor * (1 + 0.5 * times) if tensor.is_floating_point() else tensor.roll(times)

    return Sample(*pytree.tree_map_only(torch.Tensor, separate, (sample.args, dict(sample.kwargs))))


def _tolerance_of(dtypes: set[torch.dtype], tolerances: Tolerances | None) -> str:
    return "; ".join(f"{str(dtype).removeprefix('torch.')} {tolerance_text(dtype, tolerances)}" for dtype in sorted(dtypes, key=str))
