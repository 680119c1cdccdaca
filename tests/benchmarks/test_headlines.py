"""What each benchmark's page says first, computed a second time: by plain Python from the JSON of the stored run, rounded by nobody."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy
import pytest
from recomputed import METADATA, Lines, Seconds, all_of, check, named, over, rows, same, slope, takes, verdict

from exportlab.measure import benchmark, timing

ROOT = Path(__file__).parents[2]
STORED = sorted((ROOT / "benchmarks/data").glob("*.json"))
PAGES = [path.stem for path in STORED]


def test_export_time(headline: Callable[[str], Lines]) -> None:
    seen, _ = rows("export_time")
    depths = sorted(int(title.split()[-1]) for title in seen if title.startswith("transformer"))
    last = seen[f"transformer, depth {depths[-1]}"]
    ratios = {name: over(last[name], last["torch.export"]) for name in last if name != "torch.export"}
    medians = {who: {part: statistics.median(took) for part, took in seen[f"parts of {who}"].items()} for who in ("to_onnx", "dynamo")}
    inside = medians["dynamo"]["decomposition"]
    whole = {who: sum(parts.values()) for who, parts in medians.items()}
    whole["dynamo"] -= min(inside, medians["dynamo"]["translation"])
    shares = [f"{100 * medians[who]['capture'] / whole[who]:.9f}% of {named(who)}'s time" for who in whole]
    layer = {name: slope({depth: seen[f"transformer, depth {depth}"] for depth in depths}, name) for name in last}
    check(
        headline("export_time"),
        [
            f"For each further layer of a small transformer, torch.onnx.export needs {1000 * layer['dynamo']:.9f} ms "
            f"and to_onnx {1000 * layer['to_onnx']:.9f} ms",
            f"for each further layer, torch.export needs {1000 * layer['torch.export']:.9f} ms "
            f"and torchscript needs {1000 * layer['torchscript']:.9f} ms",
            f"to export {depths[-1]} layers of a transformer, {takes(ratios, 'torch.export')}",
            f"if both capture with torch.export, the capture takes {' and '.join(shares)} (medians)",
        ],
    )


def test_captures_say_where_torchscript_is_faster(headline: Callable[[str], Lines], stored_elsewhere: Path) -> None:
    fast = {"torch.export": 10.0, "to_onnx": 2.0, "to_onnx, torch.export": 9.0, "dynamo": 50.0, "torchscript": 1.0}
    deep = {name: 10 * seconds for name, seconds in fast.items() if name != "torchscript"}
    parts = {"runs": 60.0, "one graph": 40.0}
    found = {"time, MLP": fast, "time, Llama(2)": deep, "memory, Llama(2)": deep, "parts, Llama(2)": parts}
    times = {title: timing.Timings((), (row,) * 6) for title, row in found.items()}
    benchmark.save(stored_elsewhere / "benchmarks/data/captures.json", times, METADATA)
    said = headline("captures")
    assert said[0] == "torch.onnx.export exports a Llama(2) in 500 s, to_onnx in 20 s"
    assert said[1] == (
        "to export the small models that each gets right, to_onnx takes 0.20 times as long as torch.export, "
        "to_onnx with torch.export 0.90 times, torch.onnx.export 5.0 times"
    )
    assert "of 1 models that torchscript gets right, to_onnx is faster on 0 and slower on 1: MLP 2.0x (2.0–2.0)" in said
    assert "of the time that to_onnx takes for Llama(2): runs 60% and one graph 40%" in said


def test_graph_size(headline: Callable[[str], Lines]) -> None:
    seen, facts = rows("graph_size")
    names = list(dict.fromkeys(name for row in seen.values() for name in row if name != "by hand"))
    names = [name for name in ("to_onnx", "dynamo", "dynamo, optimize=False", "torchscript") if name in names]
    more = {name: {task: row[name][0] / row["by hand"][0] for task, row in seen.items() if name in row} for name in names}
    as_few = [f"{named(n)} for {len([r for r in more[n].values() if r <= 1])} of {len(more[n])}" for n in names]
    worst = {name: max(more[name].items(), key=lambda item: item[1]) for name in names}
    fewer = [
        f"{named(name)} in {task}, with {facts['weights'][task][name] / facts['weights'][task]['by hand']:.9f}x the weights"
        for name in names
        for task in more[name]
        if more[name][task] < 1
    ]
    shared = [row for row in seen.values() if {"by hand", *names} <= {*row}]
    whole = {name: sum(row[name][0] for row in shared) for name in ("by hand", "dynamo", "to_onnx")}
    beside = {
        name: statistics.median(
            (facts["bytes"][task][name] - facts["weights"][task][name]) / row[name][0] for task, row in seen.items() if name in row
        )
        for name in ("by hand", *names)
    }
    check(
        headline("graph_size"),
        [
            f"For the {len(shared)} models that all get right, torch.onnx.export writes {whole['dynamo']:.9f} nodes "
            f"and to_onnx {whole['to_onnx']:.9f}; by hand, {whole['by hand']:.9f} are enough",
            f"among the models that come out right, the graph has no more nodes than one written by hand: {all_of(as_few)}",
            *(
                f"{named(n)}: median {numpy.median(list(more[n].values())):.9f}x the nodes of the file by hand, "
                f"at most {worst[n][1]:.9f}x ({worst[n][0]})"
                for n in names
            ),
            f"fewer nodes than by hand: {'; '.join(fewer) or 'none'}",
            f"bytes for each node, weights left out (medians): {', '.join(f'{named(n)} {b:.9f} B' for n, b in beside.items())}",
        ],
    )


def test_how_we_measure(headline: Callable[[str], Lines]) -> None:
    seen, facts = rows("how_we_measure")
    wall, clock, naive = (seen[way] for way in ("by turns", "by turns, processor's clock", "all of A, then all of B"))
    shape = (-1, facts["rounds"])
    turns = {way: (numpy.array(one["A"]) / numpy.array(one["B"])).reshape(shape) for way, one in (("wall", wall), ("clock", clock))}
    fooled = {way: sum(not same(list(quotients)) for quotients in found) for way, found in turns.items()}
    means = numpy.array(naive["A"]).reshape(shape).mean(1) / numpy.array(naive["B"]).reshape(shape).mean(1)
    far = numpy.abs(numpy.median(turns["clock"], axis=1) - 1) > 0.05
    count = len(turns["clock"])
    spans = [numpy.divide(*numpy.quantile(one["A"], [0.95, 0.05], method="weibull")) for one in (wall, clock)]
    check(
        headline("how_we_measure"),
        [
            f"We compared an exporter with itself {count} times, and our rule saw a difference in {fooled['clock']} of them",
            f"timed by the clock on the wall, the same rule saw one in {fooled['wall']} of {count}",
            f"with all of A timed before all of B, the means were more than 5 % apart in {(numpy.abs(means - 1) > 0.05).sum()} of {count}; "
            f"taken by turns, the medians were in {far.sum()}",
            f"a slow export (the 95th percentile) takes longer than a fast one (the 5th): {spans[0]:.9f} times by the wall "
            f"and {spans[1]:.9f} times by the processor",
        ],
    )


def test_latency(headline: Callable[[str], Lines]) -> None:
    seen, facts = rows("latency")
    printed = headline("latency")
    ends = [
        (model, batch, seen[f"{model}, threads 1, batch {batch}"])
        for model in facts["models"]
        for batch in (choose(int(t.split()[-1]) for t in seen if t.startswith(f"{model}, threads 1")) for choose in (min, max))
    ]
    won = []
    for _, batch, row in ends:
        ranked = sorted(row, key=lambda name: sorted(row[name])[len(row[name]) // 2])
        level = [named(name) for name in ranked[1:] if same(over(row[name], row[ranked[0]]))]
        share = statistics.median(over(row[ranked[0]], row["eager"]))
        apart = ", which do not differ from the first" * bool(level)
        names = all_of([named(ranked[0]), *level])
        ours, eager = (1e6 * statistics.median(row[name]) / batch for name in (ranked[0], "eager"))
        won.append(
            (
                f"{names}{apart}, and takes {share:.9f} times as long as eager",
                f"at batch {batch} with {names} ({ours:.9f} µs per row, eager {eager:.9f} µs)",
            )
        )
    told = [f"the {model} at batch {batch}: fastest is {who}" for (model, batch, _), (who, _) in zip(ends[:-2], won[:-2], strict=True)]
    first = f"The {ends[-1][0]} on one thread runs fastest {', '.join(row for _, row in won[-2:])}"
    writers = [over(row["to_onnx"], row["dynamo"]) for row in seen.values()]
    second = [over(row[f"{n}, 1 thread"], row[n]) for t, row in seen.items() if "threads 2" in t for n in ("eager", "to_onnx")]
    left = "; ".join(f"{who} ({why})" for who, why in facts["left out"].items()) or "nothing"
    check(
        printed,
        [
            first,
            *told,
            f"to_onnx's file differs from torch.onnx.export's {in_how_many(writers, 'its time')}",
            f"a second thread changes the time {in_how_many(second, 'times as fast')}",
            f"outputs differ from eager's by at most {max(facts['apart'].values()):.9e}; left out: {left}",
        ],
    )


def in_how_many(ratios: Sequence[Seconds], what: str) -> str:
    medians = sorted(statistics.median(quotients) for quotients in ratios if not same(quotients))
    ends = " to ".join(f"{end:.9f}x" for end in dict.fromkeys((medians[0], medians[-1]))) if medians else ""
    return f"in {len(medians)} of {len(ratios)} comparisons" + f" ({ends} {what})" * bool(medians)


def test_llama_layers(headline: Callable[[str], Lines]) -> None:
    seen, facts = rows("llama_layers")
    at = {depth: seen[f"export, layers {depth}"] for depth in facts["depths"]}
    ways = [name for name in at[facts["depths"][0]] if name != "torch.export"]
    shared, last = max(depth for depth, row in at.items() if {*ways} <= {*row}), max(at)
    ratios = {way: over(at[shared][way], at[shared]["torch.export"]) for way in ways}
    nodes = ", ".join(f"{named(way)} {count:,}" for way, count in facts["nodes"][str(last)].items())
    layers = {depth: f"{depth} layer{'s' if depth > 1 else ''}" for depth in at}
    up_to = {depth: row for depth, row in at.items() if depth <= shared}
    tokens = {depth: seen[f"decode, layers {depth}"] for depth in at}
    token = {way: f"{1e6 * slope(tokens, way):.9f} µs" for way in ("eager", "dynamo", "to_onnx")}
    refused = "; ".join(f"{way}: {why}" for way, why in facts["refused"].items()) or "none"
    check(
        headline("llama_layers"),
        [
            f"Up to {layers[shared]}, one more layer of a Llama with a cache takes torch.onnx.export {slope(up_to, 'dynamo'):.9f} s "
            f"and to_onnx {1000 * slope(up_to, 'to_onnx'):.9f} ms",
            f"for each token, a layer takes {token['eager']} in eager mode, {token['dynamo']} in torch.onnx.export's file "
            f"and {token['to_onnx']} in to_onnx's",
            f"to export {layers[shared]}, {takes(ratios, 'torch.export')}",
            f"nodes at {layers[last]}: {nodes}",
            f"not timed, since not right: {refused}",
        ],
    )


def test_memory(headline: Callable[[str], Lines]) -> None:
    seen, facts = rows("memory")
    held = {size: {way: [p / facts["weights"][size] for p in peaks] for way, peaks in row.items()} for size, row in seen.items()}
    most = max(len(row) for row in held.values())
    largest = max((size for size, row in held.items() if len(row) == most), key=lambda size: facts["weights"][size])
    told = [f"{named(way)}{{}} {statistics.median(peaks) / 1e9:.9f} GB" for way, peaks in seen[largest].items()]
    needs = [told[0].format(" needs"), *(one.format("") for one in told[1:])]
    times = [f"{named(way)} {statistics.median(peaks):.9f} times" for way, peaks in held[largest].items()]
    check(
        headline("memory"),
        [
            f"To export and save {largest} of weights, {all_of(needs)}, the model included",
            f"over the weights: {all_of(times)}",
            f"outputs differ from eager's by at most {facts['apart']:.9e}",
        ],
    )


def test_optimisers(headline: Callable[[str], Lines]) -> None:
    seen, facts = rows("optimisers")
    reduced = ("fp16", "int8 dynamic", "int8 QDQ", "int8 QDQ, percentile")
    ratios = {model: {name: over(seen[model][name], seen[model]["dynamo"]) for name in files} for model, files in facts["files"].items()}
    whole = [(name, model) for model, found in ratios.items() for name in found if name not in (*reduced, "dynamo")]
    parted = {pair: ratios[pair[1]][pair[0]] for pair in whole if not same(ratios[pair[1]][pair[0]])}
    faster, slower = ([pair for pair, q in parted.items() if (statistics.median(q) < 1) == quick] for quick in (True, False))
    off = {name: [f"{100 * files[name]['off']:.9f}% in the {model}" for model, files in facts["files"].items()] for name in reduced}
    bits = [f"{name} is off by {all_of(errors)}" for name, errors in off.items()]
    check(
        headline("optimisers"),
        [
            f"ONNX Runtime runs the CNN in {1000 * statistics.median(seen['CNN']['int8 QDQ']):.9f} ms with int8 QDQ "
            f"instead of {1000 * statistics.median(seen['CNN']['dynamo']):.9f} ms",
            f"of {len(whole)} other 32-bit files, {len(faster) or 'none'} run faster in ONNX Runtime "
            f"than the one that torch.onnx.export writes, and {len(slower) or 'none'} run slower",
            *bits,
            f"refused: {'; '.join(facts['refused']) or 'nothing'}",
        ],
    )


def test_own_exporter(headline: Callable[[str], Lines]) -> None:
    seen, facts = rows("own_exporter")
    right = [row for title, row in seen.items() if title.startswith("export, ") and {"to_onnx", "dynamo"} <= {*row}]
    total = {
        name: [sum(took) for took in zip(*(row[name] for row in right), strict=True)] for name in ("torch.export", "to_onnx", "dynamo")
    }
    ratios = {name: over(total[name], total["torch.export"]) for name in ("to_onnx", "dynamo")}
    speeds = [over(row["to_onnx"], row["dynamo"]) for title, row in seen.items() if title.startswith("ONNX Runtime, ")]
    sides = Counter("same" if same(q) else "faster" if statistics.median(q) < 1 else "slower" for q in speeds)
    a_node = [statistics.median(seen[f"conversion alone, {n} layers"]["to_onnx"]) / count for n, count in facts["nodes"].items()]
    deep = {base: verdict(over(seen["depth"]["to_onnx, functions"], seen["depth"][base])) for base in ("torch.export", "shallow")}
    check(
        headline("own_exporter"),
        [
            f"To export the {len(right)} models that both exporters get right, {takes(ratios, 'torch.export')}",
            f"the conversion alone takes {1e6 * max(a_node):.9f} µs a node at most, median of each depth",
            f"to_onnx's files against torch.onnx.export's: {sides['faster']} of {len(speeds)} faster, {sides['slower']} slower; "
            f"{len([1 for ours, theirs in facts['sizes'].values() if ours > theirs])} of {len(speeds)} have more nodes",
            f"{facts['depths'][1]} layers, each a call of one function: {deep['torch.export']} over torch.export; "
            f"{deep['shallow']} over {facts['depths'][0]} layers in full",
        ],
    )


def test_start_up(headline: Callable[[str], Lines]) -> None:
    seen, facts = rows("start_up")
    model = facts["models"][-1]
    whole = seen[f"{model}, in all"]
    ratios = {way: over(took, whole["to_onnx"]) for way, took in whole.items() if way != "to_onnx"}
    file = "to_onnx's file in ONNX Runtime"
    share = statistics.median(seen[f"{model}, import"]["to_onnx"]) / statistics.median(whole["to_onnx"])
    check(
        headline("start_up"),
        [
            f"A new process gives the first answer of the {model} in {statistics.median(whole['dynamo']):.9f} s "
            f"with torch.onnx.export's file in ONNX Runtime, and in {statistics.median(whole['torch.export']):.9f} s with torch.export",
            f"to give the first answer of the {model}, {takes(ratios, file)}",
            f"{100 * share:.9f}% of the first answer of {file} is the import, medians",
            f"outputs differ from eager's by at most {facts['apart']:.9e}",
        ],
    )


@pytest.mark.parametrize("name", PAGES)
def test_no_difference_is_said_exactly_where_the_interval_holds_1(headline: Callable[[str], Lines], name: str) -> None:
    text = " ".join(headline(name))
    equal = [tuple(map(float, ends)) for ends in re.findall(r"no difference seen \(([\d.]+)–([\d.]+)\)", text)]
    apart = [tuple(map(float, ends)) for ends in re.findall(r"[\d.]x \(([\d.]+)–([\d.]+)\)", text)]
    assert [ends for ends in equal if not ends[0] <= 1 <= ends[1]] == []
    assert [ends for ends in apart if ends[0] <= 1 <= ends[1]] == []


def test_ways_are_compared_at_the_largest_size_that_all_have(headline: Callable[[str], Lines], stored_elsewhere: Path) -> None:
    small = {"to_onnx": 100.0, "to_onnx, one file": 400.0, "dynamo": 150.0}
    large = {"to_onnx": 900.0, "dynamo": 2000.0}
    times = {"100 B": timing.Timings((), (small, small)), "1 kB": timing.Timings((), (large, large))}
    facts = {"weights": {"100 B": 100, "1 kB": 1000}, "apart": 1e-6}
    benchmark.save(stored_elsewhere / "benchmarks/data/memory.json", times, METADATA, "byte", facts)
    said = "to_onnx needs 100 B, to_onnx with one file 400 B and torch.onnx.export 150 B"
    assert headline("memory")[0] == f"To export and save 100 B of weights, {said}, the model included"
