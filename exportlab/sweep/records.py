"""Read and write records: one JSON line per run, in a file that is only appended to.

Schema 1: a line `{"schema": 1, "environment": {"id": …, versions, processor, threads, date}}` precedes the records made in that
environment. Each `Record` is a line whose keys are its fields. A run has one record. If its process was killed from outside, a second
record may follow and replaces the first. An incomplete last line is ignored.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ..checks import must_be_path
from ..diagnostics import Heard
from ..exporters.session import CPU
from ..measure.benchmark import environment as seen_here
from ..measure.benchmark import save
from ..measure.timing import Timings
from ..outcomes import CLOSED_ALONE as CLOSED_ALONE
from ..outcomes import Mark, Outcome, mark, only_closed
from ..printable import one_line
from ..verification.report import VALUES
from .fields import check_environment, check_record, row_of

SCHEMA = 1
PACKAGES = ("torch", "onnx", "onnx-ir", "onnxscript", "onnxruntime", "transformers", "numpy")
VARYING = ("date", "id")  # fields of an environment that may differ between two runs in the same environment
FIGURES = ("export", "save", "load", "call")
EAGER = "eager itself: "  # prefix of the error of a run that ended before the export
FROM_OUTSIDE = re.compile(rf"({EAGER})?ProcessDied: (the worker: )?killed by SIG(KILL|TERM|INT|HUP|QUIT)")


class Key(NamedTuple):
    """The key of a record within a sweep."""

    case: str
    exporter: str
    mode: str
    round: int = 1

    def __str__(self) -> str:
        return f"{self.case}, {self.exporter}, {self.mode}, round {self.round}"


@dataclass(frozen=True)
class Record(Heard):
    """One run: a case, exported by one exporter in one mode, and its result.

    Attributes:
        mode: `static` (all sizes as in the example) or `dynamic` (the named dimensions are dynamic).
        round: the number of the repetition, from 1.
        outcome: the result, as defined on the page *Outcomes*.
        error: type and first line of the error that ended the run.
        where: the line of the case's file that raised the error, `FILE:LINE`.
        failed: the failed checks of the report, as `check`, `inputs`, `outcome`, `worst`, `detail`. An artifact that can't be written to a
            file adds a check `save`, which doesn't change the outcome.
        seconds: medians of `export`, `save`, `load`, and of a `call` of the artifact and of the module in `eager` mode.
        peak_bytes: growth of memory during the export; weights_bytes: size of parameters and buffers, shared ones counted once.
        bytes: size of the saved file, external data included; nodes: their number, including subgraphs and functions.
        worst: the largest absolute difference from eager mode, if it is finite.
        said: messages of exporter and runtime, each line once. Empty in old records.
        was_training: whether the factory returned the module in training mode. It was exported in `eval()` mode.
        ran_on: the providers of ONNX Runtime that ran the model, in order, or the device. Empty if nothing ran, and in old records.
            instead: a note if a requested provider didn't run the model.
        file: the user's file that contains the case, as given. Empty for cases of the test suite.
        environment: the `id` of the environment of the run.
    """

    case: str
    exporter: str
    mode: str
    outcome: Outcome
    round: int = 1
    error: str | None = None
    where: str | None = None
    failed: tuple[Mapping[str, Any], ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    peak_bytes: int | None = None
    weights_bytes: int | None = None
    bytes: int | None = None
    nodes: int | None = None
    worst: float | None = None
    said: tuple[str, ...] = ()
    was_training: bool = False
    ran_on: tuple[str, ...] = ()
    instead: str = ""
    file: str = ""
    environment: str = ""
    schema: int = SCHEMA

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Record:
        """Return the record with these fields, as read from JSON.

        Raises:
            ValueError: a field is missing, unknown, or has an invalid value.
        """
        check_record(fields)
        lists = {name: tuple(fields.get(name, ())) for name in ("failed", "said", "ran_on")}
        return cls(**{**fields, "outcome": Outcome(fields["outcome"]), **lists})

    @property
    def key(self) -> Key:
        """The key of this record within its sweep."""
        return Key(self.case, self.exporter, self.mode, self.round)

    @property
    def killed(self) -> bool:
        """Whether its process was killed from outside, judged by the signal. The exporter wasn't tested then."""
        return self.outcome is Outcome.CRASH and FROM_OUTSIDE.fullmatch(self.error or "") is not None

    @property
    def of_eager(self) -> bool:
        """Whether the case hung or died before the export."""
        return self.outcome in (Outcome.CRASH, Outcome.TIMEOUT) and (self.error or "").startswith(EAGER) and not self.killed

    @property
    def only_closed(self) -> bool:
        """Whether it is wrong only for values where a mask hides everything, regardless of warnings."""
        return only_closed(self.outcome, self._values())

    @property
    def mark(self) -> Mark:
        """The mark under which pages count this record."""
        return mark(self.outcome, self._values(), self.warned)

    def _values(self) -> list[str]:
        return [check["inputs"].partition(": ")[0] if check["check"] == VALUES else "" for check in self.failed]

    def line(self) -> str:
        """Return the record as one line of JSON."""
        return json.dumps(asdict(self), allow_nan=False)


def finite(value: float | None) -> float | None:
    """Return the number if JSON can represent it, else None."""
    return value if value is not None and math.isfinite(value) else None


def environment(threads: int, packages: Iterable[str] = PACKAGES, providers: Sequence[str] = (CPU,)) -> dict[str, Any]:
    """Return versions, processor, threads and date. Environments that differ only in the date have the same `id`.

    Args:
        providers: the requested providers of ONNX Runtime. They are recorded unless only the CPU was requested.
    """
    asked = {} if tuple(providers) == (CPU,) else {"providers_asked": ", ".join(providers)}
    found = {**seen_here(packages), "torch_threads": threads, **asked}
    stable = json.dumps({key: found[key] for key in sorted(found) if key not in VARYING})
    return {"id": hashlib.sha256(stable.encode()).hexdigest()[:8], **found}


class RecordsError(ValueError):
    """A file of records cannot be used. The message is one line with the position in the file, or the differences."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


def diff_environments(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Describe the differences between two environments, such as `torch_version 2.12.0, now 2.13.0`."""
    keys = [key for key in {**old, **new} if key not in VARYING and old.get(key) != new.get(key)]
    return "; ".join(f"{key} {old.get(key, 'unknown')}, now {new.get(key, 'unknown')}" for key in keys) or "no difference"


def read(path: str | Path) -> list[Record]:
    """Return the records of a file in order.

    An incomplete last line is ignored. If a run was repeated because its process was killed from outside, only the repetition is returned.

    Raises:
        TypeError, ValueError: the argument is not a path. OSError: the file cannot be read. RecordsError: it is not a regular file, or a
            complete line is not a record of this schema, or is a second record of the same run.
    """
    return latest(parse_records(_content(path), Path(path))[1])


def environments(path: str | Path) -> dict[str, dict[str, Any]]:
    """Return the environments of a file of records by `id`. Raises what `read` raises."""
    return parse_records(_content(path), Path(path))[0]


def latest(records: Iterable[Record]) -> list[Record]:
    """Return the last record of each run."""
    return list({record.key: record for record in records}.values())


def _content(path: str | Path) -> bytes:
    must_be_path(path=path)
    check_regular(Path(path))
    return Path(path).read_bytes()


def check_regular(path: Path) -> None:
    """Raise a RecordsError if the path, or the target of a link, exists but is not a regular file."""
    kinds = {"folder": path.is_dir, "pipe": path.is_fifo, "socket": path.is_socket}
    if path.exists() and not path.is_file():
        kind = next((kind for kind, holds in kinds.items() if holds()), "device")
        raise RecordsError(f"{path} is a {kind}: records need a regular file")


def drop_torn_line(content: bytes) -> bytes:
    """Return the complete lines. A last line without a newline is incomplete."""
    return content[: content.rfind(b"\n") + 1]


def parse_records(content: bytes, path: Path) -> tuple[dict[str, dict[str, Any]], list[Record]]:
    """Return the environments and records of all complete lines. `path` appears in error messages.

    Raises:
        RecordsError: a line is neither, the first line is not an environment, or a run has two records and the first was not killed.
    """
    environments: dict[str, dict[str, Any]] = {}
    records: list[Record] = []
    latest: dict[Key, tuple[int, Record]] = {}
    lines = drop_torn_line(content).split(b"\n")[:-1]
    if content and not lines:
        raise RecordsError(f"{path}:1 is not a record: the line does not end with a newline")
    for number, line in enumerate(lines, 1):
        found = _row(line, f"{path}:{number}")
        if not isinstance(found, Record):
            environments[found["id"]] = found
            continue
        before = latest.get(found.key)
        if not environments:
            raise RecordsError(f"{path}:{number} is not a record of a sweep: a line with the environment must precede it")
        if before and not before[1].killed:
            raise RecordsError(f"{path}:{number} is a second record of {found.key}, after line {before[0]}")
        latest[found.key] = number, found
        records.append(found)
    return environments, records


def _row(line: bytes, place: str) -> Record | dict[str, Any]:
    try:
        row = row_of(line)
        if "schema" not in row:
            raise ValueError("it does not have a schema")
        if (schema := row["schema"]) == SCHEMA:
            return _environment(row) if isinstance(row.get("environment"), dict) else Record.of(row)
    except ValueError as error:
        raise RecordsError(f"{place} is not a record: {error}") from error
    raise RecordsError(f"{place} has schema {str(schema)[:20]}, this version reads schema {SCHEMA}")


def _environment(row: Mapping[str, Any]) -> dict[str, Any]:
    check_environment(row["environment"])
    return dict(row["environment"])


def groups(records: Iterable[Record]) -> dict[tuple[str, str, str], list[Record]]:
    """Group records by case, exporter and mode: the rounds of each run."""
    found: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        found.setdefault(record.key[:3], []).append(record)
    return found


def save_pyperf(records: Iterable[Record], path: str | Path, environment: Mapping[str, Any]) -> Path:
    """Write the seconds of export, save, load and call as pyperf JSON, one value per round, for `python -m pyperf compare_to`.

    Raises:
        OSError: the file cannot be written. RecordsError: no record has any seconds, or a record has implausible values.
    """
    timings = {}
    for names, rounds in groups(map(_validate_record, records)).items():
        reached = [figure for figure in FIGURES if all(figure in r.seconds for r in rounds)]
        if reached:
            timings[", ".join(names)] = Timings((), tuple({figure: r.seconds[figure] for figure in reached} for r in rounds))
    if not timings:
        raise RecordsError("no record has any seconds: nothing was exported")
    return save(path, timings, {key: value for key, value in environment.items() if key != "id"})


def _validate_record(record: Record) -> Record:
    try:
        check_record(asdict(record))
    except ValueError as error:
        raise RecordsError(f"{record.key}: {error}") from error
    return record
