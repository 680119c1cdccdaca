"""
ResNet-50, ViT, BERT, Whisper and a 1B Llama: export and run times
==================================================================

Compare all exporters on models of real size in float32, and on the Llama in bfloat16 too: whether the result is right, what the export
costs, and how fast the model runs. The models are ResNet-50, ViT-B/16, BERT-base, both halves of Whisper-small and a Llama with a
billion weights. All weights are random.
"""

# sphinx_gallery_parallel = False
import statistics
import tempfile
from collections import Counter
from datetime import date
from pathlib import Path

from exportlab import show
from exportlab.bench import Bench, Plan, Work, measure
from exportlab.bench.result import Way
from exportlab.bench.run import InForks
from exportlab.measure import benchmark, figures, real, tables, timing, words
from exportlab.messages import muffled
from exportlab.outcomes import Mark

page = benchmark.page(
    "real_sizes",
    "What do the exporters do with models of real size?",
    quick="ResNet-50 by two exporters, one round",
    models=real.REAL,
)
BASE, EAGER = "dynamo", "eager"
EXPORT, LOAD, MEMORY, FILE, CALL = "export, ", "load, ", "memory, ", "file, ", "call, "


def found(run: benchmark.Run, kind: str) -> dict[str, timing.Timings]:
    """What was measured of each model."""
    return {t.removeprefix(kind): seen for t, seen in run.times.items() if t.startswith(kind)}


def both(run: benchmark.Run, name: str) -> dict[str, timing.Timings]:
    """The exports of the models that this exporter and the official one get right."""
    return {m: t for m, t in found(run, EXPORT).items() if {name, BASE} <= set(t.rounds[0])}


def right(run: benchmark.Run) -> str:
    """How many models each exporter gets right."""
    counts = counted(run, "ok")
    best = sorted(counts, key=lambda name: -counts[name])
    return words.listed(f"{words.spoken(name)} {counts[name]}" for name in best)


def counted(run: benchmark.Run, outcome: str) -> dict[str, int]:
    """How many files of each exporter came out so."""
    rows = run.facts["outcomes"].values()
    names = [n for n in dict.fromkeys(n for row in rows for n in row) if n != EAGER]
    return {name: sum(row.get(name) == outcome for row in rows) for name in names}


def masked(run: benchmark.Run) -> list[str]:
    """Whose files are right except where a mask hides everything: they count as neither right nor wrong."""
    counts = counted(run, Mark.MASKED.meaning)
    names = [f"{words.spoken(name)} {count}" for name, count in counts.items() if count]
    return [f"{Mark.MASKED.meaning}: {words.listed(names)}"] if names else []


def costs(run: benchmark.Run, name: str) -> str:
    """What exports take beside those of the official exporter."""
    shared = [timings.ratio(name, BASE) for timings in both(run, name).values()]
    medians = sorted(ratio.median for ratio in shared)
    reach = " to ".join(dict.fromkeys(figures.plain(end, "x") for end in (medians[0], medians[-1])))
    return f"an export by {words.spoken(name)} takes {reach} the time of one by {words.spoken(BASE)}, on {len(shared)} models"


def fastest(run: benchmark.Run) -> str:
    """How often each is the fastest, or does not differ from it."""
    first: Counter[str] = Counter()
    calls = found(run, CALL).values()
    for seen in calls:
        best = min(seen.rounds[0], key=seen.median)
        first.update(n for n in seen.rounds[0] if n == best or not seen.ratio(n, best).differs)
    counts = words.listed(f"{words.spoken(name)} in {count}" for name, count in first.most_common())
    return (
        f"of {len(calls)} calls, the fastest, or no slower than that as far as was seen: {counts}"
    )


def seconds(run: benchmark.Run) -> str:
    """From what to what the exports take of the models that both exporters export."""
    from exportlab.measure.dot_plot import rough

    exports = both(run, "to_onnx").values()
    ends = {n: sorted(t.median(n) for t in exports) for n in ("to_onnx", BASE)}
    ours, theirs = (f"{rough(taken[0])}–{rough(taken[-1])} s" for taken in ends.values())
    who = f"to_onnx exports {len(exports)} real models"
    return f"{who} in {ours}, {words.spoken(BASE)} in {theirs}"


def finding(run: benchmark.Run) -> benchmark.Lines:
    """What exports take, who is right, how that compares, who runs what fastest."""
    outcomes = run.facts["outcomes"]
    others = [n for n in ("to_onnx", "torchscript") if both(run, n)]
    return (
        seconds(run),
        f"of {len(outcomes)} models of real size, these come out right: {right(run)}",
        *masked(run),
        *(costs(run, name) for name in others),
        *([fastest(run)] if run.rounds > 1 else []),
    )


def table(run: benchmark.Run) -> list[tables.Table]:
    """What came of every export and what it left; then the exports, and the calls."""
    return [
        show.table(
            [row for model in run.facts["outcomes"] for row in files(run, model)], measured(run)
        ),
        tables.compared(
            found(run, EXPORT), BASE, unit="s", title="An export, medians: lower is faster"
        ),
        tables.compared(
            found(run, CALL), EAGER, who="run by", title="A call, medians: lower is faster"
        ),
    ]


def measured(run: benchmark.Run) -> str:
    """Say what the first table holds, on which days and machines: a model that takes an hour is measured by itself, by all exporters."""
    days = f"Files, measured on {words.listed(dict.fromkeys(run.facts['days'].values()))}"
    machines = run.facts["machines"]
    models = {
        machine: words.listed(m for m in machines if machines[m] == machine)
        for machine in dict.fromkeys(machines.values())
    }
    return "; ".join(
        [days, *(f"on {machine}: {names}" for machine, names in models.items() if len(models) > 1)]
    )


def files(run: benchmark.Run, model: str) -> list[dict[str, str]]:
    """A line for each exporter: its outcome, and what it took; or why there is nothing."""
    kinds = {"peak, MB": (MEMORY, 1e-6), "file, MB": (FILE, 1e-6), "load, s": (LOAD, 1.0)}
    rows = []
    for name, outcome in run.facts["outcomes"][model].items():
        seen = {head: (run.times.get(kind + model), scale) for head, (kind, scale) in kinds.items()}
        numbers = {
            head: figures.short(scale * timings.median(name))
            if timings and name in timings.rounds[0]
            else ""
            for head, (timings, scale) in seen.items()
        }
        why = run.facts["why"].get(model, {}).get(name, "")
        if name != EAGER:
            first = {"model": model, "exporter": figures.shown(name), "outcome": outcome}
            rows.append({**first, **numbers, "why": why})
    return rows


def draw(run: benchmark.Run) -> None:
    """The export of every model by every exporter, and who is not right."""
    from exportlab.measure import (
        real_dots,
    )  # here, because a change of the script's imports would make its run stale

    real_dots.draw(run)


page.open(finding, draw, table)

# %%
# Models
# ------
#
# Each model is a case in ``exportlab/measure/real.py``. Run one with ``python benchmarks/real_sizes.py --only bert_base``, or your own
# with :doc:`exportlab bench </generated/gallery/torch_onnx/bench_your_model>`, which uses the same method.
#
# The cache of the Llama is passed as pairs of tensors. The prompt has 128 tokens and no cache; a step has one token after 128.

show.table(
    [
        {
            "name": name,
            "model": one.name,
            **{f"{d}": ", ".join(map(str, one.sizes.get(d, ""))) for d in ("batch", "seq", "past")},
        }
        for name, one in real.REAL.items()
    ]
)

# %%
# Method
# ------
#
# Each exporter runs in its own process, and its result is compared with eager at every size. Calls are timed interleaved with eager's,
# on one thread. Wrong results aren't timed. An export is stopped at 20 GiB or after 20 minutes.
#
# *Right except where a mask hides everything* means that the result differs from eager for masks whose flags are all 0, which real
# texts don't have. It is timed, and counts as neither right nor wrong.
#
# A model that ONNX Runtime doesn't load on this CPU may load elsewhere. ONNX Runtime has few bfloat16 kernels for CPUs. ``to_onnx``
# adds casts where a kernel is missing; ``torch.onnx.export`` doesn't, and its model suits providers that have these kernels.
#
# In bfloat16 eager rounds too. There a result is *wrong* if it is farther from the float64 result than eager: by more than a tenth
# overall, or twice as far at the worst value.

wanted = tuple(page.only or real.REAL)
ways = (EAGER, "torch.export", "to_onnx", BASE, "torchscript", "openvino", "executorch", "aoti")
rounds, calls = 3, 15
if page.quick:
    wanted, ways, rounds, calls = ("resnet50",), (EAGER, "to_onnx", BASE), 1, 3


def bench(name: str) -> Bench:
    """All rounds of one model; what an earlier call has measured is kept."""
    one = real.REAL[name]
    folder = Path(tempfile.mkdtemp() if page.quick else "build/real_sizes") / name
    sizes = {"batch": (1,)} if page.quick else one.sizes
    work = Work(name, ways, rounds, Plan(sizes, calls=calls), real.__file__, 1200, 20 * 2**30)
    forks = InForks(getattr(real, name), (1200, 20 * 2**30)) if page.quick else None
    return Bench(measure(work, folder, page.tell, forks))


with muffled():
    benches = {real.REAL[name].name: bench(name) for name in wanted}

# %%
# Results
# -------

KINDS = {EXPORT: "export", LOAD: "load"}


def timings(ways: dict[str, Way], seen: dict[str, tuple[float, ...]]) -> timing.Timings | None:
    """What was seen of those that are right in every round, round by round."""
    most = max(map(len, seen.values()), default=0)
    kept = {n: taken for n, taken in seen.items() if ways[n].ranked and len(taken) == most > 0}
    rounds = [dict(zip(kept, taken, strict=True)) for taken in zip(*kept.values(), strict=True)]
    return timing.Timings((), tuple(rounds)) if rounds else None


def seen_of(model: str, found: Bench) -> dict[str, timing.Timings]:
    """All that was measured of one model, by title."""
    ways = found.ways()
    files = {name: way for name, way in ways.items() if name != EAGER}
    titled = {
        kind + model: {n: w.seconds(figure) for n, w in files.items()}
        for kind, figure in KINDS.items()
    }
    for kind, what in ((MEMORY, "peak_bytes"), (FILE, "bytes")):
        counts = {n: [getattr(r, what) for r in w.records] for n, w in files.items()}
        titled[kind + model] = {n: (statistics.median(c),) for n, c in counts.items() if all(c)}
    for size in found.sizes():
        title = f"{CALL}{model}, {size}"
        titled[title] = {name: way.seconds(f"call, {size}") for name, way in ways.items()}
    counted = {title: timings(ways, seen) for title, seen in titled.items()}
    return {title: timings for title, timings in counted.items() if timings}


def why(found: Bench) -> dict[str, str]:
    """What was said of each that is not right: its error, or the end of what its first check saw, how far off it is."""
    wrong = {n: w.worst for n, w in found.ways().items() if w.outcome != "ok"}
    return {
        n: said(r.error or "", *(check["detail"] for check in r.failed)) for n, r in wrong.items()
    }


def said(error: str, *details: str) -> str:
    """The first line of an error, or the last part of the first detail."""
    told = error or next(iter(details), "").rpartition("; ")[2]
    return told.splitlines()[0][:120] if told else ""


packages, MACHINE = (*benchmark.PACKAGES, "transformers"), "cpu_model_name"
earlier = page.earlier(packages, may_differ=(MACHINE,))  # each model is compared with itself
here = benchmark.environment(packages).get(MACHINE, "an unknown processor")
times = {t: seen for t, seen in earlier.times.items() if t.split(", ")[1] not in benches}
for model, found_ in benches.items():
    times.update(seen_of(model, found_))
units = {t: "byte" for t in times if t.startswith((MEMORY, FILE))}
now = {
    "outcomes": {m: {n: w.verdict for n, w in b.ways().items()} for m, b in benches.items()},
    "why": {model: why(found_) for model, found_ in benches.items()},
    "days": dict.fromkeys(benches, f"{date.today():%d %B %Y}".lstrip("0")),
    "machines": dict.fromkeys(benches, here),
}
before = {
    "machines": dict.fromkeys(earlier.facts.get("outcomes", ()), earlier.metadata.get(MACHINE)),
    **earlier.facts,
}
facts = {kind: {**before.get(kind, {}), **seen} for kind, seen in now.items()}
both_machines = {MACHINE: " and ".join(dict.fromkeys(facts["machines"].values()))}
run = page.keep(
    times, facts={"rounds": rounds, **facts}, unit=units, packages=packages, machine=both_machines
)
page.close(run, finding, draw, table)

# %%
# What this does not show
# -----------------------
#
# GPUs, more than one thread, and trained weights, for which half precision may lose more or less. A runtime that is optimised for one
# size may be faster than with dynamic sizes. The stored run contains the models of the tables at the top. The second core was busy
# during the run, and not all models were measured on the same kind of machine: compare times within a model, not between models.
#
# Find your kind of model in the first table, select the exporters that get it right, and compare their calls. Next: :doc:`measure your
# own model </generated/gallery/torch_onnx/bench_your_model>`.
