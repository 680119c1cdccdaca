"""Compute after how many calls one way of running a model is ahead of eager, and draw the seconds against the number of calls."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..show.table import Table, table
from . import figures, words
from .benchmark import Run
from .dot_plot import OPAQUE
from .layout import LEAST, NARROW, layout

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MODELS = ("MLP", "ResNet-50", "BERT-base")
EAGER = "eager"
MOST = 1_000_000  # calls
SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
NAMES: Mapping[str, str] = {
    "torch.compile, cached": "torch.compile with its cache",
    "to_onnx": "to_onnx's file",
    "to_onnx, exported": "an export by to_onnx",
    "dynamo": "torch.onnx.export's file",
    "dynamo, exported": "an export by torch.onnx.export",
    "openvino": "OpenVINO's file",
    "openvino, exported": "a conversion by OpenVINO",
    "openvino, file of to_onnx": "OpenVINO with to_onnx's file",
    "openvino, file of torch.onnx.export": "OpenVINO with torch.onnx.export's file",
    "aoti": "AOTInductor's file",
    "executorch": "ExecuTorch's file",
}
DRAWN: Mapping[str, str] = {  # the ways of the figure, with the name at their lines
    "eager": "eager",
    "torch.compile": "torch.compile",
    "to_onnx": "to_onnx, file",
    "to_onnx, exported": "to_onnx, export",
    "dynamo": "torch.onnx.export, file",
    "dynamo, exported": "torch.onnx.export, export",
    "openvino": "OpenVINO, file",
    "openvino, exported": "OpenVINO, conversion",
    "aoti": "AOTInductor, file",
    "executorch": "ExecuTorch, file",
}
INSIDE = ("openvino, exported", "to_onnx, exported", "dynamo, exported", "torch.compile")  # prepare the model in the process that calls it
RUNTIMES: Mapping[str, str] = {"to_onnx": "ONNX Runtime", "dynamo": "ONNX Runtime", "openvino": "OpenVINO"}


@dataclass(frozen=True)
class Way:
    """One way of running a model.

    Attributes:
        first: seconds from the start of Python to the first answer. later: seconds of each later call.
    """

    first: float
    later: float

    def after(self, calls: float) -> float:
        """Return the seconds until so many calls are done."""
        return self.first + self.later * (calls - 1)

    def crossing(self, base: Way) -> float | None:
        """Return the number of calls, at least 1, at which both take equally long. None if one is always ahead."""
        if (self.first - base.first) * (base.later - self.later) <= 0:
            return None
        return 1 + (self.first - base.first) / (base.later - self.later)

    def ahead(self, base: Way) -> tuple[int, float]:
        """Return the first and the last number of calls, up to infinity, for which this way is ahead of another; (0, 0) for none."""
        crossing = self.crossing(base)
        if crossing is None:
            return (1, math.inf) if (self.first, self.later) < (base.first, base.later) else (0, 0)
        return (math.floor(crossing) + 1, math.inf) if self.later < base.later else (1, math.ceil(crossing) - 1)


def ways(run: Run, model: str) -> dict[str, Way]:
    """Return the medians of each way."""
    first, later = run[f"{model}, first answer"], run[f"{model}, later call"]
    return {name: Way(first.median(name), later.median(name)) for name in first.rounds[0]}


def headline(run: Run, model: str) -> str:
    """Return after how many calls the ways pay off that prepare the model in the same process, the earliest first."""
    found = ways(run, model)
    ahead = {name: found[name].ahead(found[EAGER]) for name in INSIDE if name in found}
    first, *others = sorted(ahead, key=lambda name: ahead[name][0] or math.inf)
    phrases = [f"{NAMES.get(first, first)} is ahead of eager {when(*ahead[first])}"]
    phrases += [f"{NAMES.get(name, name)} {when(*ahead[name])}" for name in others]
    return f"For {model} without a stored file, {words.listed(phrases)}"


def summary(run: Run, model: str) -> str:
    """Return for which numbers of calls each way is ahead of eager."""
    found = ways(run, model)
    ahead = {name: way.ahead(found[EAGER]) for name, way in found.items() if name != EAGER}
    by_time: dict[str, list[str]] = {}
    for name in sorted(ahead, key=lambda name: (ahead[name][0] or math.inf, -ahead[name][1])):
        by_time.setdefault(when(*ahead[name]), []).append(NAMES.get(name, name))
    return f"{model}, ahead of eager {'; '.join(f'{time}: {words.listed(names)}' for time, names in by_time.items())}"


def count(calls: float) -> str:
    """Format a number of calls with two digits: `41`, `1,600`."""
    return f"{float(f'{calls:.2g}'):,.0f}"


def tables_of(run: Run) -> list[Table]:
    """Return a row for each model and way: its parts, and when it is ahead of eager."""
    rows = [row(run, model, name) for model in run.facts["models"] for name in ways(run, model)]
    return [table(rows, "Medians; the import includes the start of Python, and stored files were written before the process started")]


def row(run: Run, model: str, name: str) -> dict[str, str]:
    """Return the row of one way."""
    seconds = {part: run[f"{model}, {part}"].median(name) for part in ("import", "prepare", "first call", "first answer", "later call")}
    found = ways(run, model)
    parts = {f"{part}, s": figures.short(seconds[part]) for part in ("import", "prepare", "first call", "first answer")}
    told = "" if name == EAGER else when(*found[name].ahead(found[EAGER]))
    who = name.split(",")[0]
    runtime = RUNTIMES.get(who, "")
    return {
        "model": model,
        "way": NAMES.get(name, name),
        "runtime": runtime,
        **parts,
        "later call, ms": figures.short(1e3 * seconds["later call"]),
        "ahead of eager": told,
    }


def when(first: int, last: float) -> str:
    """Return in words for which numbers of calls a way is ahead."""
    if not first or first > MOST:
        return "not within 1,000,000 calls"
    if last < MOST:
        return f"until call {count(last)}"
    return "from the first call" if first == 1 else f"after {count(first - 1)} calls"


def draw(run: Run) -> None:
    """Draw a panel for each model."""
    from matplotlib import pyplot

    now, models = layout(), run.facts["models"]
    figure, panels = pyplot.subplots(
        len(models), 1, figsize=(now.width, 2.6 * len(models)), squeeze=False, layout="constrained", sharex=True
    )
    title = "Seconds since Python was started, by the number of calls; dashed: with the export"
    figure.suptitle(now.title(title), fontsize=now.size)
    for axes, model in zip(panels.flat, models, strict=True):
        found = ways(run, model)
        draw_panel(axes, model, {name: found[name] for name in DRAWN if name in found})
    panels.flat[-1].set_xlabel("calls", fontsize=LEAST)


def draw_panel(axes: Axes, model: str, found: Mapping[str, Way]) -> None:
    """Draw one model: a line for each way, and the crossings with eager."""
    colored = {name: figures.COLORS[name.split(",")[0]] for name in found}
    calls = [10 ** (step / 6) for step in range(37)]
    for name, way in found.items():
        style = "--" if name.endswith("exported") else "-"
        axes.plot(calls, [way.after(n) for n in calls], color=colored[name], linestyle=style, linewidth=2.5 if name == EAGER else 1.6)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(1, MOST)
    axes.set_title(model, fontsize=layout().size, loc="left", fontweight="bold")
    crossings = {name: way.crossing(found[EAGER]) for name, way in found.items() if name != EAGER}
    inside = {name: at for name, at in crossings.items() if at is not None and at <= MOST}
    _limit(axes, found, len(inside))
    _scale(axes)
    _circle(axes, found, inside, colored)
    _name_lines(axes, found, colored)


def _limit(axes: Axes, found: Mapping[str, Way], labels: int) -> None:
    """Leave room below eager's line for the labels of the crossings."""
    top = max(way.after(MOST) for way in found.values()) * 1.5
    low = min(way.first for way in found.values()) * 0.7
    share = (labels + 1) * _line_share()
    log_low = (math.log(found[EAGER].first) - share * math.log(top)) / (1 - share)
    axes.set_ylim(min(low, math.exp(log_low)), top)


def _line_share() -> float:
    """Return the height of a line of text, relative to that of a panel."""
    return LEAST * 1.35 / (2.05 * 72)


def _scale(axes: Axes) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    low, high = axes.get_ylim()
    seconds = [10.0**power for power in range(max(-1, math.ceil(math.log10(low))), math.floor(math.log10(high)) + 1)]
    axes.set_yticks(seconds[:: 1 if len(seconds) < 7 else 2])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, place: format_seconds(value, layout() is NARROW)))
    axes.xaxis.set_major_locator(FixedLocator([10**power for power in range(0, 7, 3 if layout() is NARROW else 1)]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, place: f"{value:,.0f}"))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())
    axes.tick_params(labelsize=LEAST)
    axes.yaxis.tick_right()
    axes.spines[["top", "left"]].set_visible(False)
    axes.grid(alpha=0.2)


def format_seconds(value: float, short: bool) -> str:
    """Format a power of ten for the axis: `0.1 s`, `10,000 s` or `10⁴ s`."""
    power = round(math.log10(value))
    return f"10{SUPERSCRIPTS[power]} s" if short and power > 2 else f"{value:,.0f} s" if power >= 0 else f"{value:g} s"


def _circle(axes: Axes, found: Mapping[str, Way], crossings: Mapping[str, float], colored: Mapping[str, str]) -> None:
    """Circle each crossing, and write below eager's line after how many calls it is.

    Labels are right of their crossings with the earliest at the bottom, or left of them with the last at the bottom if there is more room.
    """
    low, high = axes.get_ylim()
    late = max(crossings.values(), default=1) > (1e4 if layout() is NARROW else 1e5)
    for place, name in enumerate(sorted(crossings, key=lambda name: crossings[name], reverse=late)):
        at, seconds = crossings[name], found[EAGER].after(crossings[name])
        share = (place + 0.6) * _line_share()
        foot = low * (high / low) ** share
        axes.plot([at, at], [foot, seconds], color=colored[name], linewidth=0.8, alpha=0.7)
        axes.plot([at], [seconds], "o", color=colored[name], markerfacecolor="none", markersize=8, markeredgewidth=1.8)
        told = label(*found[name].ahead(found[EAGER]), short=layout() is NARROW)
        how: Any = {"color": figures.readable(colored[name]), "fontsize": LEAST, "bbox": OPAQUE, "ha": "right" if late else "left"}
        axes.annotate(told, (at, foot), xytext=(-3 if late else 3, 0), textcoords="offset points", va="center", **how)


def label(first: int, last: float, short: bool) -> str:
    """Return the label of a crossing."""
    if last < math.inf:
        return f"until {count(last)}" if short else f"ahead until call {count(last)}"
    return f"after {count(first - 1)}" if short else f"pays off after {count(first - 1)} calls"


def _name_lines(axes: Axes, found: Mapping[str, Way], colored: Mapping[str, str]) -> None:
    """Write the names left of the starts of the lines, with the seconds, and connect those that are moved."""
    low, high = axes.get_ylim()
    places = {name: math.log(way.first / low) / math.log(high / low) for name, way in found.items()}
    for name, place in figures.moved_apart(places, _line_share()).items():
        who = DRAWN[name].split(",")[0] if layout() is NARROW else DRAWN[name]
        told = f"{who}  {figures.short(float(f'{found[name].first:.2g}'))} s"
        axes.plot([-0.025, 0], [place, places[name]], color=colored[name], linewidth=0.8, transform=axes.transAxes, clip_on=False)
        how: Any = {"va": "center", "ha": "right", "fontsize": LEAST, "color": figures.readable(colored[name])}
        axes.text(-0.03, place, told, transform=axes.transAxes, **how)
