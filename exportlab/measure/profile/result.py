"""Where the time of a file goes: by operator, by line of the source, by module, and how much of it cannot be said."""

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
    """A node that ran: what it is, where it comes from, and how long it took in each run; of a loop, all turns together.

    Attributes:
        seconds: its own, without the nodes of its subgraphs.
    """

    name: str
    op: str
    provider: str
    origin: Origin
    seconds: tuple[float, ...]

    @property
    def line(self) -> str:
        """Return the line of the source it comes from; several where it was fused of nodes of several lines; else that none is known."""
        lines = self.origin.lines
        return NO_LINE if not lines else lines[0] if len(lines) == 1 else FUSED + " + ".join(sorted(line.split("  ")[0] for line in lines))

    def module(self, depth: int = 0) -> str:
        """Return path and class of its module, the path cut to so many names where `depth` is not 0."""
        if self.origin.module is None:
            return NO_MODULE
        path, kind = self.origin.module
        parts = path.split(".") if path else []
        if depth and len(parts) > depth:
            return ".".join(parts[:depth])
        return f"{path or MODEL}, {kind}" if not depth else path or MODEL


@dataclass(frozen=True)
class Group:
    """Nodes that have something in common.

    Attributes:
        share: of the time of all nodes, each taken at its median over the runs; those of all groups add up to 1.
        seconds: what its nodes took together, one number a run.
    """

    name: str
    nodes: int
    share: float
    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The seconds of the run in the middle."""
        return statistics.median(self.seconds)

    @property
    def middle(self) -> tuple[float, float]:
        """Between which seconds the middle half of the runs lies."""
        if len(self.seconds) == 1:
            return self.seconds[0], self.seconds[0]
        low, _, high = statistics.quantiles(self.seconds, n=4, method="inclusive")
        return low, high


@dataclass(frozen=True)
class Profile:
    """Where the time of a file goes; prints as its operators, lines and modules, those that take longest first.

    Attributes:
        file: the name of it.
        runs: those that count, as ONNX Runtime noted them.
        notes: what is to be known of it, a line each.
    """

    file: str
    runs: tuple[Run, ...]
    nodes: tuple[NodeTime, ...]
    notes: tuple[str, ...] = ()

    @cached_property
    def total(self) -> float:
        """The seconds of all nodes, each at its median over the runs."""
        return sum(statistics.median(node.seconds) for node in self.nodes)

    def typical(self) -> int:
        """Return the number of the run whose nodes are, taken together, nearest to their medians: no single node of it stands out."""
        medians = {node: statistics.median(node.seconds) for node in self.nodes}
        return min(range(len(self.runs)), key=lambda run: sum(abs(node.seconds[run] - median) for node, median in medians.items()))

    @property
    def outside(self) -> float:
        """Which part of a run in the middle is of no node: ONNX Runtime's own."""
        return statistics.median(1 - sum(span.own for span in run.spans) / run.seconds for run in self.runs)

    def by_op(self) -> list[Group]:
        """Return a group for each operator, the longest first."""
        return self._by(lambda node: node.op)

    def by_line(self) -> list[Group]:
        """Return a group for each line of the source, and for what was fused of the same lines, and for nodes without one."""
        return self._by(lambda node: node.line)

    def by_module(self, depth: int = 0) -> list[Group]:
        """Return a group for each innermost module, or for each path of so many names at most."""
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
        """Return the operators, the lines and the modules as tables, so many rows of each; of a module's path so many names, or all."""
        groups = {"operator": self.by_op(), "line of the source": self.by_line(), "module": self.by_module(depth)}
        return [show.table(_rows(what, found, top)) for what, found in groups.items()]

    def __repr__(self) -> str:
        return self.text()

    def text(self, top: int = 8, depth: int = 0) -> str:
        """Return the tables, and what is to be known of them."""
        return "\n\n".join(map(str, [*self.tables(top, depth), "\n".join(self.said())]))

    def _repr_html_(self) -> str:
        said = "".join(f"<li>{escape(plain(line))}</li>" for line in self.said())
        return "".join(table._repr_html_() for table in self.tables()) + f"<ul>{said}</ul>"

    def said(self) -> list[str]:
        """Return what is to be known of the figures: what a run took, what no line and no module has, and the notes."""
        unknown, whole = self.unknown(), statistics.median(run.seconds for run in self.runs)
        lines = (
            f"no line is known of {unknown['line']:.0%} of the nodes' time, and {unknown['several']:.0%} is of nodes fused of several lines"
        )
        return [
            f"{self.file}: a run takes {short(whole * 1e3)} ms, the median of {len(self.runs)}; {self.outside:.0%} is between nodes",
            f"{lines}; no module is known of {unknown['module']:.0%}",
            *self.notes,
            *_describe_providers(self.by_provider()),
        ]

    def unknown(self) -> dict[str, float]:
        """Return the share of the time that no single line has, for two reasons, and that no module has."""
        lines, modules = self.by_line(), self.by_module()
        return {
            "line": sum(group.share for group in lines if group.name == NO_LINE),
            "several": sum(group.share for group in lines if group.name.startswith(FUSED)),
            "module": sum(group.share for group in modules if group.name == NO_MODULE),
        }


def _describe_providers(groups: Sequence[Group]) -> list[str]:
    """What is to be known where something else than the CPU computed nodes."""
    others = [group.name for group in groups if group.name not in ("", CPU)]
    if not others:
        return []
    parts = ", ".join(f"{group.name} {group.share:.0%}" for group in groups)
    return [
        f"of the nodes' time: {parts}; a node on {' or '.join(others)} may be timed at its launch alone, and the next copy waits for it"
    ]


def _rows(what: str, groups: Sequence[Group], top: int) -> list[dict[str, str | int]]:
    """The first groups as rows, and in one row what is left: nothing is left out of the sum."""
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
