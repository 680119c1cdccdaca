"""Exports models of transformers as they are installed, with arguments as PyTorch's documentation writes them, and compares with eager.

usage: outside.py [--only PART] [--fast] [--floor N] [--ratio R]

The weights are tiny and random. Each model is exported with ids alone, with a mask (and token types), or with images. The dynamic
dimensions are given as Dim.DYNAMIC and by name. An export is right when the exported model agrees with eager at three sizes, one row
and one token among them, and with a padded mask. The command prints a line for each export, then the counts and the processor time
relative to torch.export. It exits with 1 when fewer than N exports are right, when any is wrong, or when the processor time is more than
R times torch.export's. The list is not a test set to tune to: it checks that common models keep working.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
import transformers

from fx2onnx import to_onnx

DYNAMIC = torch.export.Dim.DYNAMIC
AT, OTHERS = (2, 9), ((1, 1), (3, 14))  # batch and length of the export, and of the other calls
LETTERS, DETAIL = 99, 140  # of the vocabulary; of an error that is printed

SHARED = {"num_hidden_layers": 2, "num_attention_heads": 4}
TEXT = {**SHARED, "hidden_size": 32, "intermediate_size": 37, "vocab_size": LETTERS, "max_position_embeddings": 64}
DECODER = {**TEXT, "num_key_value_heads": 2, "use_cache": False, "pad_token_id": 0}
SMALL = {"vocab_size": LETTERS, "use_cache": False}

Call = dict[str, torch.Tensor]


class Model(NamedTuple):
    """A class of transformers without its ending, what its calls are like, and the settings of its configuration."""

    name: str
    kind: str
    settings: Mapping[str, Any]

    def build(self) -> torch.nn.Module:
        """Return the model with random weights.

        Raises:
            Exception: this release of transformers cannot build it; the type is the library's choice.
        """
        torch.manual_seed(0)
        config = getattr(transformers, f"{self.name}Config")(**self.settings)
        built: torch.nn.Module = getattr(transformers, f"{self.name}Model")(config).eval()
        return built


HEAD_OF_8 = {**DECODER, "head_dim": 8}
MODELS = (
    *(
        Model(name, "encoder", TEXT)
        for name in ("Bert", "Roberta", "Electra", "XLMRoberta", "Camembert", "Ernie", "MegatronBert", "Nystromformer", "RoFormer")
    ),
    Model("Albert", "encoder", {**TEXT, "embedding_size": 16}),
    Model(
        "DistilBert",
        "masked",
        {"dim": 32, "n_heads": 4, "n_layers": 2, "hidden_dim": 37, "vocab_size": LETTERS, "max_position_embeddings": 64},
    ),
    Model("MPNet", "masked", TEXT),
    *(
        Model(name, "decoder", HEAD_OF_8 if name in ("Qwen3", "Gemma") else DECODER)
        for name in ("Llama", "Qwen2", "Qwen3", "Mistral", "Gemma", "Phi3", "Olmo2", "StableLm", "Cohere", "Granite", "SmolLM3")
    ),
    Model("GPT2", "decoder", {**SMALL, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}),
    Model("GPTNeoX", "decoder", {**TEXT, "use_cache": False}),
    Model("GPTJ", "decoder", {**SMALL, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "rotary_dim": 4}),
    Model(
        "OPT",
        "decoder",
        {**SMALL, **SHARED, "hidden_size": 32, "ffn_dim": 37, "word_embed_proj_dim": 32, "max_position_embeddings": 64},
    ),
    Model(
        "Mamba2",
        "decoder",
        {
            **SMALL,
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_heads": 8,
            "head_dim": 8,
            "state_size": 8,
            "n_groups": 2,
            "chunk_size": 8,
        },
    ),
    Model("T5", "both", {**SMALL, "d_model": 32, "d_kv": 8, "d_ff": 37, "num_layers": 2, "num_heads": 4}),
    Model(
        "Bart",
        "both",
        {
            **SMALL,
            "d_model": 32,
            "encoder_layers": 2,
            "decoder_layers": 2,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
            "encoder_ffn_dim": 37,
            "decoder_ffn_dim": 37,
            "max_position_embeddings": 64,
        },
    ),
    Model("ViT", "image", {**SHARED, "hidden_size": 32, "intermediate_size": 37, "image_size": 32, "patch_size": 8}),
    Model("Dinov2", "image", {**SHARED, "hidden_size": 32, "image_size": 32, "patch_size": 8}),
    Model("ResNet", "image", {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "layer_type": "basic"}),
    Model("ConvNext", "image", {"hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2}),
)


def calls(kind: str, batch: int, length: int, seed: int = 0) -> dict[str, Call]:
    """Return what people pass to a model of this kind, as keyword arguments, by the name of the variant."""
    torch.manual_seed(seed)
    if kind == "image":
        return {"image": {"pixel_values": torch.randn(batch, 3, 32, 32)}}
    ids = torch.randint(1, LETTERS, (batch, length))
    mask = make_padding_mask(batch, length, at_the_left=kind == "decoder")
    masked = {"input_ids": ids, "attention_mask": mask}
    if kind == "both":
        with_mask = {**masked, "decoder_input_ids": ids.clone(), "decoder_attention_mask": torch.ones_like(mask)}
        return {"ids": {"input_ids": ids, "decoder_input_ids": ids.clone()}, "mask": with_mask}
    types = {"types": {**masked, "token_type_ids": torch.zeros_like(ids)}} if kind == "encoder" else {}
    return {"ids": {"input_ids": ids}, "mask": masked, **types}


def make_padding_mask(batch: int, length: int, at_the_left: bool) -> torch.Tensor:
    """Return a mask that hides one token of the last row, where the row has more than two."""
    mask = torch.ones(batch, length, dtype=torch.int64)
    if length > 2:
        mask[-1, 0 if at_the_left else -1] = 0
    return mask


def shapes(call: Call, kind: str, by_name: bool) -> dict[str, dict[int, Any]]:
    """Return the dynamic dimensions of a call: the batch, and the length of a text."""
    names = ("batch",) if kind == "image" else ("batch", "length")
    dims = dict(enumerate(names if by_name else [DYNAMIC] * len(names)))
    return dict.fromkeys(call, dims)


@dataclass(frozen=True)
class Row:
    """One export: its outcome, its processor time and torch.export's, the nodes of its graph, and what was seen.

    Attributes:
        theirs: the seconds of torch.export; None where it refuses the model, or was not run.
    """

    model: str
    variant: str
    dims: str
    outcome: str
    ours: float
    theirs: float | None = None
    nodes: int = 0
    seen: str = ""

    def __str__(self) -> str:
        ratio = f"{self.ours / self.theirs:5.2f}x" if self.theirs else "     -"
        given = f"{self.model:14} {self.variant:6} {self.dims:8}"
        return f"{given} {self.outcome:8} {self.ours:6.2f} s {ratio} {self.nodes:5} nodes  {self.seen}".rstrip()


def export_variant(module: torch.nn.Module, model: Model, variant: str, by_name: bool, theirs: float | None = None) -> Row:
    """Export a model with one variant of its arguments, and compare it with eager."""
    call = calls(model.kind, *AT)[variant]
    named = model.name, variant, "name" if by_name else "dynamic"
    start = time.process_time()
    try:
        program = to_onnx(module, (), kwargs=dict(call), dynamic_shapes=shapes(call, model.kind, by_name))
    except Exception as error:  # noqa: BLE001 - the outcome is that it refuses
        return Row(*named, "refused", time.process_time() - start, theirs, seen=words(error))
    seconds = time.process_time() - start
    outcome, seen = compare_with_eager(program, module, model.kind, variant)
    return Row(*named, outcome, seconds, theirs, len(list(program.model.graph.all_nodes())), seen)


def compare_with_eager(program: Any, module: torch.nn.Module, kind: str, variant: str) -> tuple[str, str]:
    """Return `right`, `narrow` or `wrong`, and what was seen where it is not right."""
    for batch, length in (AT, *OTHERS):
        call = calls(kind, batch, length, seed=length)[variant]
        with torch.no_grad():
            want = first(module(**call)).numpy()
        try:
            got = np.asarray(program(**call)[0])
        except Exception as error:  # noqa: BLE001 - the outcome is that it refuses this size
            return "narrow", f"at {batch}, {length}: {words(error)}"
        if not agrees(got, want, visible(call, batch)):
            off = np.abs(got - want).max() if got.shape == want.shape else "shape"
            return "wrong", f"at {batch}, {length}: {got.shape} off by {off}"
    return "right", ""


def visible(call: Call, batch: int) -> np.ndarray:
    """Return which rows have a token that the mask does not hide."""
    shown: np.ndarray = call.get("attention_mask", torch.ones(batch, 1)).sum(1).numpy() > 0
    return shown


def agrees(got: np.ndarray, want: np.ndarray, rows: np.ndarray) -> bool:
    """Whether these rows are the same up to rounding, which is relative to the largest number that is wanted."""
    scale = max(1e-3, float(np.abs(want).max()))
    return got.shape == want.shape and np.allclose(got[rows], want[rows], rtol=1e-3, atol=1e-4 * scale, equal_nan=True)


def first(result: Any) -> torch.Tensor:
    """Return the first tensor that a model of transformers returns."""
    found: torch.Tensor = result[0] if isinstance(result, tuple) else next(iter(result.values()))
    return found


def words(error: Exception) -> str:
    """Return the type of an error and the beginning of its message, on one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:DETAIL]}"


def seconds_of_torch_export(module: torch.nn.Module, kind: str, variant: str) -> float | None:
    """Return the processor time of torch.export; None where it refuses the model."""
    call = calls(kind, *AT)[variant]
    torch._dynamo.reset()
    start = time.process_time()
    try:
        torch.export.export(module, (), dict(call), dynamic_shapes=shapes(call, kind, by_name=False), strict=False)
    except Exception:  # noqa: BLE001 - which models it refuses is not measured here
        return None
    return time.process_time() - start


def rows_of(model: Model, fast: bool) -> Iterator[Row]:
    """Yield a row for each variant and each way to give the dimensions; with `fast`, of the last variant alone, without torch.export.

    Raises:
        Exception: this release of transformers cannot build the model.
    """
    module = model.build()
    variants = list(calls(model.kind, *AT))
    for variant in variants[-1:] if fast else variants:
        theirs = None if fast else seconds_of_torch_export(module, model.kind, variant)
        for by_name in (False, True):
            yield export_variant(module, model, variant, by_name, theirs)


def all_rows(chosen: Iterable[Model], fast: bool) -> Iterator[Row]:
    """Yield the rows of all models, and print which cannot be built."""
    export_variant(MODELS[0].build(), MODELS[0], "ids", by_name=True)  # what is loaded once is not timed
    for model in chosen:
        try:
            yield from rows_of(model, fast)
        except Exception as error:  # noqa: BLE001 - another release may lack a class; the floor counts it
            print(f"{model.name:14} cannot be built with this transformers: {words(error)}", flush=True)


def ratio_of(rows: Sequence[Row]) -> float | None:
    """Return the processor time of the exports over torch.export's, of those that both export; None where there is none."""
    both = [(row.ours, row.theirs) for row in rows if row.theirs and row.outcome != "refused"]
    return sum(ours for ours, _ in both) / sum(theirs for _, theirs in both) if both else None


def failures(rows: Sequence[Row], floor: int, most: float | None) -> list[str]:
    """Return what is not as it should be, a sentence each."""
    counts, ratio = Counter(row.outcome for row in rows), ratio_of(rows)
    found = []
    if counts["right"] < floor:
        found.append(f"{counts['right']} exports are right, and at least {floor} should be")
    if counts["wrong"]:
        found.append(f"{counts['wrong']} exports are wrong")
    if most and ratio and ratio > most:
        found.append(f"the exports took {ratio:.2f} of torch.export's processor time, and at most {most:g} is allowed")
    return found


def summary(rows: Sequence[Row]) -> str:
    """Return how many exports have which outcome, and their processor time relative to torch.export's."""
    counted, ratio = f"{dict(Counter(row.outcome for row in rows))} of {len(rows)}", ratio_of(rows)
    return f"{counted}; {ratio:.2f} of torch.export's processor time" if ratio else counted


def main() -> int:
    """Export, print, and return 1 where something is not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="models whose name contains this")
    parser.add_argument("--fast", action="store_true", help="no torch.export, and one variant a model")
    parser.add_argument("--floor", type=int, default=0, help="how many exports must be right")
    parser.add_argument("--ratio", type=float, help="the processor time that is allowed, as a multiple of torch.export's")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    torch.set_num_threads(1)
    rows = []
    for row in all_rows([model for model in MODELS if given.only in model.name], given.fast):
        print(row, flush=True)
        rows.append(row)
    failed = failures(rows, given.floor, given.ratio)
    for line in (summary(rows), *(f"outside.py: {line}" for line in failed)):
        print(line)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
