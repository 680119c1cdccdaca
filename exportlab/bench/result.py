"""Evaluate the records of a benchmark: times by way and size, compared with eager mode. Wrong models are marked and not ranked."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import shorten
from typing import Any

from .. import show
from ..exporters.session import CPU
from ..measure.timing import Ratio, rounded
from ..measure.words import listed, spoken
from ..outcomes import Mark, Outcome
from ..sweep.changes import find_worst_record
from ..sweep.devices import places
from ..sweep.records import Record
from .plan import AS_GIVEN, BATCH

CALL, EAGER = "call, ", "eager, "  # prefixes of the names of seconds, followed by the size
RANKED = (Outcome.OK, Outcome.NARROW)  # right at all sizes they accept
OVER = "of torch.onnx.export"
FEW = ("one round", "two rounds")  # too few for an interval
KEPT_SAID = 200  # characters of a message that a finding quotes
BASE = "dynamo"  # export times are compared with torch.onnx.export


@dataclass(frozen=True)
class Way:
    """All rounds of one way to run the model."""

    name: str
    records: Sequence[Record]

    @property
    def spoken(self) -> str:
        """Its display name."""
        return spoken(self.name)

    @property
    def worst(self) -> Record:
        """The record of the round with the worst outcome."""
        return find_worst_record(self.records)

    @property
    def outcome(self) -> Outcome:
        """The worst outcome of `verify` in all rounds."""
        return self.worst.outcome

    @property
    def ranked(self) -> bool:
        """Whether its times may be compared with others."""
        return all(record.outcome in RANKED or record.mark.works for record in self.records)

    @property
    def verdict(self) -> str:
        """Its outcome, or that it is right except where a mask hides everything."""
        return Mark.MASKED.meaning if self.worst.mark is Mark.MASKED else str(self.outcome)

    def sizes(self) -> list[str]:
        """Return the sizes at which it was timed."""
        return [name.removeprefix(CALL) for name in self.records[0].seconds if name.startswith(CALL)]

    def seconds(self, figure: str) -> tuple[float, ...]:
        """Return the seconds of a figure, round by round."""
        return tuple(record.seconds[figure] for record in self.records if figure in record.seconds)

    def ratio(self, size: str) -> Ratio:
        """Return the time of a call relative to eager mode, whose calls alternated with it in the same process."""
        pairs = ((r.seconds.get(CALL + size), r.seconds.get(EAGER + size)) for r in self.records)
        return Ratio(tuple(own / eager for own, eager in pairs if own and eager))

    def over(self, other: Way, figure: str) -> Ratio | None:
        """Return a figure relative to another way, round by round. None if they share no round."""
        theirs = {r.round: r.seconds[figure] for r in other.records if figure in r.seconds}
        shared = tuple(r.seconds[figure] / theirs[r.round] for r in self.records if figure in r.seconds and r.round in theirs)
        return Ratio(shared) if shared else None


@dataclass(frozen=True)
class Row:
    """A row of a table: its cells by column heading, and whether its times are ranked."""

    cells: Mapping[str, str]
    ranked: bool = True


@dataclass(frozen=True, repr=False)
class Bench(show.Tabular):
    """The results of a benchmark. Prints as a table and renders as HTML.

    Attributes:
        notes: remarks about skipped exporters and replaced providers.
    """

    records: Sequence[Record]
    notes: Sequence[str] = field(default=())
    folder: Any = None

    @property
    def name(self) -> str:
        """The name of the model."""
        return self.records[0].case if self.records else "nothing"

    def ways(self) -> dict[str, Way]:
        """Return the ways by name, in the order of their first records."""
        found: dict[str, list[Record]] = {}
        for record in self.records:
            found.setdefault(record.exporter, []).append(record)
        return {name: Way(name, sorted(records, key=lambda r: r.round)) for name, records in sorted(found.items(), key=_eager_first)}

    def sizes(self) -> list[str]:
        """Return all timed sizes."""
        return list(dict.fromkeys(size for way in self.ways().values() for size in way.sizes()))

    def files(self) -> list[Row]:
        """Return a row per way: its outcome, and the cost of exporting and loading the model."""
        ways = self.ways()
        return [Row(_build_file_cells(way, ways.get(BASE)), way.ranked) for way in ways.values()]

    def calls(self) -> list[Row]:
        """Return a row per way and size: the time of a call."""
        return [Row(_build_call_cells(way, size), way.ranked) for way in self.ways().values() for size in way.sizes()]

    def findings(self) -> list[str]:
        """List the silently wrong models, the fastest way at each size, and the other models that are not right."""
        silent = [_verdict(way) for way in self.ways().values() if way.outcome.silent]
        loud = [_verdict(way) for way in self.ways().values() if way.outcome is not Outcome.OK and not way.outcome.silent]
        return [line for line in (*silent, *(fastest(self, size) for size in self.sizes()), *loud, *self.elsewhere()) if line]

    def _table(self) -> show.Table:
        return show.table([line for way in self.ways().values() for line in _lines(way, self.ways().get(BASE))], self.title())

    def title(self) -> str:
        """Return the title: model, rounds and devices."""
        rounds = max((record.round for record in self.records), default=0)
        counted = f"{rounds} round{'s' * (rounds != 1)}"
        bases = "export times relative to torch.onnx.export, calls relative to eager mode"
        return f"{self.name}: medians, {counted}, warm-ups discarded; {bases}; {self.places()}"

    def places(self) -> str:
        """Return a text such as `all ran on the CPU`, or the ways that ran on each device or provider."""
        return places([record for way in self.ways().values() for record in way.records]) or "all ran on the CPU"

    def elsewhere(self) -> list[str]:
        """Return a line for each way that didn't run on the requested provider, unless a note already covers it."""
        files = [(way, record) for way in self.ways().values() for record in way.records if CPU in record.ran_on]
        lines = {way.spoken: record.instead for way, record in files if record.instead and record.instead not in self.notes}
        return [f"{name}: {line}" for name, line in lines.items()]


def _eager_first(pair: tuple[str, Any]) -> bool:
    return pair[0] != "eager"


def _lines(way: Way, base: Way | None) -> Iterator[dict[str, str]]:
    """Yield a row per size that fits a terminal. Values that apply to all sizes are only in the first row."""
    once = _build_file_cells(way, base)
    once["export"] = ", ".join(filter(None, (once["export"], once.pop(OVER))))
    for number, size in enumerate(way.sizes() or [""]):
        call = _build_call_cells(way, size)
        del call["run by"], call["rows a second"]
        yield {**(once if number == 0 else dict.fromkeys(once, "")), **call}


def _build_file_cells(way: Way, base: Way | None) -> dict[str, str]:
    record, eager = way.worst, way.name == "eager"
    over = way.over(base, "export") if base and base.name != way.name and not eager else None
    return {
        "run by": way.spoken,
        "outcome": str(way.outcome),
        "export": "" if eager else _seconds(way.seconds("export")),
        OVER: format_ratio(over) if over else "",
        "memory": f"{record.peak_bytes / 2**20:.0f} MiB" if record.peak_bytes is not None else "",
        "file": size_of(record.bytes),
        "nodes": f"{record.nodes:,}" if record.nodes else "",
        "load": _seconds(way.seconds("load")) if record.bytes is not None else "",
        "first answer": _seconds(way.seconds("first")),
    }


def _build_call_cells(way: Way, size: str) -> dict[str, str]:
    seen = way.seconds(CALL + size)
    middle = statistics.median(seen) if seen else 0.0
    rate = f"{batch_of(size) / middle:,.0f}" if seen and way.ranked else ""
    named = "" if not seen else format_seconds(middle) if way.ranked else f"{way.outcome}: {format_seconds(middle)}"
    ratio = format_eager_ratio(way, size) if way.ranked else "not ranked" if seen else ""
    return {"run by": way.spoken, "size": size, "a call": named, "of eager (interval)": ratio, "rows a second": rate}


def format_eager_ratio(way: Way, size: str) -> str:
    """Format the time of a call relative to eager mode, with its interval. Return "" for eager mode itself."""
    ratio = way.ratio(size)
    if way.name == "eager" or not ratio.seen:
        return ""
    return format_ratio(ratio)


def format_ratio(ratio: Ratio) -> str:
    """Format a ratio with its interval, or with the number of rounds if there are too few for an interval."""
    return str(ratio) if len(ratio.seen) > len(FEW) else f"{rounded(ratio.median)}x, {FEW[len(ratio.seen) - 1]}"


def batch_of(size: str) -> int:
    """Return the batch size, or 1 if no dimension is the batch."""
    named = dict(part.rsplit(" ", 1) for part in size.split(", ")) if size != AS_GIVEN else {}
    return int(named.get(BATCH, 1))


def _seconds(seen: Sequence[float]) -> str:
    return format_seconds(statistics.median(seen)) if seen else ""


def format_seconds(seconds: float) -> str:
    """Format seconds with a unit: `1.2 s`, `0.42 ms`."""
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1000:.3g} ms"


def size_of(count: int | None) -> str:
    """Format bytes with a unit."""
    if count is None:
        return ""
    return f"{count / 2**20:.1f} MiB" if count >= 2**20 else f"{count / 2**10:.1f} KiB"


def fastest(bench: Bench, size: str) -> str:
    """Name the fastest way at a size, or all between which there is no significant difference. Wrong models don't take part."""
    ratios = {way.name: _ranked_by(way, size) for way in bench.ways().values() if way.ranked and size in way.sizes()}
    ratios = {name: ratio for name, ratio in ratios.items() if ratio.seen}
    if len(ratios) < 2:
        return ""
    best = min(ratios, key=lambda name: ratios[name].median)
    others = [name for name, ratio in ratios.items() if name != best and not _is_slower(ratio, ratios[best])]
    if others:
        return f"At {size}, no significant difference between the fastest: {listed(map(spoken, (best, *others)))}"
    relative = f": {ratios[best]} of the time of eager mode" if best != "eager" else ""
    return f"At {size}, {spoken(best)} is fastest{relative}"


def _ranked_by(way: Way, size: str) -> Ratio:
    """Return the ratios to eager mode. They are 1 for eager mode itself, so that the other ways' intervals decide the comparison."""
    ratio = way.ratio(size)
    return Ratio((1.0,) * len(ratio.seen)) if way.name == "eager" else ratio


def _is_slower(one: Ratio, best: Ratio) -> bool:
    """Return whether one way is significantly slower, given the number of rounds."""
    paired = tuple(a / b for a, b in zip(one.seen, best.seen, strict=False))
    return len(paired) > 1 and Ratio(paired).differs


def _verdict(way: Way) -> str:
    return f"{way.spoken}: {way.verdict}, {why(way.worst)}"


def why(record: Record) -> str:
    """Explain in one line why a record is not right, shortened between words."""
    first = next((check for check in record.failed if check["outcome"] == record.outcome), {})
    said = record.error or (f"{first['inputs']}: {first['detail']}" if first else record.outcome.meaning)
    return shorten(said, KEPT_SAID, placeholder=" …")
