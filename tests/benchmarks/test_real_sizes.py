"""What the page of real sizes says first, computed a second time."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable

from recomputed import Lines, all_of, check, named, over, rows, same

OFFICIAL = "dynamo"


MASKED = "right except where a mask hides everything"


def fastest(seen: dict[str, dict[str, list[float]]]) -> str:
    calls = [row for title, row in seen.items() if title.startswith("call, ")]
    first: Counter[str] = Counter()
    for row in calls:
        best = min(row, key=lambda name: statistics.median(row[name]))
        first.update(name for name in row if name == best or same(over(row[name], row[best])))
    counts = all_of([f"{named(name)} in {count}" for name, count in first.most_common()])
    return f"of {len(calls)} calls, the fastest, or no slower than that as far as was seen: {counts}"


def seconds(exports: list[dict[str, list[float]]]) -> str:
    medians = {name: sorted(statistics.median(row[name]) for row in exports) for name in ("to_onnx", OFFICIAL)}
    ours, theirs = (f"{taken[0]:.9f}–{taken[-1]:.9f} s" for taken in medians.values())
    return f"to_onnx exports {len(exports)} real models in {ours}, torch.onnx.export in {theirs}"


def test_real_sizes(headline: Callable[[str], Lines]) -> None:
    seen, facts = rows("real_sizes")
    outcomes = list(facts["outcomes"].values())
    counts = Counter(name for row in outcomes for name in row if name != "eager" and row[name] == "ok")
    masked = Counter(name for row in outcomes for name in row if row[name] == MASKED)
    told = sorted(dict.fromkeys(n for row in outcomes for n in row if n != "eager"), key=lambda name: -counts[name])
    exports = [row for title, row in seen.items() if title.startswith("export, ")]
    lines = [seconds([row for row in exports if {"to_onnx", OFFICIAL} <= set(row)])]
    lines += [f"of {len(outcomes)} models of real size, these come out right: {all_of([f'{named(n)} {counts[n]}' for n in told])}"]
    lines += [f"{MASKED}: {all_of([f'{named(n)} {masked[n]}' for n in outcomes[0] if masked[n]])}"] if masked else []
    for name in ("to_onnx", "torchscript"):
        both = [over(row[name], row[OFFICIAL]) for row in exports if {name, OFFICIAL} <= set(row)]
        medians = sorted(map(statistics.median, both))
        reach = " to ".join(f"{end:.9f}x" for end in (medians[0], medians[-1]))
        lines.append(f"an export by {named(name)} takes {reach} the time of one by torch.onnx.export, on {len(both)} models")
    check(headline("real_sizes"), [*lines, fastest(seen)])
