"""
Cost of to_onnx compared with torch.export and torch.onnx.export
================================================================

Compare ``torch.export``, ``to_onnx`` and ``torch.onnx.export`` (``dynamo``) on six models: export time, the speed of the exported
models, and the gain from capturing equal layers once.
"""

# sphinx_gallery_parallel = False
import copy
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from transformers import BertConfig, BertModel, DynamicCache, LlamaConfig, LlamaForCausalLM
from transformers.integrations.executorch import register_dynamic_cache_export_support
from transformers.models.llama.modeling_llama import LlamaDecoderLayer

from content.zoo.tiny import HEAD, KEY_HEADS, SIZES
from exportlab import case, compare, exporters, show, tensor
from exportlab.cases import Built, Declaration
from exportlab.measure import benchmark, figures, tables, timing, words
from exportlab.messages import muffled
from exportlab.specs import built, integers, ones
from exportlab.verification.difference import difference_of
from fx2onnx.lower.conversion import Conversion, ConversionOptions
from fx2onnx.ops import own_translations
from fx2onnx.passes.pipeline import apply_passes
from fx2onnx.strategies.torch_export import capture_by_export
from fx2onnx.structure.capture_result import Capture
from fx2onnx.translate.sources import dispatch_of

page = benchmark.page(
    "own_exporter",
    "What does to_onnx cost compared with torch.export?",
    quick="three models, 3 rounds",
)
RUNS = 50  # timed together
BASE, EXPORT, RUN, ALONE = "torch.export", "export, ", "ONNX Runtime, ", "conversion alone, "


def ratios(run: benchmark.Run, kind: str, name: str, base: str) -> dict[str, timing.Ratio]:
    """One name over another by model, where both are right."""
    found = {t.removeprefix(kind): seen for t, seen in run.times.items() if t.startswith(kind)}
    return {t: seen.ratio(name, base) for t, seen in found.items() if name in seen.rounds[0]}


def both_right(run: benchmark.Run) -> list[str]:
    """The models that to_onnx and dynamo export right, as titles of their exports."""
    return [
        t
        for t in run.times
        if t.startswith(EXPORT) and {"to_onnx", "dynamo"} <= set(run[t].rounds[0])
    ]


def over_all(run: benchmark.Run, name: str, base: str) -> timing.Ratio:
    """The time of all exports that both get right, added up."""
    return timing.summed([run[title] for title in both_right(run)], (name, base)).ratio(name, base)


def per_node(run: benchmark.Run) -> dict[int, tuple[float, ...]]:
    """Microseconds of the conversion alone for each node of the captured graph, by depth."""
    nodes = {int(depth): count for depth, count in run.facts["nodes"].items()}
    taken = {depth: run[f"{ALONE}{depth} layers"].of("to_onnx") for depth in nodes}
    return {depth: tuple(1e6 * t / nodes[depth] for t in taken[depth]) for depth in nodes}


def finding(run: benchmark.Run) -> benchmark.Lines:
    """Price, conversion, files and depth."""
    over = {name: over_all(run, name, BASE) for name in ("to_onnx", "dynamo")}
    speeds = ratios(run, RUN, "to_onnx", "dynamo").values()
    apart = [ratio for ratio in speeds if ratio.differs]
    slower = sum(ratio.median > 1 for ratio in apart)
    larger = sum(ours > theirs for ours, theirs in run.facts["sizes"].values())
    shallow, deep = run.facts["depths"]
    functions = {base: run["depth"].ratio("to_onnx, functions", base) for base in (BASE, "shallow")}
    slowest = max(figures.spread(seen)[1] for seen in per_node(run).values())
    return (
        f"To export the {len(both_right(run))} models that both exporters get right, {words.takes(over, BASE)}",
        f"the conversion alone takes {slowest:.0f} µs a node at most, median of each depth",
        f"to_onnx's files against torch.onnx.export's: {len(apart) - slower} of {len(speeds)} faster, {slower} slower; {larger} of {len(speeds)} have more nodes",
        f"{deep} layers, each a call of one function: {functions[BASE]} over {BASE}; {functions['shallow']} over {shallow} layers in full",
    )


def draw(run: benchmark.Run) -> None:
    """The price, model by model, and what the files do."""
    left, right = figures.panels(
        "torch.export = 1, and to_onnx's file over torch.onnx.export's: lower is faster", 2
    )
    ours, theirs = (ratios(run, EXPORT, name, BASE) for name in ("to_onnx", "dynamo"))
    rows = {t: {"to_onnx": ours[t], **({"dynamo": theirs[t]} if t in theirs else {})} for t in ours}
    figures.bars(left, rows, title="export time", mark=1)
    figures.dots(right, ratios(run, RUN, "to_onnx", "dynamo"), title="run time of the files")


def table(run: benchmark.Run) -> list[tables.Table]:
    """Exports over torch.export, then runs over the official file."""
    exports = {t: seen for t, seen in run.times.items() if t.startswith(EXPORT)}
    runs = {t: seen for t, seen in run.times.items() if t.startswith(RUN)}
    return [
        tables.compared(exports, BASE, title="An export, medians: lower is faster"),
        tables.compared(runs, "dynamo", who="file of", title="A run, medians: lower is faster"),
    ]


page.open(finding, draw, table)

# %%
# Models
# ------
#
# The models are tiny and have random weights, because the cost of an export depends on the number of operators, not on their width. The
# first size of each dimension is that of the export, and the last one is used to time ONNX Runtime.

text = {"batch": (2, 3, 1, 8), "seq": (5, 9, 1, 32)}
step = {"batch": (2, 3, 1, 8), "past": (5, 2, 7, 31)}
prompt = (integers("batch", "seq", high=50), ones("batch", "seq"))
next_word = (integers("batch", 1, high=50), ones("batch", "past+1"))
register_dynamic_cache_export_support()


class Llama(nn.Module):
    """A decoder that gives its logits, and its longer cache if it was given one."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        config = LlamaConfig(**sized(layers), num_key_value_heads=KEY_HEADS)
        self.llama = LlamaForCausalLM(config)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor, cache: Any = None) -> Any:
        keep = cache is not None
        found = self.llama(ids, attention_mask=mask, past_key_values=cache, use_cache=keep)
        return (found.logits, found.past_key_values) if keep else found.logits


class Bert(nn.Module):
    """An encoder that gives its last hidden state."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.bert = BertModel(BertConfig(**sized(layers)))

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.bert(ids, attention_mask=mask).last_hidden_state


def sized(layers: int) -> dict[str, int]:
    """A configuration of so many layers."""
    return {**SIZES, "num_hidden_layers": layers}


def mlp() -> Declaration:
    """Ten linear layers."""
    layers = [module for _ in range(10) for module in (nn.Linear(32, 32), nn.ReLU())]
    return nn.Sequential(*layers), (tensor("batch", 32),)


def convnet() -> Declaration:
    """Two convolutions, each with its normalisation."""
    first = (nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU())
    second = (nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8), nn.ReLU())
    head = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))
    return nn.Sequential(*first, *second, *head), (tensor("batch", 3, 16, 16),)


def llama_step() -> Declaration:
    """Two layers, one more word after those in a `DynamicCache`."""
    layer = tensor("batch", KEY_HEADS, "past", HEAD), tensor("batch", KEY_HEADS, "past", HEAD)
    return Llama(2), (*next_word, built(lambda *layers: DynamicCache(layers), layer, layer))


def llama(layers: int) -> Built:
    """A decoder without a cache."""
    return case(dims=text)(lambda: (Llama(layers), prompt)).build()


batch = {"batch": text["batch"]}
models = {"MLP": case(dims=batch)(mlp).build(), "convnet": case(dims=batch)(convnet).build()}
if page.quick:
    models["Llama(1)"] = llama(1)
else:
    models["BERT(4)"] = case(dims=text)(lambda: (Bert(4), prompt)).build()
    models["Llama(2)"], models["Llama(8)"] = llama(2), llama(8)
    models["Llama(2), one step"] = case(dims=step)(llama_step).build()

# %%
# Verification
# ------------
#
# Each exporter exports each model once, and ``compare`` verifies the result at the sizes above. Results that are right, or right except
# where a mask hides everything, are timed.

names = [BASE, "to_onnx", "dynamo"]
compared = {
    title: compare(m.module, m.samples, dynamic_shapes=m.dynamic_shapes, exporters=names)
    for title, m in models.items()
}
right = {
    title: [name for name, attempt in found.attempts.items() if attempt.mark.works]
    for title, found in compared.items()
}
assert all({BASE, "to_onnx"} <= set(found) for found in right.values()), right
both = [title for title in models if "dynamo" in right[title]]
show.table(
    [{"model": t, **compared[t][name].row()} for t in models for name in ("to_onnx", "dynamo")]
)

# %%
# Method
# ------
#
# The measurements are interleaved (:doc:`how_we_measure`) and use the CPU clock. Each export gets a new copy of the module.


def maker(name: str, made: Built, **options: Any) -> timing.Make:
    """What is timed, one export."""

    def make() -> Callable[[], object]:
        module, args = copy.deepcopy((made.module, made.samples[0].args))
        shapes = made.dynamic_shapes
        return lambda: exporters.export(name, module, args, dynamic_shapes=shapes, **options)

    return make


def measured(groups: dict[str, dict[str, timing.Make]], **options: Any) -> dict[str, Any]:
    """Times in interleaved rounds, by the processor's clock."""
    options = {"rounds": 3 if page.quick else 6, "discard": 0, "budget": 75, **options}
    with muffled():
        return timing.interleaved(groups, tell=page.tell, clock=time.process_time, **options)


times = measured({EXPORT + t: {n: maker(n, m) for n in right[t]} for t, m in models.items()})
files = {
    RUN + t: {
        n: benchmark.in_onnxruntime(compared[t][n].artifact, models[t].samples[-1], RUNS)
        for n in ("to_onnx", "dynamo")
    }
    for t in both
}
ran = measured(files, rounds=7 if page.quick else 21, discard=1)
times |= {title: seen.each(RUNS) for title, seen in ran.items()}

# %%
# Conversion without the capture
# ------------------------------
#
# ``to_onnx`` captures, then converts. The conversion alone is timed on Llamas of several depths that ``torch.export`` has captured.


def capture(layers: int) -> Capture:
    """A Llama, captured as `to_onnx(capture="torch.export")` captures it."""
    made = llama(layers)
    return capture_by_export(
        made.module, made.samples[0].args, {}, dynamic_shapes=made.dynamic_shapes
    )


def converted(found: Capture) -> object:
    """What `to_onnx` does after the capture."""
    walk = Conversion(
        found.program,
        ConversionOptions(20),
        found.dim_names,
        dispatch_of({}, own_translations(), 20, True),
    )
    return apply_passes(walk.model())


with muffled():
    captures = {n: capture(n) for n in ((1, 2) if page.quick else (1, 4, 16))}
halves = {
    f"{ALONE}{n} layers": {"to_onnx": lambda found=found: lambda: converted(found)}
    for n, found in captures.items()
}
times |= measured(halves, rounds=6, discard=1)

# %%
# Equal layers as one function
# ----------------------------
#
# ``functions=(LlamaDecoderLayer,)`` makes each layer a call of one local function. In the stored run, ``torch.export`` captured the model
# for this, and ``to_onnx`` now traces runs of it. The outputs are compared with those of the plain export.

once = {"functions": (LlamaDecoderLayer,)}
depths = (1, 3) if page.quick else (4, 32)
shallow, deep = map(llama, depths)
with muffled():
    plain, shared = maker("to_onnx", deep)()(), maker("to_onnx", deep, **once)()()
unseen = deep.samples[1].args
apart = difference_of(plain(*unseen), shared(*unseen))
assert not apart.problem, apart.problem
stacks = {
    "to_onnx, functions": maker("to_onnx", deep, **once),
    "shallow": maker("to_onnx", shallow, **once),
    BASE: maker(BASE, deep),
}
times |= measured({"depth": stacks})

# %%
# Results
# -------

facts = {
    "nodes": {n: len(found.program.graph.nodes) for n, found in captures.items()},
    "sizes": {t: [compared[t][n].artifact.ops().total() for n in names[1:]] for t in both},
    "depths": depths,
}
run = page.keep(times, facts=facts, packages=(*benchmark.PACKAGES, "transformers"))
page.close(run, finding, draw, table)

# %%
# These models are tiny, so the overhead of a node counts more in ONNX Runtime than in yours. The outputs with shared layers differ from
# those of the plain export by

print(f"{apart.worst:.1e}")

# %%
# What this does not show
# -----------------------
#
# Models that one of the exporters refuses or gets wrong, which :doc:`coverage` counts. We fixed ``to_onnx`` where our own pages showed
# it to be slow, and didn't do so for the others.
#
# Most of the time of ``to_onnx`` is spent on the capture, which runs the model by default. Next: :doc:`the memory of an export <memory>`.
