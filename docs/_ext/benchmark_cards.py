"""Describe the small charts on the index of benchmarks: three to five bars with names and numbers, from stored runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape

from exportlab.measure import benchmark
from exportlab.measure.benchmark import Run
from exportlab.measure.figures import COLORS, plain, shown
from exportlab.measure.tables import SCALES

WIDTH, ROW, NAME, NUMBER = 320, 22, 122, 74  # the chart, a row, and the columns of names and numbers, in CSS pixels
GREY = "#777777"
Bars = Mapping[str, float]


@dataclass(frozen=True)
class Chart:
    """The bars of one card.

    Attributes:
        caption: what the bars are. title: the title of a comparison in the stored run. names: names in this comparison.
        unit: a key of `tables.SCALES`, or any unit for what `bars` returns. bars: computes the bars, if they are no medians of the run.
    """

    caption: str
    unit: str
    title: str = ""
    names: tuple[str, ...] = ()
    bars: Callable[[Run], Bars] | None = None

    def values(self, run: Run) -> Bars:
        """Return the length of each bar."""
        return self.bars(run) if self.bars else {name: SCALES[self.unit] * run[self.title].median(name) for name in self.names}


def wrong_differences(run: Run) -> Bars:
    """Return in how many of 100 comparisons of equals a difference of over 5 % or a significant one was seen."""
    rounds = run.facts["rounds"]
    ways = {
        "means": "all of A, then all of B",
        "rule, wall clock": "by turns",
        "rule, CPU clock": "by turns, processor's clock",
    }
    return {name: float(count_wrong(run, way, rounds, by_rule=place > 0)) for place, (name, way) in enumerate(ways.items())}


def count_wrong(run: Run, way: str, rounds: int, by_rule: bool) -> int:
    """Return the number of comparisons of equals that look different, by the rule of this site or by means 5 % apart."""
    from exportlab.measure.timing import Ratio

    found, starts = run[way].rounds, range(0, len(run[way].rounds), rounds)
    parts = [found[start : start + rounds] for start in starts]
    if by_rule:
        return sum(Ratio(tuple(one["A"] / one["B"] for one in part)).differs for part in parts)
    return sum(abs(sum(one["A"] for one in part) / sum(one["B"] for one in part) - 1) > 0.05 for part in parts)


def nodes_in_all(run: Run) -> Bars:
    """Return the nodes of each exporter's graphs, added up over the models that all get right."""
    names = ("by hand", "to_onnx", "dynamo", "torchscript")
    shared = [seen.rounds[0] for seen in run.times.values() if set(names) <= set(seen.rounds[0])]
    return {name: sum(row[name] for row in shared) for name in names}


CHARTS: Mapping[str, Chart] = {
    "export_time": Chart("32 layers of a transformer", "s", "transformer, depth 32", ("to_onnx", "torchscript", "torch.export", "dynamo")),
    "real_sizes": Chart(
        "export of a ResNet-50", "s", "export, ResNet-50", ("to_onnx", "torch.export", "torchscript", "dynamo", "executorch")
    ),
    "memory": Chart("peak for 1.02 GB of weights", "MB", "1.02 GB", ("dynamo", "to_onnx", "to_onnx, one file")),
    "graph_size": Chart("nodes of all models that all get right", "", bars=nodes_in_all),
    "latency": Chart("transformer, one row", "ms", "transformer, threads 1, batch 1", ("eager", "aoti", "openvino", "dynamo", "to_onnx")),
    "pays_off": Chart(
        "first answer of BERT-base", "s", "BERT-base, first answer", ("dynamo", "openvino", "eager", "executorch", "torch.compile")
    ),
    "start_up": Chart(
        "first answer of the transformer", "s", "transformer, in all", ("dynamo", "to_onnx", "openvino", "torch.export", "executorch")
    ),
    "cpp_programs": Chart(
        "first answer of the transformer", "ms", "transformer, first answer", ("executorch", "to_onnx", "dynamo", "aoti")
    ),
    "optimisers": Chart("one run of the CNN", "ms", "CNN", ("int8 QDQ", "not optimised", "dynamo", "fp16", "int8 dynamic")),
    "transformer_files": Chart(
        "one token of a Llama", "ms", "Llama, one token", ("to_onnx", "dynamo", "openvino", "torch.compile", "eager")
    ),
    "how_we_measure": Chart("false differences in 100 comparisons", "", bars=wrong_differences),
}


def chart_of(name: str) -> str:
    """Return the chart of a benchmark as SVG, or "" if the benchmark has none."""
    run = benchmark.DATA / f"{name}.json"
    return draw(CHARTS[name], CHARTS[name].values(benchmark.load(run))) if name in CHARTS and run.exists() else ""


def draw(chart: Chart, bars: Bars) -> str:
    """Return bars with names and numbers as SVG."""
    longest = max(bars.values())
    rows = "".join(draw_row(place, name, value, chart.unit, longest) for place, (name, value) in enumerate(bars.items()))
    said = ", ".join(f"{shown(name)} {plain(value, chart.unit)}" for name, value in bars.items())
    caption = f'<text class="caption" x="0" y="12">{escape(caption_of(chart))}</text>'
    size = f'viewBox="0 0 {WIDTH} {ROW * (len(bars) + 1)}"'
    return f'<svg class="chart" {size} role="img" aria-label="{escape(f"{caption_of(chart)}: {said}")}">{caption}{rows}</svg>'


def caption_of(chart: Chart) -> str:
    """Return the caption of a chart with its unit."""
    return f"{chart.caption}, {chart.unit}" if chart.unit else chart.caption


def draw_row(place: int, name: str, value: float, unit: str, longest: float) -> str:
    """Return one bar with its name at the left and its number behind it."""
    top = ROW * (place + 1)
    wide = max(2, (WIDTH - NAME - NUMBER) * value / longest)
    color = COLORS.get(name.split(",")[0], GREY)
    fill = "currentColor" if color == "#000000" else color
    label = f'<text x="0" y="{top + 14}">{escape(shown(name))}</text>'
    number = f'<text class="number" x="{NAME + wide + 5:.0f}" y="{top + 14}">{escape(plain(value, unit))}</text>'
    return f'{label}<rect x="{NAME}" y="{top + 3}" width="{wide:.1f}" height="{ROW - 8}" fill="{fill}"/>{number}'
