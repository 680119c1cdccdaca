"""Architectures of transformers, tiny, with random weights: exported, and verified at sizes never seen. Not here: pretrained ones.

usage: architectures.py [--names NAME …] [--exporters NAME …] [--quick] [--limit SECONDS] [--opset VERSION] [--long]
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import torch
import transformers
from torch import Tensor, nn
from transformers import DynamicCache
from transformers.integrations.executorch import register_dynamic_cache_export_support

from exportlab.comparison import Attempt, attempt
from exportlab.converter import to_onnx
from exportlab.converter.errors import op_title
from exportlab.exporters import OnnxArtifact, get
from exportlab.exporters.artifact import Asked
from exportlab.exporters.calling import by_signature
from exportlab.exporters.own import OwnExporter
from exportlab.quiet import quiet
from exportlab.zoo import Case, built, case, integers, tensor
from exportlab.zoo.case import Declaration
from exportlab.zoo.specs import TensorSpec

VOCABULARY, HIDDEN, INNER, LAYERS, HEADS, KEY_HEADS, LONGEST = 64, 32, 48, 2, 4, 2, 64
HEAD = HIDDEN // HEADS
TEXT = {"batch": (2, 4, 1), "seq": (7, 10, 1)}
PAIR = {**TEXT, "answer": (5, 3, 2)}
STEP = {"batch": (2, 3, 1), "past": (5, 8, 1, 0)}
IMAGE = {"batch": (2, 3, 1)}
ANY_IMAGE = {**IMAGE, "height": (32, 48, 64), "width": (48, 32, 80)}
SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": HIDDEN,
    "intermediate_size": INNER,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "max_position_embeddings": LONGEST,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
GROUPED = {**SIZES, "num_key_value_heads": KEY_HEADS, "use_cache": False}
SHORT_WINDOW = {"sliding_window": 4}
EXPERTS = {"num_experts_per_tok": 2, "num_local_experts": 4}
LIMIT = 120  # seconds for one architecture and one exporter
QUICK = ("bert", "llama", "t5full", "swin", "llama_step")

ARCHITECTURES: dict[str, Case] = {}


def architecture(dims: Mapping[str, tuple[int, ...]]) -> Callable[[Callable[[], Declaration]], Case]:
    """Registers a function that returns a model and what it is called with; the first of the sizes is that of the export."""

    def declare(factory: Callable[[], Declaration]) -> Case:
        ARCHITECTURES[factory.__name__] = case(dims)(factory)
        return ARCHITECTURES[factory.__name__]

    return declare


def model(name: str, config: str = "", **options: Any) -> nn.Module:
    """A class of transformers with random weights that matter: their initial ones are so small that a wrong mask would hardly show."""
    made = getattr(transformers, name)(getattr(transformers, config or name.removesuffix("Model") + "Config")(**options))
    with torch.no_grad():
        for weight in made.parameters():
            spread = weight[0].numel() ** -0.5 if weight.dim() > 1 else 0.1
            weight.copy_(torch.randn_like(weight) * spread + (weight.mean() if weight.dim() == 1 else 0))
    return made.eval()


def padded(shape: tuple[int, ...], _: torch.Generator) -> Tensor:
    """A mask over tokens, its rows in turn padded at the end, at the start (a causal mask then leaves nothing), nowhere, everywhere."""
    mask = torch.ones(shape, dtype=torch.int64)
    cut = min(2, shape[1] - 1)
    mask[0::4, shape[1] - cut :] = 0
    mask[1::4, :cut] = 0
    mask[3::4] = 0
    return mask


def text(ids: str = "input_ids", mask: str = "attention_mask", axis: str = "seq") -> dict[str, TensorSpec]:
    """Tokens and which of them count."""
    return {ids: integers("batch", axis, high=VOCABULARY), mask: TensorSpec(("batch", axis), padded)}


def image(*size: int | str) -> dict[str, TensorSpec]:
    """Pixels of an image of this height and width."""
    return {"pixel_values": tensor("batch", 3, *size)}


@architecture(TEXT)
def bert() -> Declaration:
    return model("BertModel", **SIZES), (), text()


@architecture(TEXT)
def roberta() -> Declaration:
    return model("RobertaModel", **SIZES), (), text()


@architecture(TEXT)
def distilbert() -> Declaration:
    return model("DistilBertModel", vocab_size=VOCABULARY, dim=HIDDEN, n_layers=LAYERS, n_heads=HEADS, hidden_dim=INNER), (), text()


@architecture(TEXT)
def albert() -> Declaration:
    return model("AlbertModel", **SIZES, embedding_size=16), (), text()


@architecture(TEXT)
def electra() -> Declaration:
    return model("ElectraModel", **SIZES, embedding_size=16), (), text()


@architecture(TEXT)
def deberta2() -> Declaration:
    attention = {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 4, "max_relative_positions": 16}
    more = {"norm_rel_ebd": "layer_norm", "share_att_key": True, "conv_kernel_size": 3}
    return model("DebertaV2Model", **SIZES, **attention, **more), (), text()


@architecture(TEXT)
def modernbert() -> Declaration:
    window = {"local_attention": 4, "global_attn_every_n_layers": 2}
    return model("ModernBertModel", **SIZES, **window, cls_token_id=1, sep_token_id=2), (), text()


@architecture(TEXT)
def t5enc() -> Declaration:
    return model("T5EncoderModel", "T5Config", **t5_sizes()), (), text()


@architecture(PAIR)
def t5full() -> Declaration:
    return model("T5Model", **t5_sizes()), (), text() | text("decoder_input_ids", "decoder_attention_mask", "answer")


def t5_sizes() -> dict[str, Any]:
    """A T5 configuration."""
    sizes = {"vocab_size": VOCABULARY, "d_model": HIDDEN, "d_ff": INNER, "d_kv": HEAD, "num_layers": LAYERS, "num_heads": HEADS}
    return {**sizes, "relative_attention_num_buckets": 8, "relative_attention_max_distance": 12, "use_cache": False}


@architecture(TEXT)
def gpt2() -> Declaration:
    return model("GPT2Model", **gpt2_sizes(), use_cache=False), (), text()


def gpt2_sizes() -> dict[str, Any]:
    """A GPT-2 configuration."""
    return {"vocab_size": VOCABULARY, "n_embd": HIDDEN, "n_layer": LAYERS, "n_head": HEADS, "n_positions": LONGEST}


@architecture(TEXT)
def llama() -> Declaration:
    return model("LlamaModel", **GROUPED), (), text()


@architecture(TEXT)
def mistral() -> Declaration:
    return model("MistralModel", **GROUPED, **SHORT_WINDOW), (), text()


@architecture(TEXT)
def qwen2() -> Declaration:
    return model("Qwen2Model", **GROUPED), (), text()


@architecture(TEXT)
def qwen3() -> Declaration:
    return model("Qwen3Model", **GROUPED, head_dim=HEAD), (), text()


@architecture(TEXT)
def gemma() -> Declaration:
    return model("GemmaModel", **GROUPED, head_dim=HEAD), (), text()


@architecture(TEXT)
def gemma2() -> Declaration:
    return model("Gemma2Model", **GROUPED, **SHORT_WINDOW, head_dim=HEAD), (), text()


@architecture(TEXT)
def gemma3t() -> Declaration:
    kinds = ["sliding_attention", "full_attention"]
    return model("Gemma3TextModel", **GROUPED, **SHORT_WINDOW, head_dim=HEAD, layer_types=kinds), (), text()


@architecture(TEXT)
def phi() -> Declaration:
    return model("PhiModel", **GROUPED), (), text()


@architecture(TEXT)
def phi3() -> Declaration:
    return model("Phi3Model", **GROUPED), (), text()


@architecture(TEXT)
def mixtral() -> Declaration:
    return model("MixtralModel", **GROUPED, **EXPERTS), (), text()


@architecture(TEXT)
def qwen3_moe() -> Declaration:
    experts = {"num_experts_per_tok": 2, "num_experts": 4, "moe_intermediate_size": 16}
    return model("Qwen3MoeModel", **GROUPED, **experts, head_dim=HEAD), (), text()


@architecture(TEXT)
def gpt_oss() -> Declaration:
    kinds = ["sliding_attention", "full_attention"]
    return model("GptOssModel", **GROUPED, **SHORT_WINDOW, **EXPERTS, head_dim=HEAD, layer_types=kinds), (), text()


@architecture(TEXT)
def olmo2() -> Declaration:
    return model("Olmo2Model", **GROUPED), (), text()


@architecture(TEXT)
def gpt_neox() -> Declaration:
    return model("GPTNeoXModel", **SIZES, use_cache=False), (), text()


@architecture(TEXT)
def opt() -> Declaration:
    sizes = {**SIZES, "ffn_dim": INNER, "word_embed_proj_dim": HIDDEN, "use_cache": False}
    return model("OPTModel", **sizes), (), text()


@architecture(TEXT)
def falcon() -> Declaration:
    return model("FalconModel", **SIZES, alibi=False, use_cache=False), (), text()


@architecture(TEXT)
def bloom() -> Declaration:
    return model("BloomModel", vocab_size=VOCABULARY, hidden_size=HIDDEN, n_layer=LAYERS, n_head=HEADS, use_cache=False), (), text()


PATCHES = {
    "hidden_size": HIDDEN,
    "intermediate_size": INNER,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "image_size": 32,
    "patch_size": 8,
}


@architecture(IMAGE)
def vit() -> Declaration:
    return model("ViTModel", **PATCHES), (), image(32, 32)


@architecture(IMAGE)
def deit() -> Declaration:
    return model("DeiTModel", **PATCHES), (), image(32, 32)


@architecture(IMAGE)
def beit() -> Declaration:
    return model("BeitModel", **PATCHES, use_relative_position_bias=True), (), image(32, 32)


@architecture(ANY_IMAGE)
def dinov2() -> Declaration:
    return model("Dinov2Model", **PATCHES), (), image("height", "width")


@architecture(IMAGE)
def clipv() -> Declaration:
    return model("CLIPVisionModel", **PATCHES), (), image(32, 32)


@architecture(IMAGE)
def swin() -> Declaration:
    sizes = {"image_size": 36, "patch_size": 2, "window_size": 4, "embed_dim": 8, "depths": [2, 2], "num_heads": [2, 4]}
    return model("SwinModel", **sizes), (), image(36, 36)


@architecture(ANY_IMAGE)
def convnext() -> Declaration:
    return model("ConvNextModel", hidden_sizes=[8, 16, 24], depths=[1, 1, 1], num_stages=3), (), image("height", "width")


@architecture(ANY_IMAGE)
def resnet() -> Declaration:
    return model("ResNetModel", embedding_size=8, hidden_sizes=[8, 16], depths=[1, 2]), (), image("height", "width")


@architecture(ANY_IMAGE)
def segformer() -> Declaration:
    sizes = {"num_encoder_blocks": 2, "depths": [1, 1], "hidden_sizes": [8, 16], "num_attention_heads": [1, 2], "decoder_hidden_size": 16}
    stages = {"sr_ratios": [2, 1], "patch_sizes": [7, 3], "strides": [4, 2], "mlp_ratios": [2, 2]}
    return model("SegformerModel", **sizes, **stages), (), image("height", "width")


@architecture(IMAGE)
def mobilenetv2() -> Declaration:
    return model("MobileNetV2Model", depth_multiplier=0.25, min_depth=4, depth_divisible_by=4), (), image(32, 48)


@architecture(IMAGE)
def whisper_enc() -> Declaration:
    encoder = {"encoder_layers": LAYERS, "encoder_attention_heads": HEADS, "encoder_ffn_dim": INNER, "max_source_positions": 12}
    decoder = {"decoder_layers": 1, "decoder_attention_heads": HEADS, "decoder_ffn_dim": INNER, "vocab_size": VOCABULARY, "pad_token_id": 0}
    whole = model("WhisperModel", d_model=HIDDEN, **encoder, **decoder, num_mel_bins=8)
    return whole.encoder, (), {"input_features": tensor("batch", 8, 24)}


@architecture({"batch": (2, 3, 1), "frames": (64, 101, 37)})
def wav2vec2() -> Declaration:
    sizes = {key: SIZES[key] for key in ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")}
    convolutions = {"conv_dim": (16, 16), "conv_kernel": (5, 3), "conv_stride": (3, 2), "num_conv_pos_embeddings": 8}
    return model("Wav2Vec2Model", **sizes, **convolutions, num_conv_pos_embedding_groups=2), (), {"input_values": tensor("batch", "frames")}


class WithPairs(nn.Module):
    """A decoder that takes and returns its past as pairs of keys and values, one for each layer."""

    def __init__(self, decoder: nn.Module) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(self, input_ids: Tensor, attention_mask: Tensor, past: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, list[Any]]:
        found = self.decoder(input_ids, attention_mask=attention_mask, past_key_values=DynamicCache(past), use_cache=True)
        return found.last_hidden_state, [(layer.keys, layer.values) for layer in found.past_key_values.layers]


def cached(base: Case, also_pairs: bool) -> None:
    """Registers one further token of a decoder, its past in a `DynamicCache` (`…_step`), and in pairs of tensors as well (`…_pairs`)."""
    heads = HEADS if base in (gpt2, gpt_neox) else KEY_HEADS
    tokens = {"input_ids": integers("batch", 1, high=VOCABULARY), "attention_mask": TensorSpec(("batch", "past+1"), padded_at_start)}

    def past() -> list[tuple[TensorSpec, TensorSpec]]:
        return [(tensor("batch", heads, "past", HEAD), tensor("batch", heads, "past", HEAD)) for _ in range(LAYERS)]

    def step() -> Declaration:
        register_dynamic_cache_export_support()
        return base.module(), (), {**tokens, "past_key_values": built(lambda *layers: DynamicCache(layers), *past()), "use_cache": True}

    def pairs() -> Declaration:
        return WithPairs(base.module()), (), {**tokens, "past": past()}

    for way in (step, pairs) if also_pairs else (step,):
        name = f"{base.name}_{way.__name__}"
        ARCHITECTURES[name] = Case(name, way, STEP)


def padded_at_start(shape: tuple[int, ...], _: torch.Generator) -> Tensor:
    """A mask over past tokens and new ones: every second row is padded at the start, as batches for generation are."""
    mask = torch.ones(shape, dtype=torch.int64)
    mask[1::2, : shape[1] - 2] = 0
    return mask


for decoder in (llama, qwen2, gemma, gpt2, mistral, phi, gpt_neox):
    cached(decoder, also_pairs=decoder in (llama, qwen2, gemma, gpt2))


@dataclass(frozen=True)
class Outcome:
    """What became of one architecture in one exporter.

    Attributes:
        seen: what was wrong, in short.
        sources: how many operator calls were translated by what (`own`, `custom`, `torchlib`, `decomposed`); of `to_onnx` only.
        fallbacks: the calls of each operator that has no translation of our own.
    """

    outcome: str
    nodes: int = 0
    seconds: float = 0.0
    seen: str = ""
    sources: Mapping[str, int] = field(default_factory=dict)
    fallbacks: Mapping[str, int] = field(default_factory=dict)


class Reporting(OwnExporter):
    """`to_onnx`, which keeps the program that it made last."""

    program: Any = None

    def export(self, module: nn.Module, args: tuple[Any, ...] = (), kwargs: Any = None, **options: Any) -> OnnxArtifact:
        """Exports; `options` go to `to_onnx` as they are."""
        self.program = to_onnx(module, args, kwargs, **options)
        asked = Asked.of(None, None, options.get("opset_version"))
        return OnnxArtifact(self.program.model, by_signature(self.program.exported_program), self.name, asked)

    def fallbacks(self) -> Counter[str]:
        """The calls of each operator that took a fallback."""
        graphs = [part.graph for part in self.program.exported_program.graph_module.modules() if isinstance(part, torch.fx.GraphModule)]
        calls = Counter(op_title(node.target) for graph in graphs for node in graph.nodes if node.op == "call_function")
        return Counter({op: calls[op] for op in self.program.report.fallbacks})


def tried(name: str, exporter: str = "to_onnx", **options: Any) -> Outcome:
    """Exports an architecture in this process, and verifies it at every size it declares."""
    made = ARCHITECTURES[name].build()
    chosen = Reporting() if exporter == "to_onnx" else get(exporter)
    start = time.perf_counter()
    found = attempt(chosen, made.module, made.samples, made.dynamic_shapes, **options)
    seconds = time.perf_counter() - start
    nodes = found.artifact.ops().total() if found.artifact else 0
    if exporter != "to_onnx" or chosen.program is None:
        return Outcome(found.outcome, nodes, seconds, seen_in(found))
    return Outcome(found.outcome, nodes, seconds, seen_in(found), dict(chosen.program.report.sources), chosen.fallbacks())


def seen_in(found: Attempt) -> str:
    """What went wrong: the error, or each check that failed."""
    if found.error is not None or found.report is None:
        return f"{type(found.error).__name__}: {found.error}"
    return "\n".join(f"{c.name} ({c.inputs}): {c.outcome}: {c.detail}" for c in found.report.checks if c.outcome not in ("ok", "skipped"))


def tried_apart(name: str, exporter: str, limit: float, options: Mapping[str, Any]) -> Outcome:
    """The same in a process of its own, so that a crash or a hang is an outcome too."""
    forking = multiprocessing.get_context("fork")
    ours, theirs = forking.Pipe(duplex=False)
    worker = forking.Process(target=_send, args=(theirs, name, exporter, options))
    worker.start()
    theirs.close()
    try:
        return ours.recv() if ours.poll(limit) else Outcome("timeout", seen=f"not done after {limit:g} s")
    except EOFError:
        worker.join()
        return Outcome("crash", seen=f"the process ended with {worker.exitcode}")
    finally:
        worker.kill()
        worker.join()


def _send(connection: Connection, name: str, exporter: str, options: Mapping[str, Any]) -> None:
    connection.send(tried(name, exporter, **options))


def main() -> int:
    """Tries what the command line asks for, and prints a line for each architecture and the totals; 1 if anything is not right."""
    asked = arguments()
    quiet()
    transformers.logging.set_verbosity_error()
    names = asked.names or (QUICK if asked.quick else tuple(ARCHITECTURES))
    options = {"opset_version": asked.opset} if asked.opset else {}
    print(line("", [f"{exporter:<10}{'nodes':>6}{'s':>6}" for exporter in asked.exporters]) + "  calls by source")
    found: dict[str, list[Outcome]] = {exporter: [] for exporter in asked.exporters}
    for name in names:
        made = {exporter: tried_apart(name, exporter, asked.limit, options) for exporter in asked.exporters}
        sources = ", ".join(f"{source} {count}" for outcome in made.values() for source, count in outcome.sources.items())
        print(line(name, [f"{o.outcome:<10}{o.nodes or '':>6}{o.seconds:>6.1f}" for o in made.values()]) + f"  {sources}", flush=True)
        for exporter, outcome in made.items():
            found[exporter].append(outcome)
            if outcome.outcome != "ok":
                print(textwrap.indent(f"{exporter}: {shortened(outcome.seen, asked.long)}", "    "), flush=True)
    for exporter, outcomes in found.items():
        print(totals(exporter, outcomes))
    return int(any(o.outcome != "ok" for outcomes in found.values() for o in outcomes))


def arguments() -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--names", nargs="+", metavar="NAME", choices=tuple(ARCHITECTURES), help="all of them by default")
    parser.add_argument("--exporters", nargs="+", metavar="NAME", default=["to_onnx"])
    parser.add_argument("--quick", action="store_true", help=f"only {', '.join(QUICK)}")
    parser.add_argument("--limit", type=float, default=LIMIT, metavar="SECONDS", help="for one architecture and one exporter")
    parser.add_argument("--opset", type=int, metavar="VERSION")
    parser.add_argument("--long", action="store_true", help="messages in full")
    return parser.parse_args()


def line(name: str, cells: Sequence[str]) -> str:
    """A name and what each exporter made of it."""
    return "  ".join([f"{name:<{max(map(len, ARCHITECTURES))}}", *cells])


def shortened(message: str, long: bool) -> str:
    """A message, or its first line as far as it fits."""
    return message if long else textwrap.shorten((message.splitlines() or [""])[0], 300, placeholder=" …")


def totals(exporter: str, outcomes: Sequence[Outcome]) -> str:
    """How many are right, nodes and time over all, and which operators took a fallback."""
    right, fallbacks = [o for o in outcomes if o.outcome == "ok"], Counter[str]()
    for outcome in outcomes:
        fallbacks.update(outcome.fallbacks)
    seconds, nodes = sum(o.seconds for o in outcomes), sum(o.nodes for o in right)
    text = f"{exporter}: right: {len(right)} of {len(outcomes)}; {nodes} nodes in these, {seconds:.0f} s in all"
    listed = "".join(f"\n  {op}: {count}" for op, count in fallbacks.most_common())
    return f"{text}\ncalls that took a fallback, over all:{listed}" if fallbacks else text


if __name__ == "__main__":
    sys.exit(main())
