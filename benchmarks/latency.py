"""
Latency of exported models by runtime and batch size
====================================================

Compare the latency of two models in each runtime of this site with eager, at batches from 1 to 256, on one thread and on two.
"""

# sphinx_gallery_parallel = False
import time
from collections.abc import Callable
from functools import partial

import onnx_ir as ir
import onnxruntime
import torch
from torch import nn

from exportlab import compare, exporters
from exportlab.exporters import Artifact, OnnxArtifact
from exportlab.measure import benchmark, figures, tables, timing, words
from exportlab.measure.models import Block
from exportlab.messages import muffled

page = benchmark.page(
    "latency",
    "What runs an exported model fastest?",
    quick="the MLP at 2 batches on 1 thread, without AOTInductor",
)
EAGER, COMPILED = "eager", "torch.compile"
Points = dict[int, timing.Timings]  # by batch


def points(run: benchmark.Run, model: str, threads: int) -> Points:
    """The times of one model at each batch."""
    start = f"{model}, threads {threads}, batch "
    return {int(t.removeprefix(start)): run[t] for t in run.times if t.startswith(start)}


def over_fastest(times: timing.Timings) -> dict[str, timing.Ratio]:
    """Every time over that of the fastest, which comes first, then by the median."""
    ranked = sorted(times.rounds[0], key=times.median)
    return {name: times.ratio(name, ranked[0]) for name in ranked}


def winners(times: timing.Timings) -> str:
    """The fastest with all that do not differ from it, and its time over eager's."""
    first, *others = over_fastest(times).items()
    level = [words.spoken(name) for name, ratio in others if not ratio.differs]
    share = timing.rounded(times.ratio(first[0], EAGER).median)
    apart = ", which do not differ from the first" if level else ""
    return f"{words.listed([words.spoken(first[0]), *level])}{apart}, and takes {share} times as long as eager"


def counted(ratios: list[timing.Ratio], what: str) -> str:
    """How many differ, and by how much at most."""
    seen = [ratio.median for ratio in ratios if ratio.differs]
    ends = dict.fromkeys(figures.plain(end, "x") for end in (min(seen), max(seen))) if seen else ()
    reach = f" ({' to '.join(ends)} {what})" if ends else ""
    return f"in {len(seen)} of {len(ratios)} comparisons{reach}"


def summary(run: benchmark.Run, model: str) -> str:
    """The fastest at the ends on one thread, with microseconds per row."""
    found = points(run, model, 1)
    ends = (leaders(run, model, batch) for batch in (min(found), max(found)))
    return f"The {model} on one thread runs fastest {', '.join(ends)}"


def leaders(run: benchmark.Run, model: str, batch: int) -> str:
    """The fastest and all that do not differ from it, with its time per row and eager's."""
    times = points(run, model, 1)[batch]
    first, *others = over_fastest(times).items()
    level = [words.spoken(name) for name, ratio in others if not ratio.differs]
    ours, eager = (figures.short(1e6 * times.median(name) / batch) for name in (first[0], EAGER))
    names = words.listed([words.spoken(first[0]), *level])
    return f"at batch {batch} with {names} ({ours} µs per row, eager {eager} µs)"


def finding(run: benchmark.Run) -> benchmark.Lines:
    """Who leads at the ends, whether the writer of a file matters, what a second thread gives, how far off all is."""
    found = {model: points(run, model, 1) for model in run.facts["models"]}
    *others, last = found
    ends = [(m, batch) for m in others for batch in (min(found[m]), max(found[m]))]
    writers = counted([t.ratio("to_onnx", "dynamo") for t in run.times.values()], "its time")
    helped = [
        ratio
        for model in found
        for ratios in gains(run, model).values()
        for ratio in ratios.values()
    ]
    second = (
        [f"a second thread changes the time {counted(helped, 'times as fast')}"] if helped else []
    )
    left = "; ".join(f"{who} ({why})" for who, why in run.facts["left out"].items()) or "nothing"
    return (
        summary(run, last),
        *(f"the {m} at batch {b}: fastest is {winners(found[m][b])}" for m, b in ends),
        f"to_onnx's file differs from torch.onnx.export's {writers}",
        *second,
        f"outputs differ from eager's by at most {max(run.facts['apart'].values()):.0e}; left out: {left}",
    )


def gains(run: benchmark.Run, model: str) -> dict[str, dict[int, timing.Ratio]]:
    """One thread's time over that of two, at each batch."""
    found = points(run, model, 2).items()
    ratios = {n: {b: t.ratio(f"{n}, 1 thread", n) for b, t in found} for n in (EAGER, "to_onnx")}
    return ratios if found else {}


def draw(run: benchmark.Run) -> None:
    """The last model: a panel for each runtime, and a row of panels for each number of threads."""
    draw_model(run, run.facts["models"][-1])


def draw_threads(run: benchmark.Run) -> None:
    """The other models."""
    for model in run.facts["models"][:-1]:
        draw_model(run, model)


def draw_model(run: benchmark.Run, model: str) -> None:
    """One model."""
    from exportlab.measure import (
        multiples,
    )  # here: a change of the imports would make the run stale

    found = {threads: points(run, model, threads) for threads in (1, 2)}
    groups = {f"{n} thread{'s' * (n > 1)}": seen for n, seen in found.items() if seen}
    title = f"{model}: dashed is eager, grey are the other runtimes, bars span all rounds"
    multiples.draw_multiples(groups, title, EAGER)


def table(run: benchmark.Run) -> list[tables.Table]:
    """Every time of a run, one thread first."""
    title = "A run, medians: lower is faster"
    return [tables.compared(run.times, EAGER, first="model", who="run by", unit="ms", title=title)]


page.open(finding, draw, table)

# %%
# Models
# ------
#
# An MLP, for which the overhead of a call dominates, and four blocks of a transformer, for which the arithmetic does.

torch.manual_seed(0)
layers = (nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
models = {
    "MLP": (nn.Sequential(*layers).eval(), (64,)),
    "transformer": (nn.Sequential(*(Block() for _ in range(4))).eval(), (16, 128)),
}
batches, counts, rounds, span = (1, 4, 16, 64, 256), (1, 2), 7, 0.01
if page.quick:
    models = {"MLP": models["MLP"]}
    batches, counts, rounds, span = (1, 64), (1,), 6, 0.005

# %%
# Runtimes compared
# -----------------
#
# Each exporter whose result can be run, and ``torch.compile``. ``torch.compile`` and AOTInductor (``aoti``) need a C++ compiler.
# Missing tools are omitted. A quick run omits AOTInductor too, because it compiles longer than all others together.

known = exporters.available()
wanted = ("to_onnx", "dynamo", "torchscript", "openvino", "executorch", "aoti")
left_out = {name: why for name in wanted if (why := known[name].missing())}
left_out |= {COMPILED: left_out["aoti"]} if "aoti" in left_out else {}
left_out |= {"aoti": "quick run"} if page.quick else {}
for name, why in left_out.items():
    print(f"{name} is left out: {why}")

# %%
# Verification
# ------------
#
# Each model is exported with a dynamic batch of 4 and compared with eager at other batches. Results that aren't ``ok`` are listed but
# not timed.

apart: dict[str, float] = {}


def exported(model: str) -> dict[str, Artifact]:
    """One model by all exporters: those that are right."""
    module, shape = models[model]
    samples = [(torch.randn(batch, *shape),) for batch in (4, 1, 7, max(batches))]
    names = [name for name in wanted if name not in left_out]
    sizes = {"executorch": {"largest": max(batches)}}  # it plans its memory ahead
    found = compare(module, samples, dynamic_shapes=({0: "batch"},), exporters=names, options=sizes)
    outcomes = found.outcomes().items()
    left_out.update({f"{name} of the {model}": seen for name, seen in outcomes if seen != "ok"})
    right = {name: found[name] for name, seen in outcomes if seen == "ok"}
    apart.update({f"{name}, {model}": attempt.report.worst for name, attempt in right.items()})
    return {name: attempt.artifact for name, attempt in right.items()}


def compiled(model: str) -> Callable[[torch.Tensor], torch.Tensor]:
    """The model by torch.compile for any batch, compiled at 4 and, as 1 is special to it, once more at 1."""
    module, shape = models[model]
    made = torch.compile(module, dynamic=True)
    for x in (torch.randn(batch, *shape) for batch in (4, 1, max(batches))):
        torch.testing.assert_close(made(x), module(x), rtol=0, atol=1e-4)
        apart[f"{COMPILED}, {model}, {len(x)}"] = (made(x) - module(x)).abs().max().item()
    return made


# %%
# What is timed
# -------------
#
# The runtime's own call with prepared arguments. The artifacts of exportlab also check and convert arguments, which would matter at
# batch 1. ONNX Runtime's threads are set in the session options and stop waiting after a run, so they don't slow down the next
# measurement. Sessions are created again in each round, so that a session that is slow by chance doesn't affect all rounds.

Call = Callable[[], object]


def in_onnxruntime(file: bytes, x: torch.Tensor, threads: int) -> Call:
    """A run of an ONNX file."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.add_session_config_entry("session.force_spinning_stop", "1")
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    return partial(session.run, None, {session.get_inputs()[0].name: x.numpy()})


def running(artifact: Artifact, x: torch.Tensor, threads: int) -> Callable[[], Call]:
    """What prepares a run of any artifact; what is not ONNX was made for the number of threads that torch has."""
    if isinstance(artifact, OnnxArtifact):
        file = ir.to_proto(artifact.model).SerializeToString()
        return partial(in_onnxruntime, file, x, threads)
    if artifact.exporter == "openvino":
        return lambda: partial(artifact.request.infer, [x.numpy()])
    if artifact.exporter == "executorch":  # a method alone does not keep its program alive
        return lambda: lambda: artifact.method.execute([x])
    return lambda: partial(artifact.library, x)


def make(prepare: Callable[[], Call], repeats: int, threads: int) -> Call:
    """To be timed: runs in a row, after a pause in which the threads of the one before fall asleep, and runs that wake its own."""
    torch.set_num_threads(threads)
    call = prepare()
    time.sleep(0.005)
    for _ in range(1 + repeats // 4):
        call()
    return lambda: [call() for _ in range(repeats)]


# %%
# One thread and two threads
# --------------------------
#
# Inductor and OpenVINO compile for a number of threads, and ExecuTorch has one thread pool, so everything is exported again for two
# threads. Eager and the model of ``to_onnx`` then run with one and two threads in the same rounds.


def often(model: str, batch: int) -> int:
    """How many runs eager fits into the span; the first, which is slower, is not looked at."""
    module, shape = models[model]
    x = torch.randn(batch, *shape)
    module(x)
    return max(1, round(span / timing.seconds(lambda: partial(module, x))))


def makers(
    found: dict[str, Artifact], fast: Call | None, model: str, batch: int, repeats: int
) -> dict[str, timing.Make]:
    """So many runs of one model at one batch, by every way."""
    module, shape = models[model]
    x, threads = torch.randn(batch, *shape), torch.get_num_threads()
    calls = {EAGER: lambda: partial(module, x)}
    calls |= {COMPILED: lambda: partial(fast, x)} if fast else {}
    calls |= {name: running(artifact, x, threads) for name, artifact in found.items()}
    timed = {name: partial(make, call, repeats, threads) for name, call in calls.items()}
    if threads > 1:
        single = {EAGER: calls[EAGER], "to_onnx": running(found["to_onnx"], x, 1)}
        timed |= {
            f"{name}, 1 thread": partial(make, call, repeats, 1) for name, call in single.items()
        }
    return timed


def measured(threads: int) -> dict[str, timing.Timings]:
    """All models at all batches."""
    torch.set_num_threads(threads)
    groups: dict[str, dict[str, timing.Make]] = {}
    repeats: dict[str, int] = {}
    for model in models:
        found = exported(model)
        fast = None if COMPILED in left_out else compiled(model)
        for batch in batches:
            title = f"{model}, threads {threads}, batch {batch}"
            repeats[title] = often(model, batch)
            groups[title] = makers(found, fast, model, batch, repeats[title])
    together = timing.interleaved(groups, rounds, budget=60, tell=page.tell)
    return {title: seen.each(repeats[title]) for title, seen in together.items()}


times: dict[str, timing.Timings] = {}
with torch.no_grad(), muffled():
    for threads in counts:
        times |= measured(threads)
torch.set_num_threads(1)

# %%
# Results
# -------
#
# At batch 1 you measure the overhead of a call: Python, checks and the library. At batch 256 you measure the arithmetic.

run = page.keep(times, facts={"models": list(models), "left out": left_out, "apart": apart})
page.close(run, finding, draw, table)

# %%
# The MLP in the stored run. Its calls are so short that the overhead of a call decides at small batches.

if (benchmark.DATA / "latency.json").exists():
    draw_threads(benchmark.stored("latency"))

# %%
# What this does not show
# -----------------------
#
# GPUs, half precision, models larger than the processor's caches, and concurrent requests. These are two small models with random
# weights on one processor; :doc:`real_sizes` has real models.
#
# Choose a runtime for your batch size and for what you can install. Use a second thread per request only if it helps; otherwise run two
# requests at a time. Next: :doc:`optimise or quantise the model <optimisers>`.
