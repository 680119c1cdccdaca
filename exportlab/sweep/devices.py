"""Describe where records were made: on the CPU, another device, or a provider of ONNX Runtime, and with which exporters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..exporters.session import USUAL
from ..measure.words import listed, spoken
from .records import Record

CPU = "the CPU"


def places(records: Iterable[Record]) -> str:
    """Return a text such as `all ran on the CPU`, or list the exporters of each device or provider. Empty if nothing ran."""
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
    """Describe both devices if the later records ran on other devices than the earlier ones. Ignore old records without this field."""
    then, now = places(before), places(after)
    return f"They did not run on the same device. First: {then}. Second: {now}." if then and now and then != now else ""
