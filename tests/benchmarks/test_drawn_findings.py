"""The numbers in the figures of findings are those of the stored runs."""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Callable
from typing import Any

import pytest
from matplotlib import pyplot
from recomputed import ROOT, Lines, rows

from exportlab.measure import benchmark, break_even, multiples, real_dots
from exportlab.measure.layout import NARROW, WIDE, Layout, use_layout

OFFICIAL = "dynamo"
WANTED = {"torch.onnx.export": OFFICIAL, "OpenVINO": "openvino", "AOTInductor": "aoti", "ExecuTorch": "executorch"}


def texts() -> list[str]:
    return [text.get_text() for axes in pyplot.gcf().axes for text in axes.texts]


def two_digits(value: float) -> str:
    return f"{float(f'{value:.2g}'):,g}"


@pytest.mark.parametrize("layout", [WIDE, NARROW])
def test_exports_of_real_models(layout: Layout) -> None:
    seen, facts = rows("real_sizes")
    with use_layout(layout):
        real_dots.draw(benchmark.stored("real_sizes"))
    exports = {title.removeprefix("export, "): row for title, row in seen.items() if title.startswith("export, ")}
    seconds = [f"{two_digits(statistics.median(row[name]))} s" for row in exports.values() for name in ("to_onnx", OFFICIAL) if name in row]
    assert sorted(text for text in texts() if text.endswith(" s")) == sorted(seconds)
    named = {"to_onnx", "torchscript", *WANTED.values()}
    masked = "right except where a mask hides everything"
    failed = [
        name for row in facts["outcomes"].values() for name, outcome in row.items() if name in named and outcome not in ("ok", masked)
    ]
    assert sum(text.startswith("✕") for text in texts()) == len(failed)
    rings = [line for line in pyplot.gcf().axes[0].lines if line.get_marker() == "o" and line.get_markerfacecolor() == "#ffffff"]
    timed = [name for model, row in facts["outcomes"].items() for name in exports[model] if row[name] == masked]
    assert len(rings) == len(timed)


def test_the_panels_of_latency_have_the_microseconds_per_row_at_both_ends() -> None:
    seen, _ = rows("latency")
    run = benchmark.stored("latency")
    points = {batch: run[f"transformer, threads 1, batch {batch}"] for batch in (1, 256)}
    multiples.draw_multiples({"1 thread": points}, "a title", "eager")
    medians = {batch: {n: statistics.median(v) for n, v in seen[f"transformer, threads 1, batch {batch}"].items()} for batch in (1, 256)}
    panels = [axes.get_title().replace("\nexport", "export").split("\n") for axes in pyplot.gcf().axes if axes.get_title()]
    assert [WANTED.get(name, name) for name, _ in panels] == sorted((n for n in medians[1] if n != "eager"), key=lambda n: medians[1][n])
    for name, ends in panels:
        taken = [two_digits(1e6 * medians[batch][WANTED.get(name, name)] / batch) for batch in (1, 256)]
        assert ends == f"{' → '.join(taken)} µs"


def ahead(way: dict[str, float], eager: dict[str, float]) -> str:
    """Search for the first number of calls, up to a million, from which a way is ahead of eager."""

    def gain(calls: int) -> float:
        return eager["first"] - way["first"] + (calls - 1) * (eager["later"] - way["later"])

    low, high = 1, 1_000_000
    if (gain(low) > 0) == (gain(high) > 0):
        return "from the first call" if gain(low) > 0 else "not within 1,000,000 calls"
    starts_behind = gain(low) <= 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if (gain(middle) > 0) != starts_behind else (low, middle)
    return f"{'after' if starts_behind else 'until call'} {two_digits_of(low)}{' calls' * starts_behind}"


def two_digits_of(calls: int) -> str:
    return f"{round(calls, 1 - math.floor(math.log10(calls))):,}"


def medians_of(model: str) -> dict[str, dict[str, float]]:
    seen, _ = rows("pays_off")
    parts = {"first": seen[f"{model}, first answer"], "later": seen[f"{model}, later call"]}
    return {name: {part: statistics.median(row[name]) for part, row in parts.items()} for name in parts["first"]}


def models() -> Any:
    stored = json.loads((ROOT / "benchmarks/data/pays_off.json").read_text(encoding="utf-8"))
    return json.loads(stored["metadata"]["facts"])["models"]


def test_what_pays_off(headline: Callable[[str], Lines]) -> None:
    first, *others = headline("pays_off")
    model = models()[-1]
    found = medians_of(model)
    inside = {
        "openvino, exported": "a conversion by OpenVINO",
        "to_onnx, exported": "an export by to_onnx",
        "dynamo, exported": "an export by torch.onnx.export",
        "torch.compile": "torch.compile",
    }
    calls = {text: ahead(found[name], found["eager"]) for name, text in inside.items()}
    assert all(f"{text} {when}" in first.replace(" is ahead of eager", "") for text, when in calls.items())
    assert first.startswith(f"For {model} without a stored file, ")
    numbers = [float(number.replace(",", "")) for number in re.findall(r"after ([\d,]+) calls", first)]
    assert numbers == sorted(numbers)
    for one, line in zip(models(), others, strict=False):
        ways = medians_of(one)
        assert {ahead(way, ways["eager"]) for name, way in ways.items() if name != "eager"} == {
            part.split(":")[0].removeprefix(f"{one}, ahead of eager ") for part in line.split("; ")
        }


def test_crossings_are_labelled_with_their_numbers_of_calls() -> None:
    break_even.draw(benchmark.stored("pays_off"))
    for axes, model in zip(pyplot.gcf().axes, models(), strict=True):
        found = medians_of(model)
        crossed = {ahead(found[name], found["eager"]) for name in break_even.DRAWN if name in found and name != "eager"}
        crossed = {told for told in crossed if told.startswith(("after", "until"))}
        written = [text.get_text() for text in axes.texts]
        labels = {text.removeprefix("pays off ").removeprefix("ahead ") for text in written if text.startswith(("pays", "ahead"))}
        assert labels == crossed
        starts = {f"{break_even.DRAWN[n]}  {two_digits(found[n]['first'])} s" for n in break_even.DRAWN if n in found}
        assert starts <= set(written)
