"""
Transformers in ONNX Runtime and OpenVINO
=========================================

Compare five small transformers exported with ``torch.onnx.export`` and ``to_onnx`` at opsets 20 and 23, with ONNX Runtime's transformer
optimiser, with OpenVINO and with ``torch.compile``. From opset 23 on, ONNX has operators for attention, rotary embeddings and RMS
norms.
"""

# sphinx_gallery_parallel = False
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx_ir as ir
import torch
from onnxruntime.transformers.fusion_options import FusionOptions
from onnxruntime.transformers.optimizer import optimize_model

from exportlab import show
from exportlab.bench.ways import way
from exportlab.cases import Case, Declaration, case
from exportlab.exporters import Artifact, OnnxArtifact
from exportlab.exporters.session import running_on
from exportlab.measure import benchmark, figures, tables, timing, words
from exportlab.measure.real import Images, Listening, Texts, Writing, seen
from exportlab.messages import first_line, muffled
from exportlab.specs import integers, ones, tensor

page = benchmark.page(
    "transformer_files", "Which file runs a transformer fastest?", quick="BERT by four files"
)
EAGER, COMPILED, OPTIMISED = "eager", "torch.compile", "dynamo, ORT's optimiser"
OURS, OFFICIAL = "to_onnx, opset 23", "dynamo"
FILES = ("to_onnx", OURS, OFFICIAL, "dynamo, opset 23", OPTIMISED)


def others(times: timing.Timings) -> list[str]:
    """The files of the official exporter that ONNX Runtime runs, the fastest first."""
    names = [n for n in FILES if n in times.rounds[0] and not n.startswith("to_onnx")]
    return sorted(names, key=times.median)


def beside(times: timing.Timings) -> timing.Ratio:
    """The time of our file at opset 23 over that of the best of the others."""
    return times.ratio(OURS, others(times)[0])


def first_of(times: timing.Timings) -> str:
    """The fastest of all, with what does not differ from it."""
    best = min(times.rounds[0], key=times.median)
    level = [n for n in times.rounds[0] if n != best and not times.ratio(n, best).differs]
    return words.listed(words.spoken(n) for n in (best, *level))


def newer(run: benchmark.Run, name: str) -> dict[str, timing.Ratio]:
    """The time of an exporter's file at opset 23 over that of its default, where both are right."""
    both = {m: t for m, t in run.times.items() if {name, f"{name}, opset 23"} <= set(t.rounds[0])}
    return {model: t.ratio(f"{name}, opset 23", name) for model, t in both.items()}


def changed(run: benchmark.Run, name: str) -> str:
    """What opset 23 changes for one exporter."""
    ratios = newer(run, name).items()
    told = "; ".join(f"{model} {ratio}" for model, ratio in ratios)
    return f"{words.spoken(name)}'s file at opset 23 over its file at opset {run.facts['opsets'][name]}: {told}"


def finding(run: benchmark.Run) -> benchmark.Lines:
    """Our newest file beside the best of the others, who is the fastest of all, and what the newer opset changes."""
    ratios = {model: beside(times) for model, times in run.times.items() if OURS in times.rounds[0]}
    slower = [model for model, ratio in ratios.items() if ratio.differs and ratio.median > 1]
    faster = [model for model, ratio in ratios.items() if ratio.differs and ratio.median < 1]
    model, times = [*run.times.items()][-1]
    taken = {name: figures.plain(1000 * times.median(name), "ms") for name in ("eager", OFFICIAL)}
    left = "; ".join(f"{who} ({why})" for who, why in run.facts["left out"].items()) or "nothing"
    return (
        f"One call ({model}) takes {taken['eager']} in eager mode, and {taken[OFFICIAL]} with {words.spoken(OFFICIAL)}'s file in ONNX Runtime",
        f"beside the fastest file of torch.onnx.export, to_onnx's at opset 23 is faster for {len(faster)} of {len(ratios)} calls and slower for {len(slower)}",
        *(
            f"{model}: {ratio} beside {words.spoken(others(run[model])[0])}; fastest of all: {first_of(run[model])}"
            for model, ratio in ratios.items()
        ),
        *(changed(run, name) for name in ("to_onnx", OFFICIAL) if newer(run, name)),
        f"outputs differ from eager's by at most {run.facts['apart']:.0e}; left out: {left}",
    )


def draw(run: benchmark.Run) -> None:
    """A panel for each model."""
    from exportlab.measure import bar_panels

    found = bar_panels.values_of(
        {model.replace(", ", ",\n"): seen for model, seen in run.times.items()}, factor=1000
    )
    bar_panels.draw_bar_panels(found, "One call, milliseconds; ✕: not right or refused", "ms")


def table(run: benchmark.Run) -> list[tables.Table]:
    """Every call."""
    title = "A call, medians: lower is faster"
    return [tables.compared(run.times, OFFICIAL, who="run by", title=title)]


page.open(finding, draw, table)

# %%
# Models
# ------
#
# The models are from transformers, 384 wide with three layers and random weights. The first value of each size is used for the export,
# the others for timing and for another check. A Llama and the decoder of Whisper get their cache as pairs of tensors.

WIDTH, LAYERS, HEADS, WORDS = 384, 3, 6, 1000
SHAPE: dict[str, Any] = {
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": 4 * WIDTH,
}


@case(dims={"batch": (2, 1, 3), "seq": (16, 128, 9)})
def bert() -> Declaration:
    """BERT."""
    from transformers import BertConfig, BertModel

    model = BertModel(BertConfig(vocab_size=WORDS, **SHAPE))
    return Texts(model), (integers("batch", "seq", high=WORDS), ones("batch", "seq"))


@case(dims={"batch": (2, 1, 3)})
def vit() -> Declaration:
    """ViT."""
    from transformers import ViTConfig, ViTModel

    return Images(ViTModel(ViTConfig(**SHAPE))), (tensor("batch", 3, 224, 224),)


@case(dims={"batch": (2, 1, 3), "past": (7, 64, 2)})
def whisper() -> Declaration:
    """Whisper, one token."""
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    each: dict[str, Any] = {
        f"{side}_{what}": number
        for side in ("encoder", "decoder")
        for what, number in (("layers", LAYERS), ("attention_heads", HEADS), ("ffn_dim", 4 * WIDTH))
    }
    model = WhisperForConditionalGeneration(WhisperConfig(d_model=WIDTH, **each))
    return Listening(model), (
        integers("batch", 1, high=WORDS),
        tensor("batch", 500, WIDTH),
        seen(HEADS, "past", LAYERS),
        seen(HEADS, 500, LAYERS),
    )


@case(dims={"batch": (2, 1, 1, 3), "seq": (8, 128, 1, 4), "past": (5, 0, 128, 2)})
def llama() -> Declaration:
    """Llama, two queries to a key."""
    from transformers import LlamaConfig, LlamaForCausalLM

    model = LlamaForCausalLM(LlamaConfig(vocab_size=WORDS, num_key_value_heads=3, **SHAPE))
    cache = seen(3, "past", LAYERS)
    return Writing(model), (
        integers("batch", "seq", high=WORDS),
        ones("batch", "past+seq"),
        cache,
    )


CALLS: dict[Case, dict[str, int]] = {  # which samples are timed
    bert: {"BERT": 1},
    vit: {"ViT": 1},
    whisper: {"Whisper, one token": 1},
    llama: {"Llama, a prompt": 1, "Llama, one token": 2},
}
rounds, span = 15, 0.1
if page.quick:
    CALLS, rounds, span = {bert: CALLS[bert]}, 6, 0.02

# %%
# Exports
# -------
#
# ONNX Runtime's optimiser for transformers rewrites the model of ``torch.onnx.export``, with the model type as its documentation
# recommends. OpenVINO reads the model of ``to_onnx``.

KINDS = {bert: "bert", vit: "vit", whisper: "bart", llama: "gpt2"}


def exported(one: Case, name: str) -> Artifact:
    """One model by one way, with the options that stand behind the comma."""
    if name == OPTIMISED:
        return optimised(one, exported(one, OFFICIAL))
    built, (who, *opset) = one.build(), name.split(", opset ")
    options = {"opset_version": int(opset[0])} if opset else {}
    first = built.samples[0]
    return way(who).export(
        built.module, first.args, first.kwargs, dynamic_shapes=built.dynamic_shapes, **options
    )


def optimised(one: Case, made: Artifact) -> OnnxArtifact:
    """The file after ONNX Runtime's optimiser for transformers."""
    kind = KINDS[one]
    with tempfile.TemporaryDirectory() as folder:
        path = made.save(Path(folder) / "model.onnx")
        found = optimize_model(
            str(path), kind, HEADS, WIDTH, FusionOptions(kind), opt_level=0, only_onnxruntime=False
        )
        found.save_model_to_file(str(path))
        model = ir.load(path)
        ir.external_data.load_to_model(model)
    give_back(made.model, model)
    return OnnxArtifact(model, made.calling, made.exporter)


def give_back(before: ir.Model, after: ir.Model) -> None:
    """Declare again what nothing reads and the optimiser took away: Whisper's step has no use for what was heard, only for its keys and values."""
    left = {value.name for value in after.graph.inputs}
    for place, value in enumerate(before.graph.inputs):
        if value.name not in left:
            same = ir.Value(name=value.name, shape=value.shape, type=value.type)
            after.graph.inputs.insert(place, same)


# %%
# Verification
# ------------
#
# Each result is compared with eager at all sizes in the list above. Results that differ by more than 1e-3 or are refused are listed but
# not timed.

left_out: dict[str, str] = {}
apart: list[float] = []


def difference(artifact: Artifact, one: Case) -> float:
    """The largest difference from eager at any size."""
    module, flat = one.module(), torch.utils._pytree.tree_leaves
    return max(
        (x - y).abs().max().item()
        for sample in one.samples()
        for x, y in zip(flat(artifact(*sample.args)), flat(module(*sample.args)), strict=True)
    )


def right(one: Case, name: str) -> Artifact | None:
    """The artifact, unless it is refused or wrong."""
    try:
        artifact = exported(one, name)
        off = difference(artifact, one)
    except Exception as error:  # noqa: BLE001 - what a way raises is to be reported
        left_out[f"{words.spoken(name)}, {one.name}"] = first_line(error)
        return None
    if off > 1e-3:
        left_out[f"{words.spoken(name)}, {one.name}"] = f"differs by {off:.0e}"
        return None
    apart.append(off)
    return artifact


# %%
# What is timed
# -------------
#
# The runtime's own call on one thread with prepared arguments. Sessions are created again in each round, so that a session that is slow
# by chance doesn't affect all rounds.


def make(artifact: Artifact, args: tuple[Any, ...], repeats: int) -> Callable[[], object]:
    """To be timed: calls in a row, after some that nobody times."""
    call = artifact.unloaded().prepared(*args)
    for _ in range(1 + repeats // 4):
        call()
    return lambda: [call() for _ in range(repeats)]


def often(one: Case, row: int) -> int:
    """How many calls eager fits into the span."""
    args, module = one.samples()[row].args, one.module()
    module(*args)
    return max(1, round(span / timing.seconds(lambda: lambda: module(*args))))


def makers(one: Case, found: dict[str, Artifact], row: int, calls: int) -> dict[str, timing.Make]:
    """All ways to make so many calls of one kind."""
    args = one.samples()[row].args
    return {n: (lambda a=a: make(a, args, calls)) for n, a in found.items()}


ways = (EAGER, COMPILED, *FILES, "openvino")
if page.quick:
    ways = (EAGER, OURS, OFFICIAL, "dynamo, opset 23")
groups: dict[str, dict[str, timing.Make]] = {}
opsets: dict[str, int] = {}
repeats: dict[str, int] = {}
with torch.no_grad(), muffled(), running_on(threads=1):
    for one, rows in CALLS.items():
        found = {name: made for name in ways if (made := right(one, name))}
        page.tell(f"{one.name} is exported by {len(found)} ways")
        opsets |= {
            n: a.got().opset_version for n, a in found.items() if isinstance(a, OnnxArtifact)
        }
        repeats |= {call: often(one, row) for call, row in rows.items()}
        groups |= {call: makers(one, found, row, repeats[call]) for call, row in rows.items()}
    together = timing.interleaved(groups, rounds, tell=page.tell)

# %%
# Results
# -------

facts = {"left out": left_out, "apart": max(apart), "opsets": opsets}
packages = (*benchmark.PACKAGES, "transformers")
times = {call: seen.each(repeats[call]) for call, seen in together.items()}
run = page.keep(times, facts=facts, packages=packages)
page.close(run, finding, draw, table)

# %%
# Operators for attention and norms in each model:

show.table(
    [
        {
            "file": words.spoken(name),
            "opset": opsets[name],
            "nodes": sum(ops.values()),
            "of its own": fused,
        }
        for name, made in found.items()
        if isinstance(made, OnnxArtifact)
        for ops in [made.ops()]
        for fused in [
            ", ".join(
                f"{op} {n}"
                for op, n in ops.items()
                if op in ("Attention", "RMSNormalization", "RotaryEmbedding", "LayerNormalization")
            )
        ]
    ]
)

# %%
# What this does not show
# -----------------------
#
# Models of real size (:doc:`real_sizes`), more than one thread, GPUs and half precision. OpenVINO might be faster with the model of
# another exporter. ONNX Runtime accepts no empty batch at opset 23, and needs a release that supports the opset.
#
# If your ONNX Runtime is recent, export at opset 23 and time both models. Next: :doc:`measure your own model
# </generated/gallery/torch_onnx/bench_your_model>`.
