"""What a headline says, a second time: from the JSON of a stored run, by plain Python, numpy and scipy, rounded by nobody."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy
import scipy.stats

ROOT = Path(__file__).parents[2]
SPOKEN = {"dynamo": "torch.onnx.export", "openvino": "OpenVINO", "executorch": "ExecuTorch", "aoti": "AOTInductor"}
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e[-+]\d+)?")
METADATA = {"date": "2026-11-02 09:13:22.123", "cpu_count": 2, "torch_threads": 1, "system": "Linux x86_64", "kind": "full"}
Seconds = Sequence[float]
Lines = Sequence[str]


def rows(name: str) -> tuple[dict[str, dict[str, list[float]]], dict[str, Any]]:
    """Every value by title and by label, and the facts."""
    stored = json.loads((ROOT / f"benchmarks/data/{name}.json").read_text(encoding="utf-8"))
    found: dict[str, dict[str, list[float]]] = defaultdict(dict)
    for one in stored["benchmarks"]:
        found[one["metadata"]["title"]][one["metadata"]["label"]] = one["runs"][0]["values"]
    return dict(found), json.loads(stored["metadata"].get("facts", "{}"))


def named(name: str) -> str:
    """A name as a reader knows it."""
    who, *how = name.split(", ")
    return " with ".join([SPOKEN.get(who, who), *how]) if who in (*SPOKEN, "to_onnx") else name


def all_of(words: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def over(taken: Seconds, base: Seconds) -> list[float]:
    """Quotients, round by round."""
    return [one / other for one, other in zip(taken, base, strict=True)]


def slope(by_layers: Mapping[int, Mapping[str, Seconds]], name: str) -> float:
    """The seconds of one more layer, median of the rounds, from the fewest layers to the most that were timed."""
    at = [layers for layers, row in by_layers.items() if name in row]
    few, many = (numpy.array(by_layers[end(at)][name]) for end in (min, max))
    return float(numpy.median((many - few) / (max(at) - min(at))))


def interval(quotients: Seconds) -> tuple[float, float]:
    """From the lowest to the highest; of few rounds, Student's where it is wider."""
    ends = [min(quotients), max(quotients)]
    if 2 <= len(quotients) <= 5:
        logs = numpy.log(quotients)
        ends += list(numpy.exp(scipy.stats.t.interval(0.95, len(logs) - 1, loc=logs.mean(), scale=scipy.stats.sem(logs))))
    return min(ends), max(ends)


def same(quotients: Seconds) -> bool:
    """Whether the interval holds 1."""
    low, high = interval(quotients)
    return low <= 1 <= high


def verdict(quotients: Seconds) -> str:
    """The median with its interval, or that no difference was seen."""
    low, high = interval(quotients)
    return f"{'no difference seen' if same(quotients) else f'{numpy.median(quotients):.9f}x'} ({low:.9f}–{high:.9f})"


def takes(ratios: Mapping[str, Seconds], base: str) -> str:
    """What each takes over what all are held against."""
    apart = [f"{named(name)}{{}} {numpy.median(q):.9f} times{{}}" for name, q in ratios.items() if not same(q)]
    near = all_of([named(name) for name, q in ratios.items() if same(q)] or [""])
    if not apart:
        return f"no difference from {base} was seen for {near}"
    told = ", ".join([apart[0].format(" takes", f" as long as {base}"), *(one.format("", "") for one in apart[1:])])
    return told + f"; for {near} no difference was seen" * bool(near)


def check(printed: Lines, computed: Lines) -> None:
    """Hold what is printed against what was computed: the same words, and each number within half of its last digit."""
    assert [NUMBER.sub("#", line) for line in printed] == [NUMBER.sub("#", line) for line in computed]
    for line, wanted in zip(printed, computed, strict=True):
        for number, exact in zip(NUMBER.findall(line), NUMBER.findall(wanted), strict=True):
            digit = 10.0 ** Decimal(number.replace(",", "")).as_tuple().exponent
            value, right = float(number.replace(",", "")), float(exact.replace(",", ""))
            assert abs(value - right) <= 0.5001 * digit + 3e-4 * right, f"{number} is {exact}: {line}"
