"""
Llama with a KV cache: export time and speed by number of layers
================================================================

Compare exporters on a narrow Llama whose cache is an input and an output, with up to 16 layers: export time, *prefill* (a prompt of 64
tokens and an empty cache), and *decode* (one token after 64).
"""

# sphinx_gallery_parallel = False
import copy
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from transformers import DynamicCache
from transformers.masking_utils import create_causal_mask

from content.zoo.tiny import model
from exportlab import case, exporters, show, tensor, to_onnx
from exportlab.cases import Built, Declaration, Sample
from exportlab.eager import fresh
from exportlab.measure import benchmark, figures, tables, timing, words
from exportlab.messages import muffled
from exportlab.specs import integers, ones
from exportlab.verification.comparison import Attempt, attempt
from exportlab.verification.difference import difference_of

page = benchmark.page(
    "llama_layers",
    "How does a Llama export and run, layer by layer?",
    quick="1 layer, 3 rounds",
)
BASE, EAGER = "torch.export", "eager"
PHASES = ("prefill", "decode")
Ratios = dict[str, dict[int, timing.Ratio]]


def by_depth(run: benchmark.Run, kind: str, base: str) -> Ratios:
    """By name and then by depth, what it takes over the base of the same depth."""
    found: Ratios = {}
    for title, times in run.times.items():
        if title.startswith(kind):
            for name in times.rounds[0]:
                found.setdefault(name, {})[int(title.split()[-1])] = times.ratio(name, base)
    return {name: ratios for name, ratios in found.items() if name != base}


def finding(run: benchmark.Run) -> benchmark.Lines:
    """A layer of the export and of a token; export at the greatest depth of all; nodes; refusals."""
    from exportlab.measure import seconds

    exported = by_depth(run, "export", BASE)
    shared = max(set.intersection(*(set(points) for points in exported.values())))
    depth = max(run.facts["depths"])
    nodes = run.facts["nodes"][str(depth)]
    refused = "; ".join(f"{way}: {why}" for way, why in run.facts["refused"].items()) or "none"
    up_to = {n: seen for n, seen in times_of(run, "export").items() if n <= shared}
    kinds = {"export": (up_to, ("dynamo", "to_onnx"))}
    kinds["decode"] = times_of(run, "decode"), ("eager", "dynamo", "to_onnx")
    layer = {
        (kind, name): seconds.spoken_time(seconds.slope(seen, name).median)
        for kind, (seen, names) in kinds.items()
        for name in names
    }
    official = words.spoken("dynamo")
    return (
        f"Up to {plural(shared)}, one more layer of a Llama with a cache takes {official} {layer['export', 'dynamo']} and to_onnx {layer['export', 'to_onnx']}",
        f"for each token, a layer takes {layer['decode', 'eager']} in eager mode, {layer['decode', 'dynamo']} in {official}'s file and {layer['decode', 'to_onnx']} in to_onnx's",
        f"to export {plural(shared)}, {words.takes({way: points[shared] for way, points in exported.items()}, BASE)}",
        f"nodes at {plural(depth)}: {', '.join(f'{words.spoken(way)} {count:,}' for way, count in nodes.items())}",
        f"not timed, since not right: {refused}",
    )


def times_of(run: benchmark.Run, kind: str) -> dict[int, timing.Timings]:
    """What was measured of one kind, by number of layers."""
    return {int(t.split()[-1]): seen for t, seen in run.times.items() if t.startswith(kind)}


def plural(layers: int) -> str:
    """So many layers."""
    return f"{layers} layer{'s' * (layers > 1)}"


def draw(run: benchmark.Run) -> None:
    """What a token takes in each file, and what an export takes."""
    from exportlab.measure import seconds

    (decode,) = figures.panels("One token after 64, in milliseconds of processor time")
    seconds.draw_layers(decode, times_of(run, "decode"), unit="ms")
    official = max(n for n, seen in times_of(run, "export").items() if "dynamo" in seen.rounds[0])
    title = f"One export of a Llama with a KV cache, seconds; {words.spoken('dynamo')} to {plural(official)}"
    (export,) = figures.panels(title)
    seconds.draw_layers(export, times_of(run, "export"))


def draw_rest(run: benchmark.Run) -> None:
    """What a prompt takes, and how many nodes there are."""
    left, right = figures.panels("The same files", 2)
    prefilled = by_depth(run, "prefill", EAGER)
    counts = run.facts["nodes"]
    nodes = {
        name: {int(n): at[name] for n, at in counts.items() if name in at} for name in prefilled
    }
    figures.lines(left, prefilled, title="prefill, eager = 1", along="layers")
    figures.lines(right, nodes, title="nodes", along="layers", unit="")


def table(run: benchmark.Run) -> list[tables.Table]:
    """Exports over torch.export, then runs over eager."""
    exported = {t: seen for t, seen in run.times.items() if t.startswith("export")}
    runs = {t: seen for t, seen in run.times.items() if t not in exported}
    return [
        tables.compared(exported, BASE, title="An export, medians: lower is faster"),
        tables.compared(runs, EAGER, who="run by", title="A run, medians: lower is faster"),
    ]


page.open(finding, draw, table)

# %%
# Model
# -----
#
# The Llama is 64 wide, has random weights, and has 4 heads that share the keys and values of 2. A model this small shows the cost of
# its *operators*, so don't expect these speeds at the width that you deploy. Batch, tokens and past are dynamic.
#
# The cache is passed as pairs of tensors, one per layer. The forward method of the library is written out for this.

WIDTH, HEADS, KEY_HEADS, WORDS, PROMPT = 64, 4, 2, 256, 64
SIZES = {
    "hidden_size": WIDTH,
    "intermediate_size": 2 * WIDTH,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KEY_HEADS,
    "vocab_size": WORDS,
    "max_position_embeddings": 4 * PROMPT,
}
DIMS = {"batch": (2, 3, 1), "seq": (3, 4, PROMPT, 1), "past": (5, 2, 0, PROMPT)}
T = torch.Tensor
Pairs = list[tuple[T, T]]


class Layer(nn.Module):
    """A layer of the library between tensors: nothing that it could change comes in."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer
        layer.self_attn.layer_idx = 0  # its cache holds this layer alone

    def forward(
        self, hidden: T, mask: T | None, cos: T, sin: T, keys: T, values: T
    ) -> tuple[T, T, T]:
        cache = DynamicCache([(keys, values)])
        hidden = self.layer(hidden, mask, position_embeddings=(cos, sin), past_key_values=cache)
        return hidden, cache.layers[0].keys, cache.layers[0].values


class Decoder(nn.Module):
    """Embeddings, layers, head; takes pairs of keys and values, returns them longer."""

    def __init__(self, llama: nn.Module) -> None:
        super().__init__()
        self.inner, self.head, self.config = llama.model, llama.lm_head, llama.config
        self.blocks = nn.ModuleList(map(Layer, llama.model.layers))

    def forward(
        self, ids: torch.Tensor, mask: torch.Tensor, pairs: Pairs
    ) -> tuple[torch.Tensor, Pairs]:
        hidden = self.inner.embed_tokens(ids)
        places = (torch.arange(ids.shape[1]) + pairs[0][0].shape[2])[None]
        past = DynamicCache(pairs)
        mask = create_causal_mask(self.config, hidden, mask, past, position_ids=places)
        cos, sin = self.inner.rotary_emb(hidden, position_ids=places)
        longer = []
        for block, (keys, values) in zip(self.blocks, pairs, strict=True):
            hidden, *pair = block(hidden, mask, cos, sin, keys, values)
            longer.append(tuple(pair))
        return self.head(self.inner.norm(hidden)), longer


def llama(depth: int) -> nn.Module:
    """The library's own, with random weights."""
    sizes = {**SIZES, "num_hidden_layers": depth, "use_cache": True}
    return model("LlamaForCausalLM", "LlamaConfig", **sizes)


def built(depth: int) -> Built:
    """The decoder, its samples (an export, two sizes more, a prompt, a token), and its axes."""

    @case(dims=DIMS)
    def decoder() -> Declaration:
        words = integers("batch", "seq", high=WORDS), ones("batch", "past+seq")
        shape = "batch", KEY_HEADS, "past", WIDTH // HEADS
        return Decoder(llama(depth)), (
            *words,
            [(tensor(*shape), tensor(*shape)) for _ in range(depth)],
        )

    return decoder.build()


def library(depth: int, sample: Sample) -> torch.Tensor:
    """The logits of the library's own forward, with the weights of `built`."""
    with torch.random.fork_rng(), torch.inference_mode():
        torch.manual_seed(0)
        ids, mask, pairs = sample.args
        return (
            llama(depth)
            .eval()(ids, attention_mask=mask, past_key_values=DynamicCache(pairs))
            .logits
        )


two = built(2)
with torch.inference_mode():
    apart = difference_of(library(2, two.samples[0]), two.module(*two.samples[0].args)[0])
assert not apart.problem, apart.problem


# %%
# Verification
# ------------
#
# The export uses 3 tokens after 5. Each artifact is compared with eager at another batch, for the prompt without a past, and for one
# token after 64. Results that are right, or right except where a mask hides everything, are timed. ``to_onnx, functions`` writes the
# layer once, as a local function, and calls it with the weights of each layer.

ways: dict[str, dict[str, Any]] = {
    BASE: {},
    "to_onnx": {},
    "to_onnx, functions": {"functions": (Layer,)},
    "dynamo": {},
    "torchscript": {},
}
depths, rounds = ((1,), 3) if page.quick else ((1, 4, 16), 4)
deep = {"dynamo": 4}  # layers up to which its exports are timed: one of 16 takes most of a minute


def exporter(way: str) -> exporters.Exporter:
    """What follows a comma is how it is used."""
    return exporters.get(way.split(",")[0])


def attempts(made: Built) -> dict[str, Attempt]:
    """Every way, exported and verified."""
    shapes = made.dynamic_shapes
    return {
        way: attempt(exporter(way), made.module, made.samples, shapes, **options)
        for way, options in ways.items()
    }


models = {depth: built(depth) for depth in depths}
tried = {depth: attempts(made) for depth, made in models.items()}
timed = [way for way in ways if all(tried[depth][way].mark.works for depth in depths)]
show.table([{**tried[depths[-1]][way].row(), "exporter": way} for way in ways])

# %%
# Method
# ------
#
# The measurements are interleaved (:doc:`how_we_measure`), on one thread, with the CPU clock. Each export gets a new copy of the
# module. Eager runs without gradients and passes its cache in and out like the exported models.


def exports(depth: int) -> dict[str, timing.Make]:
    """The exports of one depth."""
    made = models[depth]

    def make(way: str) -> Callable[[], object]:
        module, sample = fresh(made.module), copy.deepcopy(made.samples[0])
        return lambda: exporter(way).export(
            module, sample.args, dynamic_shapes=made.dynamic_shapes, **ways[way]
        )

    return {w: lambda way=w: make(way) for w in timed if depth <= deep.get(w, depth)}


def runs(depth: int, sample: Sample, repeats: int) -> dict[str, timing.Make]:
    """So many calls of eager, and of each file."""
    module = models[depth].module

    @torch.inference_mode()
    def eager() -> None:
        for _ in range(repeats):
            module(*sample.args)

    files = [way for way in timed if way != BASE]
    made = {w: benchmark.in_onnxruntime(tried[depth][w].artifact, sample, repeats) for w in files}
    return {EAGER: lambda: eager, **made}


repeats = 5 if page.quick else 20
calls = {
    f"{phase}, layers {depth}": runs(depth, made.samples[2 + place], repeats)
    for depth, made in models.items()
    for place, phase in enumerate(PHASES)
}
with muffled():
    many = timing.interleaved(calls, 2 * rounds, budget=60, tell=page.tell, clock=time.process_time)
    exported = timing.interleaved(
        {f"export, layers {depth}": exports(depth) for depth in depths},
        rounds,
        discard=0,
        budget=130,
        tell=page.tell,
        clock=time.process_time,
    )

ran = {title: seen.each(repeats) for title, seen in many.items()}

# %%
# Results
# -------


def refusal(way: str) -> str:
    """Where it first was not right, and what was seen."""
    depth = next(depth for depth in depths if not tried[depth][way].mark.works)
    row = tried[depth][way].row()
    return f"{row['outcome']} at {depth} layers: {row['what was seen']}"


facts = {
    "depths": depths,
    "nodes": {
        depth: {way: found[way].artifact.ops().total() for way in timed if way != BASE}
        for depth, found in tried.items()
    },
    "refused": {way: refusal(way) for way in ways if way not in timed},
}
run = page.keep({**exported, **ran}, facts=facts, packages=(*benchmark.PACKAGES, "transformers"))
page.close(run, finding, draw, table)

# %%
# In the left figure, a flat curve grows like that of ``torch.export``, and a value below 1 is less than the time of ``torch.export``.
# Tracing is cheap, because it uses no symbols. It is timed where it is right; :doc:`the support matrix </docs/support>` shows where it
# isn't. The next figures show the speed and the nodes:

draw_rest(run)

# %%
# The report shows whether the layers share a function, here for two layers.

with muffled():
    program = to_onnx(
        two.module, two.samples[0].args, dynamic_shapes=two.dynamic_shapes, functions=(Layer,)
    )
print(f"calls: {program.report.functions}, shared: {program.report.shared or 'none'}")
print(f"not shared: {program.report.not_shared}")

# %%
# What this does not show
# -----------------------
#
# Wide layers, for which matrix products dominate, GPUs, half precision, several texts at once, and the quality of the output, because
# the weights are random. :doc:`real_sizes` has a Llama with a billion weights.
#
# If you generate text, compare *decode*, which runs once per token; *prefill* runs once per prompt. If you export often, compare the
# export times. Next: :doc:`exports of all test cases <coverage>`.
