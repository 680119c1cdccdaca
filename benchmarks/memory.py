"""
Peak memory of an export
========================

Compare the memory that ``to_onnx`` and ``torch.onnx.export`` need to export and save a model of four large layers with up to 2 GB of
weights.
"""

from exportlab.measure import benchmark, figures, tables, timing, words

page = benchmark.page(
    "memory", "How much memory does an export need?", quick="64 MB of weights, 2 rounds"
)
WAYS = ("to_onnx", "to_onnx, one file", "dynamo")


def over_weights(run: benchmark.Run, size: str) -> dict[str, timing.Ratio]:
    """The peak of each process, over the weights, by how it saved; 1 is the model itself."""
    peaks, weights = run[size], run.facts["weights"][size]
    return {
        way: timing.Ratio(tuple(peak / weights for peak in peaks.of(way)))
        for way in peaks.rounds[0]
    }


def finding(run: benchmark.Run) -> benchmark.Lines:
    """Each way at the largest size that all can save, and whether the files are right."""
    shared = [size for size, peaks in run.times.items() if set(WAYS) <= set(peaks.rounds[0])][-1]
    taken = {way: figures.in_bytes(run[shared].median(way)) for way in run[shared].rounds[0]}
    over = [f"{words.spoken(w)} {r.median:.2f} times" for w, r in over_weights(run, shared).items()]
    first, *others = [f"{words.spoken(way)}{{}} {size}" for way, size in taken.items()]
    told = words.listed([first.format(" needs"), *(other.format("") for other in others)])
    return (
        f"To export and save {shared} of weights, {told}, the model included",
        f"over the weights: {words.listed(over)}",
        f"outputs differ from eager's by at most {run.facts['apart']:.0e}",
    )


def draw(run: benchmark.Run) -> None:
    """A panel for each size."""
    from exportlab.measure import bar_panels

    found = bar_panels.values_of({f"{size} of weights": seen for size, seen in run.times.items()})
    title = "Peak memory of export and save, the model included; ✕: one file cannot be saved"
    bar_panels.draw_bar_panels(found, title, "B", one_scale=True)


def table(run: benchmark.Run) -> list[tables.Table]:
    """Every peak."""
    title = "Peak memory of export and save, the model included: lower is better"
    return [tables.compared(run.times, "dynamo", first="weights", unit="MB", title=title)]


page.open(finding, draw, table)

# %%
# One process per export
# ----------------------
#
# The peak memory of a process never decreases, so each export gets a new process. It first exports a small model in the same way, which
# loads all libraries. Then it creates the large model, records its memory, exports, and saves. Finally it runs the saved model with
# another batch to verify it.

PROCESS = """
import gc, json, logging, resource, sys, tempfile, warnings
from pathlib import Path
import onnxruntime, psutil, torch
from torch import nn
from exportlab import to_onnx

warnings.filterwarnings("ignore")
logging.disable(logging.ERROR)
way, width = sys.argv[1], int(sys.argv[2])


def export(model):
    args, shapes = (torch.randn(2, model[0].in_features),), ({0: "batch"},)
    if way == "dynamo":
        return torch.onnx.export(model, args, dynamic_shapes=shapes, dynamo=True, verbose=False)
    return to_onnx(model, args, dynamic_shapes=shapes)


def stack(width):
    return nn.Sequential(*(nn.Linear(width, width, bias=False) for _ in range(4))).eval()


def peak():
    status = Path("/proc/self/status")  # getrusage would count the process that started this one
    if status.exists():
        return 1024 * int(status.read_text().split("VmHWM:")[1].split()[0])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


with tempfile.TemporaryDirectory() as folder:
    options = {"external_data": way != "to_onnx, one file"}
    small, large = Path(folder) / "small.onnx", Path(folder) / "large.onnx"
    export(stack(8)).save(small, **options)
    before = psutil.Process().memory_info().rss
    model = stack(width)
    gc.collect()
    hidden = peak() - psutil.Process().memory_info().rss  # a peak before the export would hide one of its own
    export(model).save(large, **options)
    saved = peak() - before
    size = sum(file.stat().st_size for file in Path(folder).glob("large*"))
    x = torch.randn(3, width)
    given = onnxruntime.InferenceSession(large, providers=["CPUExecutionProvider"])
    (answer,) = given.run(None, {given.get_inputs()[0].name: x.numpy()})
    with torch.no_grad():
        apart = (torch.from_numpy(answer) - model(x)).abs().max().item()
print(json.dumps({"saved": saved, "hidden": hidden, "size": size, "apart": apart}))
"""


def measured(way: str, width: int) -> dict[str, float]:
    """One export in a process of its own, whose file holds the weights once and whose peak is its own."""
    found = benchmark.in_process(PROCESS, way, str(width))
    assert 0.99 < found["size"] / weights_of(width) < 1.1, found
    assert found["apart"] < 1e-3, found
    assert found["hidden"] < 0.1 * found["saved"], found
    return found


def weights_of(width: int) -> int:
    """Bytes: four layers of 32-bit numbers."""
    return 4 * width * width * 4


# %%
# Method
# ------
#
# The measurements are interleaved. A single file is omitted at 2 GB, because that is the limit of the format.

widths, rounds = ((2048,), 2) if page.quick else ((8000, 11312), 2)
sizes = {figures.in_bytes(weights_of(width)): width for width in widths}


def fits(way: str, width: int) -> bool:
    """Whether one file can hold so much."""
    return "one file" not in way or weights_of(width) < 2**31 * 0.9


seen: dict[str, list[dict[str, dict[str, float]]]] = {size: [] for size in sizes}
for number in range(rounds):
    for size, width in sizes.items():
        ways = [way for way in WAYS if fits(way, width)]
        turned = ways[number % len(ways) :] + ways[: number % len(ways)]
        took = {way: measured(way, width) for way in turned}
        seen[size].append({way: took[way] for way in ways})
        page.tell(f"round {number + 1} of {rounds}, {size}")

# %%
# Results
# -------
#
# Most of the peak comes from saving. A separate file for the weights is written in pieces, but a single file is first assembled in
# memory, several times. The system counts memory in pages and keeps some freed ones, so a few hundredths are noise at 64 MB.

peaks = {
    size: timing.Timings((), tuple({way: one["saved"] for way, one in row.items()} for row in rows))
    for size, rows in seen.items()
}
facts = {
    "weights": {size: weights_of(width) for size, width in sizes.items()},
    "apart": max(one["apart"] for rows in seen.values() for row in rows for one in row.values()),
}
run = page.keep(peaks, unit="byte", facts=facts)
page.close(run, finding, draw, table)

# %%
# What this does not show
# -----------------------
#
# Models with many small weights or with large graphs, the memory that running the model needs, and GPUs.
#
# Save a large model with ``external_data=True``, and plan for the peak. Next: :doc:`graph_size`.
