"""Compare several exporters on one model. For many models, or stored records, use a sweep."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from torch import nn

from .. import show
from ..cases import DynamicShapes, Sample
from ..checks import must_be, must_be_names
from ..defaults import EXPORTERS
from ..diagnostics import Heard, merge_lines, names_cause
from ..eager import copy_sample, fresh
from ..exporters import Artifact, Exporter, get
from ..exporters.to_onnx import ToOnnxError
from ..messages import first_line, heard, root
from ..outcomes import Mark, Outcome, mark
from ..samples import Samples, check_module, samples_of
from .report import Report
from .verify import verify

MESSAGE = 120  # maximum number of characters of a message in a table


@dataclass(frozen=True)
class Attempt(Heard):
    """The result of one exporter: the outcome, and the artifact, report, error and the seconds of each step, as far as it got.

    `said` contains warnings of the exporter and the runtime, without noise (see `exportlab.diagnostics`).
    """

    exporter: str
    outcome: Outcome
    artifact: Artifact | None = None
    report: Report | None = None
    error: Exception | None = None
    said: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def mark(self) -> Mark:
        """How pages count the export."""
        return mark(self.outcome, (check.values for check in self.report.failed) if self.report else (), self.warned)

    def row(self) -> dict[str, Any]:
        """Return the row of the table."""
        return {
            "exporter": self.exporter,
            "outcome": self.outcome,
            "nodes": self.artifact.ops().total() if self.artifact else "",
            "max diff": f"{self.report.worst:.1e}" if self.report and self.outcome in (Outcome.OK, Outcome.WRONG) else "",
            "what was seen": textwrap.shorten(self._seen(), MESSAGE, placeholder=" …"),
            "what it warned of": textwrap.shorten("; ".join(filter(names_cause, self.said)), MESSAGE, placeholder=" …"),
        }

    def _seen(self) -> str:
        if self.error is not None:
            return reason(self.error)
        failed = [c for c in self.report.checks if c.outcome == self.outcome != Outcome.OK] if self.report else []
        return f"{failed[0].name} ({failed[0].inputs}): {failed[0].detail}" if failed else ""


def reason(error: Exception) -> str:
    """Return why an export failed, in one line: the message of `to_onnx`, or the root cause for other exporters."""
    return first_line(error if isinstance(error, ToOnnxError) else root(error))


@dataclass(frozen=True, repr=False)
class Comparison(show.Tabular):
    """The attempts by exporter, printed as a table and rendered as HTML."""

    attempts: Mapping[str, Attempt]

    def __getitem__(self, exporter: str) -> Attempt:
        return self.attempts[exporter]

    def outcomes(self) -> dict[str, Outcome]:
        """Return the outcome of each exporter."""
        return {name: attempt.outcome for name, attempt in self.attempts.items()}

    def _table(self) -> show.Table:
        return show.table([attempt.row() for attempt in self.attempts.values()])


def compare(
    module: nn.Module,
    samples: Samples,
    *,
    dynamic_shapes: DynamicShapes = None,
    exporters: Sequence[str] = EXPORTERS,
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> Comparison:
    """Export `module` with the first sample, with each exporter, and verify each result on all samples.

    Args:
        samples: the samples, in any form that `verify` accepts.
        options: further arguments of `export`, by exporter.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: an exporter is unknown or cannot run here. Errors of `module` itself are passed through, but errors of exporters
            become outcomes.
    """
    check_module(module)
    must_be_names(exporters=exporters)
    given, further = samples_of(samples, module), _options(options)
    return Comparison({name: attempt(get(name), module, given, dynamic_shapes, **further.get(name, {})) for name in exporters})


def _options(given: Any) -> Mapping[str, Mapping[str, Any]]:
    """Check the options of the exporters and return them.

    Raises:
        TypeError: they are not a mapping of mappings.
    """
    must_be(Mapping, type(None), options=given)
    for exporter, options in (given or {}).items():
        must_be(Mapping, **{f"options[{exporter!r}]": options})
    return given or {}


def attempt(
    exporter: Exporter, module: nn.Module, samples: Sequence[Sample], dynamic_shapes: DynamicShapes = None, **options: Any
) -> Attempt:
    """Run one exporter on a copy of a module. Errors of the exporter or the runtime become outcomes."""
    return run_verify_step(run_load_step(run_export_step(exporter, module, samples[0], dynamic_shapes, **options)), module, samples)


def run_export_step(exporter: Exporter, module: nn.Module, sample: Sample, dynamic_shapes: DynamicShapes = None, **options: Any) -> Attempt:
    """Run the first step: export the module, and return the artifact or the exporter's error."""
    own, given = fresh(module), copy_sample(sample)
    with heard() as said:
        tried = _time_export(exporter, lambda: exporter.export(own, given.args, given.kwargs, dynamic_shapes=dynamic_shapes, **options))
    return replace(tried, said=tuple(said))


def run_load_step(tried: Attempt) -> Attempt:
    """Run the second step: load the artifact, and record an error of the runtime. A failed attempt is returned unchanged."""
    if tried.artifact is None:
        return tried
    with heard() as said:
        tried = _time_load(tried, tried.artifact)
    return replace(tried, said=merge_lines(tried.said, said))


def run_verify_step(tried: Attempt, module: nn.Module, samples: Sequence[Sample]) -> Attempt:
    """Run the third step: verify the artifact. A failed attempt is returned unchanged."""
    if tried.artifact is None or tried.error is not None:
        return tried
    report = verify(tried.artifact, module, samples)
    said = merge_lines(tried.said, report.said)
    return replace(tried, outcome=report.outcome, report=replace(report, said=said), said=said)


def _time_export(exporter: Exporter, export: Callable[[], Artifact]) -> Attempt:
    start = time.perf_counter()
    try:
        artifact = export()
    except Exception as error:  # noqa: BLE001 - any error of an exporter is a result
        return Attempt(exporter.name, Outcome(exporter.stage(error)), error=error)
    return Attempt(exporter.name, Outcome.OK, artifact, seconds={"export": time.perf_counter() - start})


def _time_load(tried: Attempt, artifact: Artifact) -> Attempt:
    start = time.perf_counter()
    try:
        artifact.load()
    except Exception as error:  # noqa: BLE001 - any error of the runtime is a result
        return replace(tried, outcome=Outcome.LOAD, error=error)
    return replace(tried, seconds={**tried.seconds, "load": time.perf_counter() - start})
