"""
Export time and memory of to_onnx, torch.export and torch.onnx.export
=====================================================================

Compare the cost of four ways to export: ``to_onnx`` with its default capture, ``to_onnx`` with the capture of ``torch.export``,
``torch.onnx.export``, and the legacy exporter (``dynamo=False``). The models range from a few operators to a Llama of 64 layers and one
with a billion weights.
"""

# sphinx_gallery_parallel = False
import copy
import json
import signal
import time
from collections import Counter
from collections.abc import Callable
from types import FrameType

import torch

from exportlab import compare, exporters, show
from exportlab.measure import benchmark, figures, tables, timing, words
from exportlab.measure.exported import exported
from exportlab.messages import muffled
from exportlab.outcomes import Mark
from exportlab.verification.difference import difference_of
from fx2onnx.lower.conversion import Conversion
from fx2onnx.passes.pipeline import apply_passes
from fx2onnx.paths.explore import TraceDriver

page = benchmark.page(
    "captures",
    "What does each way to export cost, in time and in memory?",
    quick="MLP and Llama(2)",
)
BASE, OURS, TRACED = "torch.export", "to_onnx", "to_onnx, torch.export"
WAYS = {BASE: {}, OURS: {"capture": "auto"}, TRACED: {"capture": "torch.export"}}
WAYS |= {"dynamo": {}, "torchscript": {}}
TIME, LARGE, MEMORY, SHARES = "time, ", "large, ", "memory, ", "parts, "


def found(run: benchmark.Run, kind: str) -> dict[str, timing.Timings]:
    """What was measured of each model."""
    return {t.removeprefix(kind): seen for t, seen in run.times.items() if t.startswith(kind)}


def total(run: benchmark.Run, name: str, base: str) -> timing.Ratio:
    """One way over another, of all models that both get right, their times added up."""
    both = [seen for seen in found(run, TIME).values() if {name, base} <= set(seen.rounds[0])]
    return timing.summed(both, (name, base)).ratio(name, base)


def beside_torchscript(run: benchmark.Run) -> str:
    """Where to_onnx is faster than torchscript, and where slower; of what both get right."""
    over = {
        model: seen.ratio(OURS, "torchscript")
        for model, seen in found(run, TIME).items()
        if "torchscript" in seen.rounds[0]
    }
    slower = [f"{m} {r}" for m, r in over.items() if r.differs and r.median > 1]
    faster = [f"{m} {r}" for m, r in over.items() if r.differs and r.median < 1]
    told = f"of {len(over)} models that torchscript gets right, to_onnx is faster on {len(faster)} and slower on {len(slower)}"
    return f"{told}: {'; '.join([*faster, *slower])}" if faster or slower else told


def finding(run: benchmark.Run) -> benchmark.Lines:
    """The largest model, all models together, torchscript where it is right, and the parts of the deepest."""
    over = {name: total(run, name, BASE) for name in (OURS, TRACED, "dynamo")}
    deepest, looks = [*found(run, SHARES).items()][-1]
    shares = [f"{part} {looks.median(part):.0f}%" for part in looks.rounds[0]]
    largest, times = [*{**found(run, TIME), **found(run, LARGE)}.items()][-1]
    taken = {name: figures.plain(times.median(name), "s") for name in ("dynamo", OURS)}
    return (
        f"{words.spoken('dynamo')} exports a {largest} in {taken['dynamo']}, to_onnx in {taken[OURS]}",
        f"to export the small models that each gets right, {words.takes(over, BASE)}",
        beside_torchscript(run),
        f"of the time that to_onnx takes for {deepest}: {words.listed(shares)}",
    )


def draw(run: benchmark.Run) -> None:
    """Seconds of each way, model by model."""
    from exportlab.measure import seconds

    times = found(run, TIME) | found(run, LARGE)
    (axes,) = figures.panels("One export, by model", height=1.3 + 0.32 * len(times))
    names = [name for name in WAYS if any(name in seen.rounds[0] for seen in times.values())]
    seconds.draw_models(axes, times, names, title="seconds of processor time")


def draw_large(run: benchmark.Run) -> None:
    """The time of each way, of models that multiply much."""
    if large := found(run, LARGE):
        (axes,) = figures.panels(
            "One export of a large model, seconds", height=1.2 + 1.1 * len(large)
        )
        figures.bars(
            axes, {m: {n: s.of(n) for n in s.rounds[0]} for m, s in large.items()}, unit="s"
        )


def draw_parts(run: benchmark.Run) -> None:
    """What an export of ours is made of."""
    (axes,) = figures.panels("Where to_onnx is, of a hundred looks", height=3.4)
    shares = {
        model: {part: seen.median(part) for part in seen.rounds[0]}
        for model, seen in found(run, SHARES).items()
    }
    figures.stacks(axes, shares, unit="%")


def draw_memory(run: benchmark.Run) -> None:
    """How much more a process held while it exported."""
    (axes,) = figures.panels(
        "Peak memory of one export, beyond the model: lower is better", height=3
    )
    peaks = found(run, MEMORY)
    figures.bars(axes, {m: {n: s.of(n) for n in s.rounds[0]} for m, s in peaks.items()}, unit="B")


def table(run: benchmark.Run) -> list[tables.Table]:
    """The times, then the memory."""
    timed = found(run, TIME) | found(run, LARGE)
    return [
        tables.compared(timed, BASE, title="An export, medians: lower is faster"),
        tables.compared(
            found(run, MEMORY), BASE, unit="MB", title="Peak memory of an export: lower is better"
        ),
    ]


page.open(finding, draw, table)

# %%
# Verification
# ------------
#
# Each way exports each model once, and the result is compared with eager at every size. Large models are compared at two sizes with the
# given values. Results that are right, or right except where a mask hides everything, are timed.

names = ("MLP", "Llama(2)")
if not page.quick:
    names = ("MLP", "convnet", "BERT(4)", "Llama(2)", "Llama(16)", "Llama(64)")
large = () if page.quick else ("ResNet-50", "ViT-B", "Llama of 1 B")
models = {name: exported(name) for name in (*names, *large)}


def outcome(model: str, way: str) -> str:
    """What comes of an export, compared with eager at every size; large models at two, by what they were given alone."""
    made, name = models[model], way.partition(",")[0]
    options = {"exporters": (name,), "options": {name: WAYS[way]}}
    if model not in large:
        seen = compare(made.module, made.samples, dynamic_shapes=made.dynamic_shapes, **options)
        attempt = seen[name]
        return Mark.MASKED.meaning if attempt.mark is Mark.MASKED else str(attempt.outcome)
    try:
        artifact = export(model, way)()
    except Exception as error:  # noqa: BLE001 - it is told
        return type(error).__name__
    with torch.no_grad():
        far = [difference_of(made.module(*s.args), artifact(*s.args)).problem for s in made.samples]
    return "wrong" if any(far) else "ok"


def export(model: str, way: str) -> Callable[[], object]:
    """One export, prepared."""
    made = models[model]
    module, args = copy.deepcopy((made.module, made.samples[0].args))
    name, shapes = way.partition(",")[0], made.dynamic_shapes
    return lambda: exporters.export(name, module, args, dynamic_shapes=shapes, **WAYS[way])


with muffled():
    outcomes = {model: {way: outcome(model, way) for way in WAYS} for model in models}
right = {
    m: [way for way, seen in ways.items() if seen in ("ok", Mark.MASKED.meaning)]
    for m, ways in outcomes.items()
}
assert all({BASE, OURS, TRACED} <= set(ways) for ways in right.values()), outcomes
show.table([{"model": model, **ways} for model, ways in outcomes.items()])

# %%
# Method
# ------
#
# The measurements are interleaved (:doc:`how_we_measure`) and use the CPU clock. Each export gets a new copy of the module. The full
# run includes a ResNet-50, a ViT-B and a Llama with a billion weights.


def points(kind: str, models: tuple[str, ...]) -> dict[str, dict[str, timing.Make]]:
    """What is timed of these models."""
    return {
        kind + model: {way: lambda m=model, w=way: export(m, w) for way in right[model]}
        for model in models
    }


def timed(
    kind: str, models: tuple[str, ...], rounds: int, budget: int
) -> dict[str, timing.Timings]:
    """By turns, so many rounds, or until the budget of seconds is spent."""
    settings = {"discard": 0, "budget": budget, "tell": page.tell, "clock": time.process_time}
    return timing.interleaved(points(kind, models), rounds, **settings)


with muffled():
    times = timed(TIME, names, 3 if page.quick else 6, 500)
    times |= timed(LARGE, large, 3, 600) if large else {}

# %%
# Profile of to_onnx
# ------------------
#
# While ``to_onnx`` exports repeatedly, a signal samples its position every millisecond: in the runs, in the run with symbolic sizes and
# the comparison of the graphs, in the translation, in the simplification, or in the checks before and after.

PARTS = {
    TraceDriver._run.__code__: "runs",
    TraceDriver._trace_symbolic.__code__: "one graph",
    Conversion.model.__code__: "translation",
    apply_passes.__code__: "tidying",
}
EACH = 0.001  # seconds from look to look


def looked_at(seconds: float, call: Callable[[], Callable[[], object]]) -> dict[str, float]:
    """Call again and again, and return how many of a hundred looks found it in which part."""
    seen = Counter(dict.fromkeys([*PARTS.values(), "the rest"], 0))

    def look(_: int, frame: FrameType | None) -> None:
        while frame is not None and frame.f_code not in PARTS:
            frame = frame.f_back
        seen[PARTS[frame.f_code] if frame else "the rest"] += 1

    before, end = signal.signal(signal.SIGALRM, look), time.perf_counter() + seconds
    try:
        while time.perf_counter() < end:
            prepared = call()
            signal.setitimer(signal.ITIMER_REAL, EACH, EACH)
            prepared()
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return {part: 100 * looks / seen.total() for part, looks in seen.items()}


with muffled(), timing.frozen():
    shares = {
        SHARES + model: timing.Timings(
            (),
            tuple(
                {
                    part: max(share, 1e-9)
                    for part, share in looked_at(
                        1 if page.quick else 4, lambda m=model: export(m, OURS)
                    ).items()
                }
                for _ in range(2)
            ),
        )
        for model in names
    }

# %%
# Peak memory
# -----------
#
# The peak memory of a process never decreases, so each export gets its own process. The process first exports another model in the same
# way, which loads all libraries, and then measures the increase of the peak.

PROCESS = """
import gc, json, logging, sys, warnings
from pathlib import Path
import psutil
from exportlab import exporters
from exportlab.measure.exported import exported

warnings.filterwarnings("ignore")
logging.disable(logging.ERROR)
name, way, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])


def export(model):
    made = exported(model)
    return lambda: exporters.export(way.partition(",")[0], made.module, made.samples[0].args, dynamic_shapes=made.dynamic_shapes, **options)


def peak():
    return 1024 * int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])


export("Llama(1)")()
prepared = export(name)
gc.collect()
Path("/proc/self/clear_refs").write_text("5")  # the peak begins again here
before = psutil.Process().memory_info().rss
kept = prepared()
print(json.dumps({"peak": max(peak() - before, 1)}))
"""


def peak(model: str, way: str) -> float:
    """Bytes that a process held more while it exported."""
    return benchmark.in_process(PROCESS, model, way, json.dumps(WAYS[way]))["peak"]


deep = ("Llama(2)",) if page.quick else ("BERT(4)", "Llama(16)", "Llama(64)", *large)
peaks = {
    MEMORY + model: timing.Timings(
        (),
        tuple(
            {
                way: peak(model, way)
                for way in (WAYS if not page.quick else (BASE, OURS))
                if way in right[model]
            }
            for _ in range(1 if page.quick else 3)
        ),
    )
    for model in deep
}

# %%
# Results
# -------

rounds = min(len(seen.rounds) for seen in times.values())
units = {
    title: unit
    for titles, unit in ((times, "second"), (shares, "integer"), (peaks, "byte"))
    for title in titles
}
run = page.keep(
    {**times, **shares, **peaks},
    facts={"rounds": rounds},
    unit=units,
    packages=(*benchmark.PACKAGES, "transformers"),
)
page.close(run, finding, draw, table)

# %%
# The profile, the memory and the large models, if they were run:

draw_parts(run)
draw_memory(run)
draw_large(run)

# %%
# What this does not show
# -----------------------
#
# The speed of the exported models (:doc:`latency`, :doc:`real_sizes`), models that one of the captures refuses (:doc:`coverage`), and
# exports on a GPU.
#
# Most of these models are tiny, so that running them costs little. ``to_onnx`` runs large models without values: :doc:`the page of
# to_onnx </docs/converter>` describes how. Next: :doc:`export_time`.
