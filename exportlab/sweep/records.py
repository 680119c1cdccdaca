"""What was observed: one JSON line a run, in a file that only grows.

The file, schema 1: a line `{"schema": 1, "environment": {"id": …, versions, processor, threads, date}}` before the records made
in it, and a line for each `Record`, whose keys are its fields. A run has one; where it was killed from outside, another may follow,
which counts. A last line that was torn is not there.
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
VARYING = ("date", "id")  # of an environment, what may differ between two runs in the same one
FIGURES = ("export", "save", "load", "call")
EAGER = "eager itself: "  # begins the error of a run that ended before any exporter was asked
FROM_OUTSIDE = re.compile(rf"({EAGER})?ProcessDied: (the worker: )?killed by SIG(KILL|TERM|INT|HUP|QUIT)")  # not what a process does itself


class Key(NamedTuple):
    """What tells the records of one sweep apart."""

    case: str
    exporter: str
    mode: str
    round: int = 1

    def __str__(self) -> str:
        return f"{self.case}, {self.exporter}, {self.mode}, round {self.round}"


@dataclass(frozen=True)
class Record(Heard):
    """One run: a case, exported by one exporter in one mode, and what was seen.

    Attributes:
        mode: `static` (every size as in the example) or `dynamic` (the named axes move).
        round: counts the repetitions of the same run, from 1.
        outcome: what became of it, as the page *Outcomes* tells them apart.
        error: type and first line of the error that ended it.
        where: the line of the case's file that the error came from, `FILE:LINE`.
        failed: the checks of the report that failed, as `check`, `inputs`, `outcome`, `worst`, `detail`; that an artifact cannot
            be written to a file is one called `save`, which leaves the outcome as it is.
        seconds: of `export`, `save`, `load`, and of one `call` of the artifact and of the module in `eager`, medians.
        peak_bytes: how far memory rose during the export; weights_bytes: parameters and buffers, each counted once.
        bytes: of the saved file, external data included; nodes: subgraphs and functions included.
        worst: the largest absolute difference from eager, where it is finite.
        said: warnings of exporter and runtime, each line once; empty in records that were made before these were kept.
        was_training: whether the factory left the module in training mode, and it was exported as `eval()`.
        ran_on: the providers of ONNX Runtime that ran it, the first one first, or the device; empty where nothing ran, and in records that
            were made before it was kept. instead: a line, where a provider was asked for and did not run it.
        file: the user's file that the case stands in, as it was named; empty for cases of the zoo.
        environment: the `id` of the environment it was made in.
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
        """Return the record with these fields, as JSON holds them.

        Raises:
            ValueError: one is missing, is not known, or holds something else than it should.
        """
        check_record(fields)
        lists = {name: tuple(fields.get(name, ())) for name in ("failed", "said", "ran_on")}
        return cls(**{**fields, "outcome": Outcome(fields["outcome"]), **lists})

    @property
    def key(self) -> Key:
        """What tells it apart."""
        return Key(self.case, self.exporter, self.mode, self.round)

    @property
    def killed(self) -> bool:
        """Whether its process was killed from outside, as far as the signal tells: of the exporter, nothing was learned."""
        return self.outcome is Outcome.CRASH and FROM_OUTSIDE.fullmatch(self.error or "") is not None

    @property
    def of_eager(self) -> bool:
        """Whether the case hung or died before any exporter was asked."""
        return self.outcome in (Outcome.CRASH, Outcome.TIMEOUT) and (self.error or "").startswith(EAGER) and not self.killed

    @property
    def only_closed(self) -> bool:
        """Whether it is wrong, whatever was said, at nothing else than values at which a mask hides everything."""
        return only_closed(self.outcome, self._values())

    @property
    def mark(self) -> Mark:
        """What pages count it as."""
        return mark(self.outcome, self._values(), self.warned)

    def _values(self) -> list[str]:
        return [check["inputs"].partition(": ")[0] if check["check"] == VALUES else "" for check in self.failed]

    def line(self) -> str:
        """Return itself as one line of JSON."""
        return json.dumps(asdict(self), allow_nan=False)


def finite(value: float | None) -> float | None:
    """Return a number that JSON can hold, or None."""
    return value if value is not None and math.isfinite(value) else None


def environment(threads: int, packages: Iterable[str] = PACKAGES, providers: Sequence[str] = (CPU,)) -> dict[str, Any]:
    """Return versions, processor, threads and date, with an `id` that is the same wherever all but the date are.

    Args:
        providers: what ONNX Runtime is asked to run on, which is named where it is not the CPU alone.
    """
    asked = {} if tuple(providers) == (CPU,) else {"providers_asked": ", ".join(providers)}
    found = {**seen_here(packages), "torch_threads": threads, **asked}
    stable = json.dumps({key: found[key] for key in sorted(found) if key not in VARYING})
    return {"id": hashlib.sha256(stable.encode()).hexdigest()[:8], **found}


class RecordsError(ValueError):
    """A file of records cannot be used; the message is one line that says which line of the file, or what differs."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


def diff_environments(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Return what differs between two environments, as `torch_version 2.12.0, now 2.13.0`."""
    keys = [key for key in {**old, **new} if key not in VARYING and old.get(key) != new.get(key)]
    return "; ".join(f"{key} {old.get(key, 'unknown')}, now {new.get(key, 'unknown')}" for key in keys) or "no difference"


def read(path: str | Path) -> list[Record]:
    """Return the records of a file, in its order, without a torn last line, and without those of which the process was killed from
    outside, where the run was tried again.

    Raises:
        TypeError, ValueError: it is no path. OSError: it cannot be read. RecordsError: it is no regular file, or a line that ends is no
            record of this schema, or a second record of the same run.
    """
    return latest(parse_records(_content(path), Path(path))[1])


def environments(path: str | Path) -> dict[str, dict[str, Any]]:
    """Return the environments that the records of a file were made in, by their `id`. Raises what `read` raises."""
    return parse_records(_content(path), Path(path))[0]


def latest(records: Iterable[Record]) -> list[Record]:
    """Return the last record of each run."""
    return list({record.key: record for record in records}.values())


def _content(path: str | Path) -> bytes:
    must_be_path(path=path)
    check_regular(Path(path))
    return Path(path).read_bytes()


def check_regular(path: Path) -> None:
    """Raise a RecordsError where there is something at this path, or at the end of a link there, that is no regular file."""
    kinds = {"folder": path.is_dir, "pipe": path.is_fifo, "socket": path.is_socket}
    if path.exists() and not path.is_file():
        kind = next((kind for kind, holds in kinds.items() if holds()), "device")
        raise RecordsError(f"{path} is a {kind}: records are kept in regular files")


def drop_torn_line(content: bytes) -> bytes:
    """Return the lines that have an end: the last one was torn if it has none."""
    return content[: content.rfind(b"\n") + 1]


def parse_records(content: bytes, path: Path) -> tuple[dict[str, dict[str, Any]], list[Record]]:
    """Return environments and records in the lines that have an end; `path` is for the messages.

    Raises:
        RecordsError: a line is neither; or the first one is no environment; or a run has two records, and the first was not killed.
    """
    environments: dict[str, dict[str, Any]] = {}
    records: list[Record] = []
    latest: dict[Key, tuple[int, Record]] = {}
    lines = drop_torn_line(content).split(b"\n")[:-1]
    if content and not lines:
        raise RecordsError(f"{path}:1 is not a record: the line has no end")
    for number, line in enumerate(lines, 1):
        found = _row(line, f"{path}:{number}")
        if not isinstance(found, Record):
            environments[found["id"]] = found
            continue
        before = latest.get(found.key)
        if not environments:
            raise RecordsError(f"{path}:{number} is not a record of a sweep: a line with its environment must come before it")
        if before and not before[1].killed:
            raise RecordsError(f"{path}:{number} is a second record of {found.key}, after line {before[0]}")
        latest[found.key] = number, found
        records.append(found)
    return environments, records


def _row(line: bytes, place: str) -> Record | dict[str, Any]:
    try:
        row = row_of(line)
        if "schema" not in row:
            raise ValueError("it has no schema")
        if (schema := row["schema"]) == SCHEMA:
            return _environment(row) if isinstance(row.get("environment"), dict) else Record.of(row)
    except ValueError as error:
        raise RecordsError(f"{place} is not a record: {error}") from error
    raise RecordsError(f"{place} has schema {str(schema)[:20]}, this version reads schema {SCHEMA}")


def _environment(row: Mapping[str, Any]) -> dict[str, Any]:
    check_environment(row["environment"])
    return dict(row["environment"])


def groups(records: Iterable[Record]) -> dict[tuple[str, str, str], list[Record]]:
    """Return the rounds of each run together, by case, exporter and mode."""
    found: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        found.setdefault(record.key[:3], []).append(record)
    return found


def save_pyperf(records: Iterable[Record], path: str | Path, environment: Mapping[str, Any]) -> Path:
    """Write the seconds of export, save, load and call as pyperf JSON, one value a round, for `python -m pyperf compare_to`.

    Raises:
        OSError: the file cannot be written. RecordsError: no record has any seconds, or one has what nobody can have measured.
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
