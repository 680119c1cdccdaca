"""Define the events of an examination. They contain plain data only, because they are sent from child to parent through a pipe."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..infer_dynamic_shapes import Moving
from ..isolation import Failure
from ..outcomes import Outcome, only_closed
from ..verification.report import Check
from .lines import SourceLine

MODEL = "{model}"
STAYS = "the model writes into its inputs ("  # start of a warning of `to_onnx`: the exported model doesn't modify its inputs


@dataclass(frozen=True)
class Started:
    """A step has started."""

    step: str


@dataclass(frozen=True)
class LeftOut:
    """A step was skipped for lack of time, failed or took too long. `why` is the reason."""

    step: str
    why: str = "no time was left"


@dataclass(frozen=True)
class Summary:
    """A summary of the model and its samples, without weights. `arguments` are the names of the arguments of `forward`."""

    samples: tuple[str, ...]
    made: tuple[str, ...]
    moving: tuple[Moving, ...]
    changing: tuple[str, ...]
    unlike: str
    twice: tuple[str, ...]
    dynamic_shapes: str
    declared: bool
    at: SourceLine | None
    train: bool
    was_training: bool
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Unusable:
    """The input can't be used. `failure` has the reason and the line."""

    failure: Failure


@dataclass(frozen=True)
class Eager:
    """The behaviour of the module in eager: generated samples it accepts, whether it draws random numbers, and its mode.

    Attributes:
        weights: size of the weights in bytes. changes: arguments that a call modifies, and that the caller can read afterwards.
    """

    valid: tuple[int, ...]
    random: bool
    training: bool
    weights: int
    changes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Captured:
    """A captured graph as text, with the line of each operator and of the first write to a buffer or an input.

    Attributes:
        schemas: schemas of custom operators.
    """

    graph: tuple[str, ...]
    lines: Mapping[str, SourceLine]
    writes: SourceLine | None
    schemas: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Capture:
    """The result of a capture: `strict`, `non-strict` or `draft`."""

    how: str
    found: Captured | Failure


@dataclass(frozen=True)
class Refusal:
    """The error of `to_onnx` for a program of torch.export. It describes problems that are silent in other exporters."""

    failure: Failure


@dataclass(frozen=True)
class Trial:
    """One export and its outcome.

    Attributes:
        label: the exporter and the workaround, if any.
        checks: the checks of `verify`. save: the error, if the model can't be written.
        nodes: number of nodes. bytes: total size of the files. file: path of the model during the examination.
        ratio: rough duration of a call relative to eager, measured alternately.
        node, op, at: the ONNX node for which the runtime raises an error, its operator, and its source line.
        only: the limited inputs for which the export is valid, if not for all samples.
        before: Python code that precedes the export, with the placeholders `{model}` and `{shapes}`. exports: the expression to export.
        plain: whether no workaround was used.
        shapes: the `dynamic_shapes` of the export, if they differ from those of the samples. said: messages of exporter and runtime.
    """

    exporter: str
    label: str
    outcome: Outcome = Outcome.OK
    failure: Failure | None = None
    checks: tuple[Check, ...] = ()
    save: Failure | None = None
    nodes: int | None = None
    bytes: int | None = None
    file: str = ""
    ratio: float | None = None
    node: str = ""
    op: str = ""
    at: SourceLine | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    only: str = ""
    before: str = ""
    exports: str = MODEL
    plain: bool = True
    shapes: str = ""
    said: tuple[str, ...] = ()

    @property
    def right(self) -> bool:
        """Whether the export is correct for all samples and can be written."""
        return self.outcome is Outcome.OK and self.save is None

    @property
    def only_closed(self) -> bool:
        """Whether the only wrong results are those where a mask hides everything."""
        return self.save is None and only_closed(self.outcome, (check.values for check in self.checks if check.failed))

    @property
    def warns_of_its_arguments(self) -> bool:
        """Whether the exporter printed a warning that the exported model doesn't modify its arguments."""
        return any(STAYS in line for line in self.said)


@dataclass(frozen=True)
class Diverged:
    """The captured node with the largest numerical difference in one export."""

    label: str
    node: str
    op: str
    onnx: tuple[str, ...]
    at: SourceLine | None
    table: str


@dataclass(frozen=True)
class PathSplit:
    """The line at which eager diverges from the `capture`, from a call with another `sample`, or from the `second call`."""

    how: str
    at: SourceLine


@dataclass(frozen=True)
class CarriedState:
    """State in attributes other than buffers that a call changes, and the line that changes it.

    Attributes:
        code: verified lines to paste that pass the state in and out. exporters: the exporters they were verified with.
        once: whether only the first call changes the state. The code then makes that call before the export.
    """

    names: tuple[str, ...]
    at: SourceLine | None
    code: str = ""
    exporters: tuple[str, ...] = ()
    once: bool = False


@dataclass(frozen=True)
class AppliedFix:
    """A verified change of the user's code. Without `at`, it means that the search is complete.

    Attributes:
        at: the line that caused the search. what: a description. code: the new lines to paste. exporters: those that are correct with it.
    """

    at: SourceLine | None = None
    what: str = ""
    code: str = ""
    exporters: tuple[str, ...] = ()


@dataclass(frozen=True)
class Saved:
    """The best export was written."""

    path: str


Event = (
    Started | LeftOut | Summary | Unusable | Eager | Capture | Refusal | Trial | Diverged | PathSplit | CarriedState | AppliedFix | Saved
)
Tell = Callable[[Event], None]
