"""
Start-up time
=============

Compare the time until the first result in a new process for seven ways to run two models, relative to ONNX Runtime with the model of
``to_onnx``. We also measure a second load and later calls.
"""

# sphinx_gallery_parallel = False
import tempfile
from pathlib import Path
from typing import Any

import numpy
import torch
from torch import nn

from exportlab import compare, exporters, show
from exportlab.measure import benchmark, figures, tables, timing, words

page = benchmark.page(
    "start_up", "How long does the first answer take?", quick="MLP, 2 rounds, no aoti"
)
BASE, FILE = "to_onnx", "to_onnx's file in ONNX Runtime"
PARTS = ("import", "load", "first call")


def over(run: benchmark.Run, model: str, part: str) -> dict[str, timing.Ratio]:
    """What each way takes for one part, to_onnx's file in ONNX Runtime being 1."""
    times = run[f"{model}, {part}"]
    return {name: times.ratio(name, BASE) for name in times.rounds[0]}


def finding(run: benchmark.Run) -> benchmark.Lines:
    """Of the largest model: the sum, what is left without the import, later calls; and how far outputs differ."""
    model = run.facts["models"][-1]
    new = over(run, model, "in all")
    ways = [name for name in new if name != BASE]
    share = run[f"{model}, import"].median(BASE) / run[f"{model}, in all"].median(BASE)
    taken = {
        name: figures.plain(run[f"{model}, in all"].median(name), "s")
        for name in ("dynamo", "torch.export")
    }
    official = f"{words.spoken('dynamo')}'s file in ONNX Runtime"
    return (
        f"A new process gives the first answer of the {model} in {taken['dynamo']} with {official}, and in {taken['torch.export']} with torch.export",
        f"to give the first answer of the {model}, {words.takes({n: new[n] for n in ways}, FILE)}",
        f"{share:.0%} of the first answer of {FILE} is the import, medians",
        f"outputs differ from eager's by at most {run.facts['apart']:.0e}",
    )


def draw(run: benchmark.Run) -> None:
    """A new process, for each model."""
    from exportlab.measure import bar_panels

    found = bar_panels.values_of({model: run[f"{model}, in all"] for model in run.facts["models"]})
    title = "Import, load and first call in a new process, seconds"
    bar_panels.draw_bar_panels(found, title, "s", one_scale=True)


def draw_parts(run: benchmark.Run) -> None:
    """Where the time goes until the first answer."""
    model = run.facts["models"][-1]
    (axes,) = figures.panels(f"Parts of the first answer, {model}; to_onnx = 1")
    whole = run[f"{model}, in all"].median(BASE)
    taken = {part: run[f"{model}, {part}"] for part in PARTS}
    names = run[f"{model}, in all"].rounds[0]
    rows = {n: {part: seen.median(n) / whole for part, seen in taken.items()} for n in names}
    figures.stacks(axes, rows)


def table(run: benchmark.Run) -> list[tables.Table]:
    """Every part of every model."""
    return [tables.compared(run.times, BASE, who="run by", title="Medians: lower is faster")]


page.open(finding, draw, table)

# %%
# Models
# ------
#
# A tiny model, for which almost all cost is that of the runtime, and four layers of a transformer.


class Transformer(nn.Module):
    """Four encoder layers over words."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(1000, 128)
        layer = nn.TransformerEncoderLayer(128, 4, 512, activation="gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(self.words(x))


torch.manual_seed(0)
mlp = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 8)).eval()
models = {"MLP": (mlp, [(torch.randn(batch, 32),) for batch in (4, 7, 1)])}
if not page.quick:
    texts = [(torch.randint(1000, (batch, 32)),) for batch in (4, 7, 1)]
    models["transformer"] = (Transformer().eval(), texts)

# %%
# Verification
# ------------
#
# Each model is exported with every available exporter and compared with eager. Only correct results are saved and timed.

WAYS = {
    "to_onnx": "ONNX Runtime",
    "dynamo": "ONNX Runtime",
    "torchscript": "ONNX Runtime",
    "openvino": "OpenVINO",
    "executorch": "ExecuTorch",
    "torch.export": "torch",
    "aoti": "AOTInductor",
}
missing = {name: exporters.available()[name].missing() for name in WAYS}
if page.quick:
    missing["aoti"] = "compiling takes too long for a quick run"
for name, reason in missing.items():
    if reason:
        print(f"{name} is left out: {reason}")
names = [name for name in WAYS if not missing[name]]
compared = {
    title: compare(*made, dynamic_shapes=({0: "batch"},), exporters=names)
    for title, made in models.items()
}
show.table([{"model": title, **compared[title][name].row()} for title in models for name in names])

# %%
# One process per measurement
# ---------------------------
#
# For each runtime, the imports and the code that loads a model. All compute on one thread.

RUNTIMES = {
    "ONNX Runtime": """
import onnxruntime
IMPORTED
def load(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return lambda x: session.run(None, {name: x})[0]
""",
    "OpenVINO": """
sys.modules["openvino_telemetry"] = None  # it would report each start to its maker
import openvino
IMPORTED
def load(path):
    settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
    request = openvino.Core().compile_model(path, "CPU", settings).create_infer_request()
    return lambda x: request.infer([x])[0]
""",
    "ExecuTorch": """
import torch
from executorch.extension.pybindings import portable_lib
from executorch.runtime import Runtime
IMPORTED
portable_lib._unsafe_reset_threadpool(1)
def load(path):
    method = Runtime.get().load_program(path).load_method("forward")
    return lambda x: method.execute([torch.from_numpy(x)])[0].numpy()
""",
    "torch": """
import torch
IMPORTED
torch.set_grad_enabled(False)
def load(path):
    module = torch.export.load(path).module()
    return lambda x: module(torch.from_numpy(x)).numpy()
""",
    "AOTInductor": """
import torch
import torch._inductor
IMPORTED
torch.set_grad_enabled(False)
def load(path):
    package = torch._inductor.aoti_load_package(path)
    return lambda x: package(torch.from_numpy(x)).numpy()
""",
}

# %%
# A process records the CPU time after each step: once for the imports, and twice for loading and the first call. The start of Python
# and waiting for the disk aren't counted.

START = """
import json, sys, time
clock, marks = time.process_time, {}
start = clock()
"""
MEASURE = """
import numpy
path, folder, calls = sys.argv[1], sys.argv[2], int(sys.argv[3])
x, wanted = numpy.load(f"{folder}/given.npy"), numpy.load(f"{folder}/wanted.npy")
def taken(step, *given):
    start = clock()
    value = step(*given)
    return clock() - start, value
def started():
    loading, call = taken(load, path)
    calling, answer = taken(call, x)
    return loading, calling, call, answer
marks["load"], marks["first call"], call, answer = started()
marks["later call"] = taken(lambda: [call(x) for _ in range(calls)])[0] / calls
marks["load again"] = sum(started()[:2])
marks["apart"] = float(abs(answer - wanted).max())
print(json.dumps(marks))
"""


def program(name: str) -> str:
    """What the process runs."""
    note = 'marks["import"] = clock() - start'
    return START + RUNTIMES[WAYS[name]].replace("IMPORTED", note) + MEASURE


def measured(name: str, path: Path) -> dict[str, float]:
    """One process."""
    found = benchmark.in_process(
        program(name), str(path), str(path.parent), "30", OMP_NUM_THREADS="1"
    )
    assert found["apart"] < 1e-4, (name, found)
    return {**found, "in all": sum(found[part] for part in PARTS)}


def saved(title: str, folder: Path) -> dict[str, Path]:
    """The files of all exporters that are right, and what is given and wanted of them."""
    module, samples = models[title]
    folder.mkdir()
    numpy.save(folder / "given.npy", samples[1][0].numpy())
    with torch.no_grad():
        numpy.save(folder / "wanted.npy", module(*samples[1]).numpy())
    right = {n: compared[title][n] for n, o in compared[title].outcomes().items() if o == "ok"}
    return {n: a.artifact.save(folder / f"{n}{a.artifact.suffix}") for n, a in right.items()}


def one_round(number: int, files: dict[str, Path]) -> dict[str, dict[str, float]]:
    """A process for each file, beginning with another one each round."""
    return timing.by_turns(files, number, lambda name: measured(name, files[name]))


# %%
# Method
# ------
#
# The measurements are interleaved (:doc:`how_we_measure`). No round is discarded, because waiting for the disk isn't counted.

rounds = 2 if page.quick else 6
seen: dict[str, list[dict[str, Any]]] = {title: [] for title in models}
with tempfile.TemporaryDirectory() as kept:
    files = {title: saved(title, Path(kept) / title) for title in models}

    for number in range(rounds):
        for title, paths in files.items():
            seen[title].append(one_round(number, paths))
        page.tell(f"round {number + 1} of {rounds}")

# %%
# Results
# -------

times = {
    f"{title}, {part}": timing.Timings(
        (), tuple({name: one[part] for name, one in row.items()} for row in rows)
    )
    for title, rows in seen.items()
    for part in (*PARTS, "in all", "load again", "later call")
}
apart = max(one["apart"] for rows in seen.values() for row in rows for one in row.values())
run = page.keep(times, facts={"models": list(models), "apart": apart})
page.close(run, finding, draw, table)

# %%
# Median CPU time of each step until the first result. The imports of a Python package aren't needed by its runtime: in C++, ExecuTorch
# and AOTInductor import nothing.

draw_parts(run)

# %%
# A process that has loaded one model loads the next one faster, and later calls are fast. Each round is a point, which is grey if no
# difference was seen.

panels = figures.panels(f"{list(models)[-1]}; to_onnx = 1", 2)
for axes, part in zip(panels, ("load again", "later call"), strict=True):
    ratios = over(run, list(models)[-1], part)
    figures.dots(axes, {name: ratio for name, ratio in ratios.items() if name != BASE}, title=part)

# %%
# What this does not show
# -----------------------
#
# Reading from a cold disk, because all files were cached, and starting in a container, on a phone or in C++ (:doc:`cpp_programs`).
#
# If your process computes one result and ends, choose a runtime that doesn't import PyTorch. If it keeps running, compare later calls
# on your own model. Next: :doc:`latency`.
