"""What the page on files of transformers says first, computed a second time from the JSON of its stored run."""

from __future__ import annotations

from collections.abc import Callable

import numpy
from recomputed import Lines, Seconds, all_of, check, named, over, rows, same, verdict

OFFICIAL = ("dynamo", "dynamo, opset 23", "dynamo, ORT's optimiser")


def middle(taken: Seconds) -> float:
    return float(numpy.median(taken))


def test_our_newest_file_is_held_against_the_best_of_the_others(headline: Callable[[str], Lines]) -> None:
    seen, facts = rows("transformer_files")
    best = {model: min((name for name in OFFICIAL if name in row), key=lambda name: middle(row[name])) for model, row in seen.items()}
    beside = {model: over(row["to_onnx, opset 23"], row[best[model]]) for model, row in seen.items()}
    faster = sum(not same(ratio) and middle(ratio) < 1 for ratio in beside.values())
    slower = sum(not same(ratio) and middle(ratio) > 1 for ratio in beside.values())
    last = {name: 1000 * middle(seconds) for name, seconds in list(seen.values())[-1].items()}
    left = "; ".join(f"{who} ({why})" for who, why in facts["left out"].items()) or "nothing"
    check(
        headline("transformer_files"),
        [
            f"One call ({list(seen)[-1]}) takes {last['eager']:.9f} ms in eager mode, and {last['dynamo']:.9f} ms "
            f"with torch.onnx.export's file in ONNX Runtime",
            f"beside the fastest file of torch.onnx.export, to_onnx's at opset 23 is faster for {faster} of {len(seen)} calls "
            f"and slower for {slower}",
            *(f"{m}: {verdict(beside[m])} beside {named(best[m])}; fastest of all: {fastest(row)}" for m, row in seen.items()),
            *(newer(name, seen, facts["opsets"][name]) for name in ("to_onnx", "dynamo")),
            f"outputs differ from eager's by at most {facts['apart']:.9e}; left out: {left}",
        ],
    )


def fastest(row: dict[str, list[float]]) -> str:
    first = min(row, key=lambda name: middle(row[name]))
    level = [name for name in row if name != first and same(over(row[name], row[first]))]
    return all_of([*map(named, (first, *level))])


def newer(name: str, seen: dict[str, dict[str, list[float]]], opset: int) -> str:
    told = "; ".join(
        f"{model} {verdict(over(row[f'{name}, opset 23'], row[name]))}"
        for model, row in seen.items()
        if {name, f"{name}, opset 23"} <= set(row)
    )
    return f"{named(name)}'s file at opset 23 over its file at opset {opset}: {told}"
