"""What the page on the ways to export says first, computed a second time from the stored run."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import numpy
from recomputed import Lines, Seconds, all_of, check, over, rows, same, takes, verdict

BASE, OURS = "torch.export", "to_onnx"


def of_kind(seen: dict[str, dict[str, list[float]]], kind: str) -> dict[str, dict[str, list[float]]]:
    return {title.removeprefix(kind): row for title, row in seen.items() if title.startswith(kind)}


def test_captures(headline: Callable[[str], Lines]) -> None:
    seen, _ = rows("captures")
    times, parts = (of_kind(seen, kind) for kind in ("time, ", "parts, "))
    added: dict[str, Seconds] = {}
    for name in (OURS, "to_onnx, torch.export", "dynamo"):
        both = [row for row in times.values() if name in row]
        added[name] = over(*(list(numpy.sum([row[one] for row in both], axis=0)) for one in (name, BASE)))
    against = {model: over(row[OURS], row["torchscript"]) for model, row in times.items() if "torchscript" in row}
    faster = [f"{model} {verdict(q)}" for model, q in against.items() if not same(q) and statistics.median(q) < 1]
    slower = [f"{model} {verdict(q)}" for model, q in against.items() if not same(q) and statistics.median(q) > 1]
    told = f"of {len(against)} models that torchscript gets right, to_onnx is faster on {len(faster)} and slower on {len(slower)}"
    deepest = list(parts)[-1]
    largest, row = list(of_kind(seen, "large, ").items())[-1]
    check(
        headline("captures"),
        [
            f"torch.onnx.export exports a {largest} in {statistics.median(row['dynamo']):.9f} s, "
            f"to_onnx in {statistics.median(row['to_onnx']):.9f} s",
            f"to export the small models that each gets right, {takes(added, BASE)}",
            ": ".join([told, *filter(None, ["; ".join([*faster, *slower])])]),
            f"of the time that to_onnx takes for {deepest}: "
            + all_of([f"{part} {statistics.median(shares):.9f}%" for part, shares in parts[deepest].items()]),
        ],
    )
