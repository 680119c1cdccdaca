"""Where records were made: on the CPU, a device, or a provider of ONNX Runtime, and for whom."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..exporters.session import USUAL
from ..measure.words import listed, spoken
from .records import Record

CPU = "the CPU"


def places(records: Iterable[Record]) -> str:
    """Say what ran what: `all ran on the CPU`, or a device or provider with the names of those that ran there; nothing if nothing ran."""
    found: dict[str, list[str]] = {}
    for record in records:
        if record.ran_on:
            place, name = CPU if record.ran_on[0] in USUAL else record.ran_on[0], spoken(record.exporter)
            if name not in found.setdefault(place, []):
                found[place].append(name)
    if set(found) <= {CPU}:
        return f"all ran on {CPU}" if found else ""
    return "; ".join(f"{listed(names)} ran on {place}" for place, names in found.items())


def describe_move(before: Sequence[Record], after: Sequence[Record]) -> str:
    """Say where the later records ran, where that is not where the earlier ones did; records of before it was noted say nothing."""
    then, now = places(before), places(after)
    return f"They did not run in the same place. First: {then}. Second: {now}." if then and now and then != now else ""
