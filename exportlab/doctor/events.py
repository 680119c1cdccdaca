"""Name all that an examination brings: one class each, of plain data, since they cross a pipe from child to parent."""

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
STAYS = "the model writes into its inputs ("  # so begins the warning of `to_onnx` that the file leaves them as they are


@dataclass(frozen=True)
class Started:
    """A step begins."""

    step: str


@dataclass(frozen=True)
class LeftOut:
    """There was no time for a step, or, of the last ones, it failed or took too long: why says which."""

    step: str
    why: str = "no time was left"


@dataclass(frozen=True)
class Summary:
    """A patient without its weights. The arguments are those that `forward` is given, by name."""

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
    """Why the input cannot be used, and where."""

    failure: Failure


@dataclass(frozen=True)
class Eager:
    """The module by itself: which of the made samples it takes, whether it draws random numbers, and what it holds.

    Attributes:
        weights: in bytes. changes: the arguments that a call writes into, which the caller has after it.
    """

    valid: tuple[int, ...]
    random: bool
    training: bool
    weights: int
    changes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Captured:
    """A captured graph as text, where each of its operators is called, and where it first writes into a buffer or an input.

    Attributes:
        schemas: of the operators that are not torch's own.
    """

    graph: tuple[str, ...]
    lines: Mapping[str, SourceLine]
    writes: SourceLine | None
    schemas: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Capture:
    """One way to capture, `strict`, `non-strict` or `draft`, and what came of it."""

    how: str
    found: Captured | Failure


@dataclass(frozen=True)
class Refusal:
    """What `to_onnx` refuses of the program of torch.export, which names what others keep silent about."""

    failure: Failure


@dataclass(frozen=True)
class Trial:
    """One export, and what came of it.

    Attributes:
        label: the exporter, and what was done differently.
        checks: what `verify` looked at. save: why the file cannot be written.
        nodes: of the file. bytes: of all its files. file: its path, as long as the examination lasts.
        ratio: a call of the file in calls of eager, measured in turns: rough.
        node, op, at: the ONNX node that the runtime refuses, and the line that it comes from.
        only: what it holds for, where that is less than asked.
        before: a line of Python that comes before the export, `{model}` and `{shapes}` to be filled in. exports: what is exported in it.
        plain: whether nothing was done differently from what was asked.
        shapes: its own `dynamic_shapes`, where they are others than those of the samples. said: what exporter and runtime said.
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
        """Whether it is right at every size and can be written."""
        return self.outcome is Outcome.OK and self.save is None

    @property
    def only_closed(self) -> bool:
        """Whether nothing is wrong with it but its answers to values at which a mask hides everything."""
        return self.save is None and only_closed(self.outcome, (check.values for check in self.checks if check.failed))

    @property
    def warns_of_its_arguments(self) -> bool:
        """Whether the exporter said that the model writes into its arguments, and the file does not."""
        return any(STAYS in line for line in self.said)


@dataclass(frozen=True)
class Diverged:
    """The captured node that adds the most to what differs in the file of one export."""

    label: str
    node: str
    op: str
    onnx: tuple[str, ...]
    at: SourceLine | None
    table: str


@dataclass(frozen=True)
class PathSplit:
    """Where the lines that run in eager part from others: in the `capture`, with another `sample`, or in the `second call`."""

    how: str
    at: SourceLine


@dataclass(frozen=True)
class CarriedState:
    """What a call changes in attributes that are no buffers, and where.

    Attributes:
        code: lines to paste that hand it in and out, where these were seen to be right; by which exporters.
        once: whether the first call alone changes it, so that the lines only make that call before the export.
    """

    names: tuple[str, ...]
    at: SourceLine | None
    code: str = ""
    exporters: tuple[str, ...] = ()
    once: bool = False


@dataclass(frozen=True)
class AppliedFix:
    """A change of the user's lines that was tried, and is right; without a place: the search has come to its end.

    Attributes:
        at: the line that it began with. what: what is done. code: the new lines, to paste. exporters: those that are right with it.
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
