"""Read the profile events of ONNX Runtime: the time of each node in each run, excluding the nodes in its subgraphs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

KERNEL, RUN = "_kernel_time", "model_run"
Key = tuple[str, str]  # name of a node, and its operator


@dataclass(frozen=True)
class Span:
    """One execution of a node: start and end in seconds since the start of the run, and the time without its subgraphs."""

    key: Key
    provider: str
    start: float
    seconds: float
    own: float


@dataclass(frozen=True)
class Run:
    """A call of ONNX Runtime: its total time, and its nodes in order of their start."""

    seconds: float
    spans: tuple[Span, ...]

    def own(self) -> dict[Key, float]:
        """Return the seconds of each node, without its subgraphs. All iterations of a loop are added up."""
        found: dict[Key, float] = defaultdict(float)
        for span in self.spans:
            found[span.key] += span.own
        return dict(found)


def runs_of(events: Iterable[Mapping[str, Any]]) -> list[Run]:
    """Return the runs of a profile in order."""
    noted = list(events)
    kernels = sorted((event for event in noted if event["cat"] == "Node" and event["name"].endswith(KERNEL)), key=_outer_first)
    whole = sorted((event for event in noted if event["cat"] == "Session" and event["name"] == RUN), key=lambda event: event["ts"])
    return [_run(event, [kernel for kernel in kernels if _begins_in(kernel, event)]) for event in whole]


def _outer_first(event: Mapping[str, Any]) -> tuple[float, float]:
    return event["ts"], -event["dur"]


def _begins_in(event: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return other["ts"] <= event["ts"] <= other["ts"] + other["dur"]


def _is_within(event: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether one event is within another. Times are truncated to microseconds, so the end may be one later."""
    return other["ts"] <= event["ts"] and event["ts"] + event["dur"] <= other["ts"] + other["dur"] + 1


def _run(whole: Mapping[str, Any], kernels: Sequence[Mapping[str, Any]]) -> Run:
    """Subtract from each node the time of its direct children, so that a loop's time excludes its body."""
    own = [float(kernel["dur"]) for kernel in kernels]
    open_ones: list[int] = []
    for place, kernel in enumerate(kernels):
        while open_ones and not _is_within(kernel, kernels[open_ones[-1]]):
            open_ones.pop()
        if open_ones and _runs_others(kernels[open_ones[-1]]):
            own[open_ones[-1]] -= kernel["dur"]
        open_ones.append(place)
    return Run(whole["dur"] / 1e6, tuple(_span(kernel, left, whole["ts"]) for kernel, left in zip(kernels, own, strict=True)))


def _runs_others(kernel: Mapping[str, Any]) -> bool:
    return kernel["args"]["op_name"] in ("If", "Loop", "Scan", "SequenceMap")


def _span(kernel: Mapping[str, Any], own: float, start: float) -> Span:
    said = kernel["args"]
    key = kernel["name"].removesuffix(KERNEL), said["op_name"]
    return Span(key, said.get("provider", ""), (kernel["ts"] - start) / 1e6, kernel["dur"] / 1e6, max(own, 0) / 1e6)
