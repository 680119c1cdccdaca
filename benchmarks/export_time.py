"""
Export time
===========

Compare the processor time of exporters, by number of layers, by model, and by step. By default, ``to_onnx`` doesn't call
``torch.export``. It records runs of the model, and this saves much of its time. ``torchscript`` is the legacy exporter (``dynamo=False``).
"""

# sphinx_gallery_parallel = False
import copy
import gc
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import onnx_ir as ir
import torch
from torch import nn
from torch.nn import functional as F
from torch.onnx._internal.exporter import _fx_passes, _registration

from exportlab import compare, exporters
from exportlab.exporters.capture import dims_from_names
from exportlab.measure import benchmark, figures, tables, timing, words
from exportlab.messages import muffled
from fx2onnx.lower.conversion import Conversion, ConversionOptions
from fx2onnx.ops import own_translations
from fx2onnx.passes.pipeline import apply_passes
from fx2onnx.strategies.torch_export import capture_by_export
from fx2onnx.structure.capture_result import Capture
from fx2onnx.translate.sources import dispatch_of

page = benchmark.page(
    "export_time", "How does export time grow with depth?", quick="1 and 4 layers, 3 rounds"
)
BASE = "torch.export"


def by_depth(run: benchmark.Run, model: str) -> dict[int, timing.Timings]:
    """The times of one model at each depth."""
    return {int(title.split()[-1]): run[title] for title in run.times if title.startswith(model)}


def finding(run: benchmark.Run) -> benchmark.Lines:
    """What a layer costs two exporters; the rest of the growth, the greatest depth, and where the time of two goes."""
    from exportlab.measure import seconds

    found = by_depth(run, "transformer")
    last, end = max(found.items())
    over = {name: end.ratio(name, BASE) for name in end.rounds[0] if name != BASE}
    share = {who: 1 / sum(parts(run, who).values()) for who in ("to_onnx", "dynamo")}
    most = [f"{part:.0%} of {words.spoken(who)}'s time" for who, part in share.items()]
    layer = {n: seconds.spoken_time(seconds.slope(found, n).median) for n in end.rounds[0]}
    others = [
        f"{words.spoken(n)} needs {layer[n]}"
        for n in end.rounds[0]
        if n not in ("to_onnx", "dynamo")
    ]
    return (
        f"For each further layer of a small transformer, {words.spoken('dynamo')} needs {layer['dynamo']} and to_onnx {layer['to_onnx']}",
        f"for each further layer, {words.listed(others)}",
        f"to export {last} layers of a transformer, {words.takes(over, BASE)}",
        f"if both capture with torch.export, the capture takes {words.listed(most)} (medians)",
    )


def parts(run: benchmark.Run, exporter: str) -> dict[str, float]:
    """The steps of an export over its capture, medians of all rounds. Decomposition happens inside dynamo's translation: it is taken off."""
    steps = run[f"parts of {exporter}"]
    taken = {name: steps.median(name) for name in steps.rounds[0]}
    if "decomposition" in taken:
        taken["translation"] = max(0, taken["translation"] - taken["decomposition"])
    return {name: seconds / taken["capture"] for name, seconds in taken.items()}


def draw(run: benchmark.Run) -> None:
    """Seconds by layers of the transformer."""
    from exportlab.measure import seconds

    (axes,) = figures.panels("One export of a transformer 32 wide, in seconds of processor time")
    seconds.draw_layers(axes, by_depth(run, "transformer"))


def draw_parts(run: benchmark.Run) -> None:
    """The steps of two exporters."""
    (axes,) = figures.panels("Where the time of one export goes; its capture = 1", height=2.6)
    figures.stacks(axes, {who: parts(run, who) for who in ("dynamo", "to_onnx")})


def table(run: benchmark.Run) -> list[tables.Table]:
    """Every model at every depth, then the steps."""
    whole = {t: seen for t, seen in run.times.items() if not t.startswith("parts of ")}
    return [tables.compared(whole, BASE, title="An export, medians: lower is faster")]


page.open(finding, draw, table)

# %%
# Models
# ------
#
# Each layer is 32 wide. The transformer block is written out, so that every exporter gets the same operators.


class Layer(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.Linear(32, 32), nn.ReLU())
        nn.init.kaiming_normal_(self[0].weight)  # so that the outputs do not fade with depth


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(32), nn.LayerNorm(32)
        self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)
        self.mlp = nn.Sequential(nn.Linear(32, 128), nn.GELU(), nn.Linear(128, 32))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        chunks = self.qkv(self.before(x)).chunk(3, -1)
        q, k, v = (t.unflatten(-1, (4, 8)).transpose(1, 2) for t in chunks)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(x.shape))
        return x + self.mlp(self.between(x))


models = {"MLP": (Layer, (32,)), "transformer": (Block, (8, 32))}
moving = ({0: "batch"},)


def stacked(model: str, depth: int) -> tuple[nn.Module, list[tuple[torch.Tensor]]]:
    """So many layers of a model, always with the same weights, and inputs of four batches."""
    torch.manual_seed(0)
    made = nn.Sequential(*(models[model][0]() for _ in range(depth))).eval()
    return made, [(torch.randn(batch, *models[model][1]),) for batch in (4, 7, 1, 0)]


# %%
# Verification
# ------------
#
# Each exporter exports both models, two layers deep, with a dynamic batch dimension. The result is compared with eager at batch sizes of 4,
# 7, 1 and 0. Only exporters with the outcome ``ok`` are timed.

names = [BASE, "to_onnx", "dynamo", "torchscript"]
compared = {
    model: compare(*stacked(model, 2), dynamic_shapes=moving, exporters=names) for model in models
}
timed = {
    m: [name for name, seen in found.outcomes().items() if seen == "ok"]
    for m, found in compared.items()
}
assert all({BASE, "to_onnx", "dynamo"} <= set(names) for names in timed.values()), timed
compared["transformer"]

# %%
# Method
# ------
#
# The measurements are interleaved (:doc:`how_we_measure`) and use the CPU clock. Each export gets a new copy of the module.


def makers(model: str, depth: int) -> dict[str, timing.Make]:
    """The exports that are compared with each other."""
    module, samples = stacked(model, depth)

    def make(exporter: str) -> Callable[[], object]:
        fresh = copy.deepcopy(module)
        return lambda: exporters.export(exporter, fresh, samples[0], dynamic_shapes=moving)

    return {name: lambda name=name: make(name) for name in timed[model]}


depths, rounds = ((1, 4), 3) if page.quick else ((1, 4, 16, 32), 6)
points = {f"{model}, depth {depth}": makers(model, depth) for model in models for depth in depths}
with muffled():
    times = timing.interleaved(
        points, rounds, discard=0, budget=200, tell=page.tell, clock=time.process_time
    )

# %%
# Time of each step
# -----------------
#
# We time the steps of ``torch.onnx.export``, and those of ``to_onnx`` with ``capture="torch.export"``. Each step gets the result of the
# previous one. ``torch.onnx.export`` decomposes while it translates, so we subtract the time of the decomposition from the translation.
# The exports above use the default capture of ``to_onnx``, which runs the model instead of calling ``torch.export``.

Step = Callable[[Any], Any]


def decomposed(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """Decomposes the program as dynamo does it, and gives it back as it was: dynamo's translation does it again."""
    _fx_passes.decompose_with_registry(program, _registration.ONNXRegistry.from_torchlib())
    return program


def optimized(program: torch.onnx.ONNXProgram) -> torch.onnx.ONNXProgram:
    """Dynamo's last step, which works in place."""
    program.optimize()
    return program


def translated(found: Capture) -> ir.Model:
    """The walk of to_onnx."""
    return Conversion(
        found.program,
        ConversionOptions(20),
        found.dim_names,
        dispatch_of({}, own_translations(), 20, True),
    ).model()


def steps(args: tuple[torch.Tensor], file: Path) -> dict[str, dict[str, Step]]:
    """By exporter, what turns a module into a file, each step taking what the one before returned."""
    dims = dims_from_names(moving)
    dynamo = partial(torch.onnx.export, dynamo=True, optimize=False, verbose=False)
    return {
        "dynamo": {
            "capture": lambda module: torch.export.export(module, args, dynamic_shapes=dims),
            "decomposition": decomposed,
            "translation": dynamo,
            "optimisation": optimized,
            "saving": lambda program: program.save(file),
        },
        "to_onnx": {
            "capture": lambda module: capture_by_export(module, args, {}, dynamic_shapes=moving),
            "translation": translated,
            "tidying": apply_passes,
            "saving": lambda model: ir.save(model, file),
        },
    }


def step_by_step(taken: dict[str, Step], value: Any) -> dict[str, float]:
    """The seconds of each step."""
    took = {}
    for name, step in taken.items():
        gc.collect()
        start = time.process_time()
        value = step(value)
        took[name] = time.process_time() - start
    return took


module, samples = stacked("transformer", 1 if page.quick else 16)
seen: dict[str, list[dict[str, float]]] = {}
with tempfile.TemporaryDirectory() as folder, muffled(), timing.frozen():
    found = steps(samples[0], Path(folder) / "model.onnx")
    for _ in range(rounds):
        for name, taken in found.items():
            seen.setdefault(name, []).append(step_by_step(taken, copy.deepcopy(module)))

# %%
# Results
# -------
#
# In the first figure, the slope of a line is the time of one more layer. The rest is a constant time for each export.

titled = {f"parts of {name}": timing.Timings((), tuple(rows)) for name, rows in seen.items()}
run = page.keep({**times, **titled})
page.close(run, finding, draw, table)

# %%
# The figure shows the median time of each step, relative to the capture of the same exporter. Both exporters capture with ``torch.export``:

draw_parts(run)

# %%
# What this does not show
# -----------------------
#
# This page doesn't cover the speed of exported models (:doc:`latency`), exports on a GPU, or models that an exporter rejects or exports
# wrongly (:doc:`the support matrix </docs/support>`). Models with many different layers or with branches may take more time per layer.
#
# Most of these models are tiny. For larger models, see :doc:`real_sizes`. We made ``to_onnx`` faster where our benchmarks showed it to be
# slow, but didn't change the other exporters. Next: :doc:`the memory of an export <memory>`.
