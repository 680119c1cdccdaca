"""
What does ``to_onnx`` cost beside ``torch.export``, and what do you get?
========================================================================

Six models go through ``torch.export``, ``to_onnx`` and the official exporter, ``dynamo``. You get the price of each as a multiple of
what ``torch.export`` alone takes, the sizes of the files, how fast ONNX Runtime runs them, and what is left of the price when equal
layers are captured once. The plot and the answers are under `What was seen`_, after the code that made them. This page shows the quick
run, with small models and few rounds. The full one takes 15 minutes and holds each answer against a goal::

    OMP_NUM_THREADS=1 python benchmarks/own_exporter.py --json before.json --plot before.png
    python -m pyperf compare_to before.json after.json --table
"""

import copy
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import onnx_ir as ir
import onnxruntime
import pyperf
import torch
from torch import nn
from transformers import BertConfig, BertModel, DynamicCache, LlamaConfig, LlamaForCausalLM
from transformers.integrations.executorch import register_dynamic_cache_export_support
from transformers.models.llama.modeling_llama import LlamaDecoderLayer

from exportlab import Sample, case, compare, exporters, quiet, show, tensor, timing, to_onnx, zoo
from exportlab.converter.capture import Capture, captured
from exportlab.converter.cleanup import cleaned
from exportlab.converter.convert import Asked, Conversion
from exportlab.converter.fallback import lookup_of
from exportlab.difference import compare as difference
from exportlab.exporters.torch_export import dims_from_names
from exportlab.failures import muffled
from exportlab.files import written_whole
from exportlab.zoo.case import Declaration
from exportlab.zoo.transformers import HEAD, KEY_HEADS, sizes

asked = timing.arguments(
    "What does to_onnx cost beside torch.export, and what do you get?",
    quick="small models, 2 rounds: about a minute",
)
quiet()
torch.set_num_threads(1)
rounds = 2 if asked.quick else 6
seconds = 200  # after which no further round begins; three there are always in a full run
bert_layers, llama_layers = (1, (1, 2)) if asked.quick else (4, (2, 16))
shallow, deep = (1, 4) if asked.quick else (4, 64)
conversion_depths = [1, 2, 4] if asked.quick else [1, 4, 16, 64]

# %%
# The models
# ----------
# Tiny, with random weights: what an export costs depends on how many operators there are, not on how wide they are. Each moves along its
# batch and, if it has one, its sequence. The first size of each axis is that of the export; the last one is what ONNX Runtime is timed at.

text = {"batch": (2, 3, 1, 8), "seq": (5, 9, 1, 32)}
step = {"batch": (2, 3, 1, 8), "past": (5, 2, 7, 31)}


def counted_layers(count: int) -> str:
    """Their number in words."""
    return f"{count} layer{'s' * (count > 1)}"


def configured(layers: int) -> dict[str, int]:
    """A configuration of so many layers."""
    return {**sizes(), "num_hidden_layers": layers, "max_position_embeddings": 64}


class Llama(nn.Module):
    """A decoder that gives its logits, and its longer cache if it was given one."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        options = {**configured(layers), "num_key_value_heads": KEY_HEADS}
        self.llama = LlamaForCausalLM(LlamaConfig(**options))

    def forward(self, ids: torch.Tensor, mask: torch.Tensor, cache: Any = None) -> Any:
        found = self.llama(
            ids, attention_mask=mask, past_key_values=cache, use_cache=cache is not None
        )
        return found.logits if cache is None else (found.logits, found.past_key_values)


class Bert(nn.Module):
    """An encoder that gives its last hidden state."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.bert = BertModel(BertConfig(**configured(layers)))

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.bert(ids, attention_mask=mask).last_hidden_state


words = (zoo.integers("batch", "seq", high=50), zoo.ones("batch", "seq"))
next_word = (zoo.integers("batch", 1, high=50), zoo.ones("batch", "past+1"))


@case(dims={"batch": text["batch"]})
def mlp() -> Declaration:
    """Ten linear layers."""
    layers = [module for _ in range(10) for module in (nn.Linear(32, 32), nn.ReLU())]
    return nn.Sequential(*layers), (tensor("batch", 32),)


@case(dims={"batch": text["batch"]})
def convnet() -> Declaration:
    """Two convolutions, each with its normalisation."""
    first = (nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU())
    second = (nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8), nn.ReLU())
    head = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))
    return nn.Sequential(*first, *second, *head), (tensor("batch", 3, 16, 16),)


@case(dims=text)
def bert() -> Declaration:
    """An encoder with a mask."""
    return Bert(bert_layers), words


@case(dims=text)
def llama() -> Declaration:
    """A decoder without a cache."""
    return Llama(llama_layers[0]), words


@case(dims=step)
def llama_step() -> Declaration:
    """One more word, after those in a `DynamicCache`."""
    layer = tensor("batch", KEY_HEADS, "past", HEAD), tensor("batch", KEY_HEADS, "past", HEAD)
    cache = zoo.built(lambda *layers: DynamicCache(layers), *[layer] * llama_layers[0])
    return Llama(llama_layers[0]), (*next_word, cache)


@case(dims=text)
def deep_llama() -> Declaration:
    """The same decoder, deeper."""
    return Llama(llama_layers[1]), words


register_dynamic_cache_export_support()
models = {
    "MLP, 10 layers": mlp.build(),
    "convnet": convnet.build(),
    f"BERT, {counted_layers(bert_layers)}": bert.build(),
    f"Llama, {counted_layers(llama_layers[0])}": llama.build(),
    f"Llama, {counted_layers(llama_layers[0])}, one step": llama_step.build(),
    f"Llama, {counted_layers(llama_layers[1])}": deep_llama.build(),
}

# %%
# Is it right?
# ------------
# Each exporter first exports each model once, and is held against eager at every size above. Only what comes out right is timed. This
# round also pays for what is done once in a process, so that the timed ones do not.

names = ("torch.export", "to_onnx", "dynamo")
compared = {
    title: compare(
        made.module, made.samples, dynamic_shapes=made.dynamic_shapes, exporters=list(names)
    )
    for title, made in models.items()
}
right = {
    title: [name for name, outcome in found.outcomes().items() if outcome == "ok"]
    for title, found in compared.items()
}
assert all({"torch.export", "to_onnx"} <= set(found) for found in right.values()), right
both = [title for title in models if "dynamo" in right[title]]
assert len(both) >= 5, right
print(
    show.table(
        [
            {"model": title, **compared[title][name].row()}
            for title in models
            for name in names
            if name != "torch.export"
        ]
    )
)

# %%
# How it is measured
# ------------------
# In rounds: a round exports every model with every exporter and begins with another exporter each time, so that a slow moment hits all of
# them alike; a time is only ever divided by another of its own round. Every export gets a fresh copy of the module. The clock counts the
# seconds in which the processor worked for this process, on one thread: those in which it worked for others say nothing about an exporter.

calls: dict[str, Callable[..., object]] = {
    "torch.export": lambda module, args, shapes: torch.export.export(
        module, args, dynamic_shapes=dims_from_names(shapes), strict=False
    ),
    "to_onnx": lambda module, args, shapes: to_onnx(module, args, dynamic_shapes=shapes),
    "dynamo": lambda module, args, shapes: torch.onnx.export(
        module, args, dynamic_shapes=shapes, dynamo=True, verbose=False
    ),
    "to_onnx, functions": lambda module, args, shapes: to_onnx(
        module, args, dynamic_shapes=shapes, functions=(LlamaDecoderLayer,)
    ),
}


def maker(name: str, made: zoo.Built) -> timing.Make:
    """What is timed, one export, prepared anew for each round."""

    def make() -> Callable[[], object]:
        torch._dynamo.reset()
        module, args = copy.deepcopy((made.module, made.samples[0].args))
        return lambda: calls[name](module, args, made.dynamic_shapes)

    return make


def tell(line: str) -> None:
    """Progress of a full run, for the terminal alone."""
    if not asked.quick:
        print(line, file=sys.__stderr__)


def measured(groups: dict[Any, dict[str, timing.Make]], **options: Any) -> dict[Any, Any]:
    """Times in interleaved rounds, by the processor's clock."""
    options = {"rounds": rounds, "discard": 0, "least": min(rounds, 3), **options}
    with muffled():
        return timing.interleaved(
            groups, budget=seconds, tell=tell, clock=time.process_time, **options
        )


times = measured(
    {title: {name: maker(name, made) for name in right[title]} for title, made in models.items()}
)

# %%
# The conversion alone
# --------------------
# ``to_onnx`` captures, then converts. The second half by itself is timed on Llamas of several depths that were captured before.


def llama_of(layers: int) -> zoo.Built:
    """The Llama of so many layers, its samples and its axes."""
    return case(dims=text)(lambda: (Llama(layers), words)).build()


def capture(layers: int) -> Capture:
    """That Llama, captured as `to_onnx` captures it."""
    made = llama_of(layers)
    return captured(made.module, made.samples[0].args, {}, dynamic_shapes=made.dynamic_shapes)


def converted(found: Capture) -> ir.Model:
    """What `to_onnx` does after the capture."""
    asked = Asked(20)
    return cleaned(
        Conversion(found.program, asked, found.dim_names, lookup_of({}, 20, True)).model()
    )


with muffled():
    captures = {layers: capture(layers) for layers in conversion_depths}
nodes = {layers: len(found.program.graph.nodes) for layers, found in captures.items()}
conversions = measured(
    {
        layers: {"conversion": lambda found=found: lambda: converted(found)}
        for layers, found in captures.items()
    },
    rounds=5 if asked.quick else 15,
    discard=1,
)
captures.clear()

# %%
# Equal layers once
# -----------------
# ``functions=(LlamaDecoderLayer,)`` makes each layer a call of one function, and captures it once. The outputs are held against those of
# the plain export.

stacks = {layers: llama_of(layers) for layers in (shallow, deep)}


def exported(**options: Any) -> exporters.Artifact:
    """The deeper Llama, exported by `to_onnx`."""
    module, args = copy.deepcopy((stacks[deep].module, stacks[deep].samples[0].args))
    return exporters.export(
        "to_onnx", module, args, dynamic_shapes=stacks[deep].dynamic_shapes, **options
    )


with muffled():
    plain, shared = exported(), exported(functions=(LlamaDecoderLayer,))
unseen = stacks[deep].samples[1].args
apart = difference(plain(*unseen), shared(*unseen))
assert not apart.problem, apart.problem
layered = measured(
    {
        "Llama": {
            "shallow, functions": maker("to_onnx, functions", stacks[shallow]),
            "deep, functions": maker("to_onnx, functions", stacks[deep]),
            "deep, torch.export": maker("torch.export", stacks[deep]),
        }
    }
)["Llama"]

# %%
# In ONNX Runtime
# ---------------
# Both files of a model, by turns, on one thread, at a size they were not exported at. A measurement is the mean of many runs.


def runner(artifact: exporters.OnnxArtifact, sample: Sample, repeats: int) -> timing.Make:
    """So many runs of a file."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    file = ir.to_proto(artifact.model).SerializeToString()
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    leaves = artifact.calling.feed(sample.args, sample.kwargs)
    feeds = {i.name: x.numpy() for i, x in zip(session.get_inputs(), leaves, strict=True)}
    return lambda: lambda: [session.run(None, feeds) for _ in range(repeats)]


runs = measured(
    {
        title: {
            name: runner(
                compared[title][name].artifact,
                models[title].samples[-1],
                20 if asked.quick else 50,
            )
            for name in ("to_onnx", "dynamo")
        }
        for title in both
    },
    rounds=7 if asked.quick else 21,
    discard=1,
)

PACKAGES = ("torch", "onnx", "onnxscript", "onnxruntime", "transformers")
folder = tempfile.TemporaryDirectory()
titled = {
    **{f"export, {title}": found for title, found in times.items()},
    **{f"conversion alone, {layers} layers": found for layers, found in conversions.items()},
    f"Llama, {shallow} and {deep} layers": layered,
    **{f"ONNX Runtime, {title}": found for title, found in runs.items()},
}
written = timing.save(
    asked.json or Path(folder.name) / "own_exporter.json", titled, timing.environment(PACKAGES)
)

# %%
# What was seen
# -------------

COLORS = {"to_onnx": "#D55E00", "dynamo": "#0072B2"}  # Okabe-Ito, for every form of colour vision


def draw_ratios(axes: plt.Axes) -> None:
    """Each model a line: the median of each exporter's ratios, and the range they were seen in."""
    for place, title in enumerate(reversed(models)):
        for name in right[title][1:]:
            found = times[title].ratio(name, "torch.export")
            axes.plot([found.low, found.high], [place, place], color=COLORS[name], linewidth=3)
            axes.plot(found.median, place, "o", color=COLORS[name])
    for name, color in COLORS.items():
        axes.plot([], [], "o-", color=color, label=name)
    axes.axvline(1, color="black", linewidth=1)
    axes.set(title="Export time\ntorch.export = 1", xscale="log")
    axes.set_xticks([1, 2, 4, 8, 16], ["1x", "2x", "4x", "8x", "16x"])
    axes.set_xticks([], minor=True)
    axes.set_yticks(range(len(models)), list(reversed(models)))
    axes.legend(frameon=False)


def per_node(layers: int) -> timing.Ratio:
    """Microseconds a node of the captured graph."""
    return timing.Ratio(
        tuple(t / nodes[layers] * 1e6 for t in conversions[layers].of("conversion"))
    )


def draw_conversion(axes: plt.Axes) -> None:
    """The median of each depth, in a band from the lowest to the highest."""
    found = [per_node(layers) for layers in conversion_depths]
    axes.plot(conversion_depths, [r.median for r in found], "o-", color=COLORS["to_onnx"])
    low, high = [r.low for r in found], [r.high for r in found]
    axes.fill_between(conversion_depths, low, high, color=COLORS["to_onnx"], alpha=0.2, linewidth=0)
    axes.set_xscale("log", base=2)
    axes.set_xticks(conversion_depths, map(str, conversion_depths))
    axes.set(title="Conversion alone\nµs a node", xlabel="layers of the Llama")
    axes.set_ylim(bottom=0)


def spread(found: timing.Ratio, unit: str = "x") -> str:
    """A figure and its range, whether or not it lies around 1."""
    told = f"{found.median:.3g}{unit} ({found.low:.3g}–{found.high:.3g})"
    return told if found.differs or unit != "x" else f"{told}, no difference seen"


def goal(what: str, figure: str, aim: str, reached: bool) -> str:
    """One line: the figure, and in a full run what it should be."""
    judged = "" if asked.quick else f"; goal {aim}: {'reached' if reached else 'MISSED'}"
    return f"{what}: {figure}{judged}"


figure, panels = plt.subplots(1, 2, figsize=(8.5, 3.6), width_ratios=(3, 2), layout="constrained")
draw_ratios(panels[0])
draw_conversion(panels[1])
for axes in panels:
    axes.spines[["top", "right"]].set_visible(False)
if asked.plot:
    with written_whole(asked.plot) as draft:
        plt.savefig(draft, dpi=150)

all_six = timing.summed(times.values(), ("torch.export", "to_onnx"))
taken = timing.summed([times[title] for title in both], ("to_onnx", "dynamo"))
cost, saved = all_six.ratio("to_onnx", "torch.export"), taken.ratio("dynamo", "to_onnx")
growth = layered.ratio("deep, functions", "shallow, functions")
against = layered.ratio("deep, functions", "deep, torch.export")
first, last = conversion_depths[0], conversion_depths[-1]
middle = conversion_depths[len(conversion_depths) // 2]
grown = timing.Ratio(
    tuple(
        (b / nodes[last]) / (a / nodes[middle])
        for a, b in zip(
            conversions[middle].of("conversion"), conversions[last].of("conversion"), strict=True
        )
    )
)
slowest = max((per_node(layers) for layers in conversion_depths), key=lambda r: r.median)
counts = {t: [compared[t][n].artifact.ops().total() for n in ("to_onnx", "dynamo")] for t in both}
larger = [title for title, (ours, theirs) in counts.items() if ours > theirs]
speeds = {title: found.ratio("to_onnx", "dynamo") for title, found in runs.items()}
medians = [r.median for r in speeds.values()]
print(
    "\n".join(
        [
            goal(
                "to_onnx, times torch.export, six models",
                spread(cost),
                "≤ 1.15",
                cost.median <= 1.15,
            ),
            goal(
                f"dynamo, times to_onnx, {len(both)} models",
                spread(saved),
                "≥ 4",
                saved.median >= 4,
            ),
            goal(
                f"conversion alone, slowest of {conversion_depths} layers",
                spread(slowest, " µs a node"),
                "< 100",
                slowest.median < 100,
            ),
            goal(
                f"its cost a node, {last} layers over {middle}",
                spread(grown),
                "≤ 1.1",
                grown.low <= 1.1,
            ),
            goal(
                "models whose file has more nodes than dynamo's",
                ", ".join(larger) or "none",
                "none",
                not larger,
            ),
            goal(
                "ONNX Runtime, to_onnx times dynamo, medians",
                f"{min(medians):.2f} to {max(medians):.2f}",
                "0.9 to 1.05",
                max(medians) <= 1.05,
            ),
            goal(
                f"functions, {deep} layers times {shallow}",
                spread(growth),
                "≤ 2.5",
                growth.median <= 2.5,
            ),
            goal(
                f"functions, times torch.export, {deep} layers",
                spread(against),
                "≤ 1/3",
                against.median <= 1 / 3,
            ),
            goal(
                "functions, how far from the plain export",
                f"{apart.worst:.1e}",
                "equal",
                apart.worst <= 1e-5,
            ),
        ]
    )
)

# %%
# In brackets stand the lowest and the highest ratio; where they lie on both sides of 1, no difference was seen. A line of the conversion
# that stays level means that its time grows in proportion to the graph. Model by model:


def row(title: str) -> dict[str, object]:
    """One line of the table."""
    found, with_dynamo = times[title], title in both
    return {
        "model": title,
        "to_onnx to torch.export": found.ratio("to_onnx", "torch.export"),
        "dynamo to to_onnx": found.ratio("dynamo", "to_onnx")
        if with_dynamo
        else f"refused ({compared[title]['dynamo'].outcome})",
        "nodes": " / ".join(map(str, counts[title]))
        if with_dynamo
        else compared[title]["to_onnx"].artifact.ops().total(),
        "time in ONNX Runtime": speeds[title] if with_dynamo else "",
    }


counted = len(all_six.rounds)
print(
    show.table(
        [row(title) for title in models], "to_onnx and dynamo (nodes and run time: ours / theirs)"
    )
)

# %%
# Where ``dynamo`` refuses a model, the sum for it is over the others.
#
# How far to trust it
# -------------------
# Few rounds can differ by chance. These models are tiny: in ONNX Runtime, what a node costs by itself counts more here than in yours.

print(f"Medians of {counted} rounds.")
print(timing.machine(PACKAGES))

# %%
# The file
# --------
# The times are kept in pyperf's format, with what they depend on; read back, it holds:

suite = pyperf.BenchmarkSuite.load(str(written))
folder.cleanup()
assert len(suite) == sum(len(found.rounds[0]) for found in titled.values())
print(f"{written.name}: {len(suite)} benchmarks")

# %%
# Most of what ``to_onnx`` takes is ``torch.export``; to pay less, capture less: name the class of the equal layers in ``functions=``.
# Next: :doc:`what an export needs of memory <memory>`.
