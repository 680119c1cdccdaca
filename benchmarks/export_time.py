"""
How does export time grow with depth?
=====================================

Two models are exported at 1, 2, 4, … layers by every exporter that runs here. You get one curve for each exporter: its time as a
multiple of what ``torch.export`` alone takes, with the spread that was seen. The plot and the answer are under `What was seen`_,
after the code that made them. This page shows the quick run, up to 8 layers. The full
one goes to 64 layers and takes about 20 minutes; pyperf compares its file with that of another machine or another version::

    OMP_NUM_THREADS=1 python benchmarks/export_time.py --json before.json --plot before.png
    python -m pyperf compare_to before.json after.json --table
"""

import copy
import itertools
import sys
import tempfile
import textwrap
from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pyperf
import torch
from matplotlib.ticker import LogLocator, NullLocator
from torch import nn
from torch.nn import functional as F

from exportlab import compare, exporters, show, timing
from exportlab.failures import muffled
from exportlab.files import written_whole

asked = timing.arguments(
    "How does export time grow with depth?", quick="8 layers at most, 3 rounds: about a minute"
)
depths = [1, 2, 4, 8] if asked.quick else [1, 2, 4, 8, 16, 32, 64]
rounds = 3 if asked.quick else 15
seconds = 900  # after which no further round begins; three there are always

# %%
# The models
# ----------
# One layer of each, 32 wide. The transformer block is written out, so that every exporter sees the same few operations.


class Layer(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.Linear(32, 32), nn.ReLU())
        nn.init.kaiming_normal_(self[0].weight)  # so that the outputs do not fade with depth


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(32), nn.LayerNorm(32)
        self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)
        self.mlp = nn.Sequential(nn.Linear(32, 128), nn.GELU(), nn.Linear(128, 32))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (
            t.unflatten(-1, (4, 8)).transpose(1, 2) for t in self.qkv(self.before(x)).chunk(3, -1)
        )
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(x.shape))
        return x + self.mlp(self.between(x))


models = {"MLP": (Layer, (32,)), "transformer": (Block, (8, 32))}


def stacked(model: str, depth: int) -> nn.Module:
    """So many layers of a model, always with the same weights."""
    torch.manual_seed(0)
    return nn.Sequential(*(models[model][0]() for _ in range(depth))).eval()


def inputs(model: str, batch: int) -> tuple[torch.Tensor]:
    """One input of so many rows."""
    return (torch.randn(batch, *models[model][1]),)


# %%
# Is it right?
# ------------
# A fast export of something else is no competitor. So each exporter first exports both models with a dynamic batch of 4, and is held
# against eager at batches of 4, 7, 1 and 0. Only those whose outcome is ``ok`` are timed.

moving = ({0: "batch"},)
here = [name for name, exporter in exporters.available().items() if not exporter.missing()]


def right(model: str, depth: int) -> list[str]:
    """The exporters that get a model right; prints how far the outputs are from eager's."""
    samples = [inputs(model, batch) for batch in (4, 7, 1, 0)]
    compared = compare(stacked(model, depth), samples, dynamic_shapes=moving, exporters=here)
    print(f"{model}, {depth} layers\n{compared}\n")
    return [name for name, outcome in compared.outcomes().items() if outcome == "ok"]


timed = {model: right(model, 8) for model in models}
assert all({"torch.export", "dynamo", "torchscript"} <= set(names) for names in timed.values())

# %%
# How it is measured
# ------------------
# In rounds: a round exports once at every depth with every exporter, and begins with another exporter each time. A slow moment of the
# machine so hits all of them alike, and a time is only ever divided by another of its own round. The first round is discarded: it pays
# for what is done once. Every export gets a fresh copy of the module; the clock runs during ``exporter.export(…)`` alone, which leaves
# no file and no session.


def maker(
    exporter: str, module: nn.Module, args: tuple[torch.Tensor]
) -> Callable[[], Callable[[], object]]:
    """What is timed, one export, prepared anew for each round."""

    def make() -> Callable[[], object]:
        fresh = copy.deepcopy(module)
        return lambda: exporters.export(exporter, fresh, args, dynamic_shapes=moving)

    return make


def makers(model: str, depth: int) -> dict[str, Callable[[], Callable[[], object]]]:
    """The exports that are compared with each other."""
    module, args = stacked(model, depth), inputs(model, 4)
    return {name: maker(name, module, args) for name in timed[model]}


def tell(line: str) -> None:
    """Progress of a full run, for the terminal alone."""
    if not asked.quick:
        print(line, file=sys.__stderr__)


PACKAGES = ("torch", "onnx", "onnxscript", "onnxruntime")
points = {(model, depth): makers(model, depth) for model in models for depth in depths}
with muffled():
    times = timing.interleaved(points, rounds, budget=seconds, tell=tell)

folder = tempfile.TemporaryDirectory()
titled = {f"{model}, depth {depth}": found for (model, depth), found in times.items()}
written = timing.save(
    asked.json or Path(folder.name) / "export_time.json", titled, timing.environment(PACKAGES)
)

# %%
# What was seen
# -------------

COLORS = (
    "#000000",
    "#D55E00",
    "#0072B2",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
)  # Okabe-Ito, for every form of colour vision
colors = dict(zip(here, itertools.cycle(COLORS), strict=False))
first, last = depths[0], depths[-1]


def draw_line(axes: plt.Axes, model: str, exporter: str) -> None:
    """One exporter: the median of its ratios, in a band from the lowest to the highest."""
    ratios = [times[model, depth].ratio(exporter, "torch.export") for depth in depths]
    axes.plot(depths, [r.median for r in ratios], color=colors[exporter], marker="o", markersize=4)
    axes.fill_between(
        depths,
        [r.low for r in ratios],
        [r.high for r in ratios],
        color=colors[exporter],
        alpha=0.2,
        linewidth=0,
    )


def label_lines(axes: plt.Axes, model: str) -> None:
    """The names at the ends of the lines, moved up where two would overlap."""
    low, high = np.log(axes.get_ylim())
    place = -1.0
    for end, name in sorted(
        (times[model, last].ratio(name, "torch.export").median, name) for name in timed[model]
    ):
        place = max((np.log(end) - low) / (high - low), place + 0.06)
        axes.text(0.98, place, name, transform=axes.transAxes, va="center", color=colors[name])


def set_scales(axes: plt.Axes) -> None:
    """Both logarithmic, with plain numbers beside them."""
    axes.set_xscale("log", base=2)
    axes.set_xticks(depths, map(str, depths))
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:g}x")
    axes.yaxis.set_minor_locator(NullLocator())
    axes.grid(axis="y", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def draw() -> None:
    """One panel for each model."""
    figure, panels = plt.subplots(
        1, len(models), figsize=(8, 3.6), sharey=True, layout="constrained"
    )
    figure.suptitle("Export time, as a multiple of what torch.export takes")
    for axes, model in zip(panels, models, strict=True):
        axes.set(title=model, xlabel="layers")
        set_scales(axes)
        for name in timed[model]:
            draw_line(axes, model, name)
    for axes, model in zip(panels, models, strict=True):
        label_lines(axes, model)


def grown(start: int) -> dict[str, timing.Ratio]:
    """What the last depth takes over an earlier one, by exporter and model."""
    return {
        f"{name} on the {m}": times[m, last].growth(name, times[m, start])
        for m in models
        for name in timed[m]
    }


def answer() -> str:
    """The question's answer: how the time grows from the first depth to the last, over all models and exporters."""
    found, times_deeper = grown(first).values(), last // first
    medians, low, high = (
        [r.median for r in found],
        min(r.low for r in found),
        max(r.high for r in found),
    )
    verdict = (
        "less than in proportion" if high < times_deeper else "not always less than in proportion"
    )
    return f"{times_deeper} times the layers take {min(medians):.1f} to {max(medians):.1f} times as long ({low:.1f}–{high:.1f}): {verdict}."


def steepest() -> str:
    """Whose time the last doubling of the depth raises most."""
    who, ratio = max(grown(depths[-2]).items(), key=lambda pair: pair[1].median)
    return f"From {depths[-2]} to {last} layers, {who} grows most: {ratio}."


def against_torch_export(model: str) -> str:
    """How the exporters stand to `torch.export` at the last depth."""
    told = [
        f"{name} {times[model, last].ratio(name, 'torch.export')}"
        for name in timed[model]
        if name != "torch.export"
    ]
    return textwrap.fill(f"{model}, {last} layers, against torch.export: {', '.join(told)}.", 100)


draw()
if asked.plot:
    with written_whole(asked.plot) as draft:
        plt.savefig(draft, dpi=150)
print("\n".join([answer(), *map(against_torch_export, models), steepest()]))

# %%
# In brackets stand the lowest and the highest ratio; where they lie on both sides of 1, no difference was seen. A flat curve grows as
# ``torch.export`` does, a rising one faster. A falling one grows more slowly: some of its cost is paid once, however deep the model.


def row(model: str, depth: int, exporter: str) -> dict[str, object]:
    """One line of the table."""
    found, half = times[model, depth], times.get((model, depth // 2))
    return {
        "model": model,
        "layers": depth,
        "exporter": exporter,
        "seconds": f"{found.median(exporter):.3f}",
        "to torch.export": ""
        if exporter == "torch.export"
        else found.ratio(exporter, "torch.export"),
        "to half the layers": found.growth(exporter, half) if half else "",
    }


counted = len(times["MLP", first].rounds)
print(
    show.table(
        [row(model, depth, name) for model, depth in times for name in timed[model]],
        f"Medians of {counted} rounds",
    )
)

# %%
# How far to trust it
# -------------------
# Few rounds can differ by chance, and another machine gives other times. ``torchscript`` records a real run of the model, on all threads,
# which wait for each other when the machine is busy: its band is the widest then, and ``OMP_NUM_THREADS=1`` narrows it.

print(
    f"By chance alone, {counted} rounds make two equally fast exporters look different 1 time in {2 ** (counted - 1)}."
)
print(timing.machine(PACKAGES))

# %%
# The file
# --------
# The times are kept in pyperf's format, the discarded ones as its warm-ups, with what they depend on; read back, it holds:

suite = pyperf.BenchmarkSuite.load(str(written))
folder.cleanup()
assert len(suite) == sum(len(found.rounds[0]) for found in titled.values())
print(
    f"{written.name}: {len(suite)} benchmarks, from {suite.get_benchmark_names()[0]!r} to {suite.get_benchmark_names()[-1]!r}"
)

# %%
# Compare exporters at the depth of your own model: at one layer, much of what you measure is paid only once. Next, a loop that is
# captured once however often it runs: :doc:`scan </generated/gallery/torch_export/scan>`.
