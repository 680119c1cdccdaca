"""Report where the time of a model goes: by operator, source line and module, and how much of it can't be attributed."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape

from ... import show
from ...exporters.session import CPU
from ...printable import plain
from ..figures import short
from .attribution import Origin
from .events import Run

NO_LINE, NO_MODULE, MODEL = "no line known", "no module known", "the model itself"
FUSED = "fused of "
WIDE = 96  # characters of a name in a table


@dataclass(frozen=True)
class NodeTime:
    """A node that ran: its operator, its origin, and its time in each run. The iterations of a loop are added up.

    Attributes:
        seconds: time of the node without its subgraphs.
    """

    name: str
    op: str
    provider: str
    origin: Origin
    seconds: tuple[float, ...]

    @property
    def line(self) -> str:
        """Return its source line, the lines of a node fused from several lines, or a note that the line is unknown."""
        lines = self.origin.lines
        return NO_LINE if not lines else lines[0] if len(lines) == 1 else FUSED + " + ".join(sorted(line.split("  ")[0] for line in lines))

    def module(self, depth: int = 0) -> str:
        """Return path and class of its module. With `depth`, shorten the path to so many names."""
        if self.origin.module is None:
            return NO_MODULE
        path, kind = self.origin.module
        parts = path.split(".") if path else []
        if depth and len(parts) > depth:
            return ".".join(parts[:depth])
        return f"{path or MODEL}, {kind}" if not depth else path or MODEL


@dataclass(frozen=True)
class Group:
    """Nodes with the same operator, line, module or other property.

    Attributes:
        share: share of the total time, computed from the median of each node over the runs. All groups add up to 1.
        seconds: time of all its nodes in each run.
    """

    name: str
    nodes: int
    share: float
    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median over the runs in seconds."""
        return statistics.median(self.seconds)

    @property
    def middle(self) -> tuple[float, float]:
        """The first and third quartile in seconds."""
        if len(self.seconds) == 1:
            return self.seconds[0], self.seconds[0]
        low, _, high = statistics.quantiles(self.seconds, n=4, method="inclusive")
        return low, high


@dataclass(frozen=True)
class Profile:
    """Where the time of a model goes. Prints its operators, lines and modules, the slowest first.

    Attributes:
        file: the name of the file.
        runs: the recorded runs from ONNX Runtime.
        notes: remarks on the profile, a line each.
    """

    file: str
    runs: tuple[Run, ...]
    nodes: tuple[NodeTime, ...]
    notes: tuple[str, ...] = ()

    @cached_property
    def total(self) -> float:
        """The time of all nodes in seconds, each at its median over the runs."""
        return sum(statistics.median(node.seconds) for node in self.nodes)

    def typical(self) -> int:
        """Return the number of the run whose nodes are closest to their medians."""
        medians = {node: statistics.median(node.seconds) for node in self.nodes}
        return min(range(len(self.runs)), key=lambda run: sum(abs(node.seconds[run] - median) for node, median in medians.items()))

    @property
    def outside(self) -> float:
        """The share of a median run that isn't spent in nodes: ONNX Runtime's overhead."""
        return statistics.median(1 - sum(span.own for span in run.spans) / run.seconds for run in self.runs)

    def by_op(self) -> list[Group]:
        """Return a group for each operator, the slowest first."""
        return self._by(lambda node: node.op)

    def by_line(self) -> list[Group]:
        """Return a group for each source line, for each set of fused lines, and for nodes without a line."""
        return self._by(lambda node: node.line)

    def by_module(self, depth: int = 0) -> list[Group]:
        """Return a group for each innermost module, or for each module path shortened to `depth` names."""
        return self._by(lambda node: node.module(depth))

    def by_node(self) -> list[Group]:
        """Return a group for each node."""
        return self._by(lambda node: node.name)

    def by_provider(self) -> list[Group]:
        """Return a group for each provider of ONNX Runtime."""
        return self._by(lambda node: node.provider)

    def _by(self, of: Callable[[NodeTime], str]) -> list[Group]:
        members: dict[str, list[NodeTime]] = defaultdict(list)
        for node in self.nodes:
            members[of(node)].append(node)
        return sorted((self._group(name, nodes) for name, nodes in members.items()), key=lambda group: -group.share)

    def _group(self, name: str, nodes: Sequence[NodeTime]) -> Group:
        own = sum(statistics.median(node.seconds) for node in nodes)
        together = tuple(sum(taken) for taken in zip(*(node.seconds for node in nodes), strict=True))
        return Group(name, len(nodes), own / self.total if self.total else 0.0, together)

    def tables(self, top: int = 8, depth: int = 0) -> list[show.Table]:
        """Return tables of the operators, lines and modules with at most `top` rows. Module paths are shortened to `depth` names."""
        groups = {"operator": self.by_op(), "line of the source": self.by_line(), "module": self.by_module(depth)}
        return [show.table(_rows(what, found, top)) for what, found in groups.items()]

    def __repr__(self) -> str:
        return self.text()

    def text(self, top: int = 8, depth: int = 0) -> str:
        """Return the tables and the notes."""
        return "\n\n".join(map(str, [*self.tables(top, depth), "\n".join(self.said())]))

    def _repr_html_(self) -> str:
        said = "".join(f"<li>{escape(plain(line))}</li>" for line in self.said())
        return "".join(table._repr_html_() for table in self.tables()) + f"<ul>{said}</ul>"

    def said(self) -> list[str]:
        """Return notes on the figures: the time of a run, the time without a known line or module, and other remarks."""
        unknown, whole = self.unknown(), statistics.median(run.seconds for run in self.runs)
        lines = (
            f"no line is known for {unknown['line']:.0%} of the nodes' time, {unknown['several']:.0%} is in nodes fused from several lines"
        )
        return [
            f"{self.file}: a run takes {short(whole * 1e3)} ms, the median of {len(self.runs)}; {self.outside:.0%} is between nodes",
            f"{lines}; no module is known for {unknown['module']:.0%}",
            *self.notes,
            *_describe_providers(self.by_provider()),
        ]

    def unknown(self) -> dict[str, float]:
        """Return the share of time without a line, with several lines, and without a module."""
        lines, modules = self.by_line(), self.by_module()
        return {
            "line": sum(group.share for group in lines if group.name == NO_LINE),
            "several": sum(group.share for group in lines if group.name.startswith(FUSED)),
            "module": sum(group.share for group in modules if group.name == NO_MODULE),
        }


def _describe_providers(groups: Sequence[Group]) -> list[str]:
    """Return a note if nodes ran on another provider than the CPU."""
    others = [group.name for group in groups if group.name not in ("", CPU)]
    if not others:
        return []
    parts = ", ".join(f"{group.name} {group.share:.0%}" for group in groups)
    return [f"of the nodes' time: {parts}; on {' or '.join(others)}, only the launch may be timed, and the wait counts as the next copy"]


def _rows(what: str, groups: Sequence[Group], top: int) -> list[dict[str, str | int]]:
    """Return the first groups as rows, and the sum of the rest as one more row."""
    shown, left = groups[:top], groups[top:]
    if len(left) > 1:
        together = tuple(map(sum, zip(*(group.seconds for group in left), strict=True)))
        shown = [*shown, Group(f"{len(left)} others", sum(group.nodes for group in left), sum(group.share for group in left), together)]
    else:
        shown = [*shown, *left]
    return [_row(what, group) for group in shown]


def _row(what: str, group: Group) -> dict[str, str | int]:
    low, high = group.middle
    shares: dict[str, str | int] = {"nodes": group.nodes, "share": f"{group.share:.1%}", "ms": short(group.median * 1e3)}
    return {what: _cut(group.name), **shares, "half of the runs": f"{short(low * 1e3)}–{short(high * 1e3)}"}


def _cut(name: str) -> str:
    return name if len(name) <= WIDE else f"{name[: WIDE - 1]}…"
