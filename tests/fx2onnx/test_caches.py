"""Caches of transformers among arguments and results, which nobody has told torch how to take apart."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import torch
import transformers
from torch import nn
from torch.utils import _pytree as pytree
from transformers import DynamicCache, EncoderDecoderCache

from content.zoo.tiny import weighted
from exportlab import verify
from fx2onnx import to_onnx
from fx2onnx.caches import caches_known
from fx2onnx.errors import CaptureError, MutationError

pytestmark = pytest.mark.usefixtures("as_if_nobody_had_registered_caches")
SIZES = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 64}
WHISPER = {
    "d_model": 32, "encoder_layers": 1, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "vocab_size": 64, "num_mel_bins": 8, "max_source_positions": 6,
    "max_target_positions": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1,
}  # fmt: skip
KEPT = {0: "batch", 2: "past"}
ROWS, COLUMNS = {0: "batch"}, {0: "batch", 1: "seq"}


def decoder(name: str = "Llama", **further: Any) -> nn.Module:
    config = getattr(transformers, f"{name}Config")(num_key_value_heads=2, **SIZES, **further)
    return weighted(getattr(transformers, f"{name}ForCausalLM")(config)).eval()


def ids(batch: int, length: int) -> torch.Tensor:
    return torch.randint(0, 64, (batch, length))


def past(model: nn.Module, batch: int, length: int) -> DynamicCache:
    cache = DynamicCache(config=model.config)
    for index, layer in enumerate(cache.layers):
        kept = min(length, getattr(layer, "sliding_window", length + 1) - 1)
        cache.update(torch.rand(batch, 2, kept, 8), torch.rand(batch, 2, kept, 8), index)
    return cache


def step(model: nn.Module, batch: int, length: int, before: int) -> dict[str, Any]:
    mask = torch.ones(batch, before + length, dtype=torch.int64)
    return {"input_ids": ids(batch, length), "attention_mask": mask, "past_key_values": past(model, batch, before)}


@pytest.mark.parametrize("capture", ["run", "torch.export"])
@pytest.mark.parametrize("name", ["Llama", "Mistral"])
def test_a_cache_that_a_model_returns_becomes_outputs(name: str, capture: str) -> None:
    model = decoder(name, **({"sliding_window": 4} if name == "Mistral" else {}))
    known = set(pytree.SUPPORTED_NODES)
    program = to_onnx(model, (), kwargs={"input_ids": ids(2, 7)}, dynamic_shapes={"input_ids": COLUMNS}, capture=capture)
    assert len(program.model.graph.outputs) == 5  # logits, keys and values of two layers
    verify(program, model, [((), {"input_ids": ids(2, 7)}), ((), {"input_ids": ids(3, 10)})]).check()
    assert set(pytree.SUPPORTED_NODES) == known


MAMBA2 = {"hidden_size": 32, "num_hidden_layers": 1, "num_heads": 8, "head_dim": 8, "state_size": 8, "n_groups": 2, "chunk_size": 8}
LFM2 = {**SIZES, "num_key_value_heads": 2, "layer_types": ["conv", "full_attention"]}


@pytest.mark.parametrize(
    ("kind", "options", "states"), [(transformers.Mamba2Model, MAMBA2, 2), (transformers.Lfm2Model, LFM2, 3)], ids=["Mamba2", "Lfm2"]
)  # the classes, because their import registers those of their results, which the fixture would undo
def test_a_cache_with_the_states_of_linear_attention_becomes_outputs(kind: Any, options: Any, states: int) -> None:
    model = weighted(kind(kind.config_class(**{**options, "vocab_size": 64}))).eval()
    program = to_onnx(model, (ids(2, 9),), dynamic_shapes=(COLUMNS,), capture="run")
    assert len(program.model.graph.outputs) == 1 + states
    for given in (ids(3, 20), ids(1, 3)):
        with torch.no_grad(), caches_known():
            torch.testing.assert_close(program(given), pytree.tree_leaves(model(given)), rtol=1e-4, atol=1e-4)


def test_a_cache_is_an_argument_and_the_file_is_called_with_one() -> None:
    model = decoder()
    shapes = {"input_ids": COLUMNS, "attention_mask": {0: "batch", 1: "all"}, "past_key_values": [[KEPT, KEPT], [KEPT, KEPT]]}
    program = to_onnx(model, (), kwargs=step(model, 2, 3, 5), dynamic_shapes=shapes)
    names = [value.name for value in program.model.graph.inputs]
    assert names[2:] == [f"past_key_values_{part}_cache_{layer}" for part in ("key", "value") for layer in (0, 1)]
    verify(program, model, [((), step(model, *sizes)) for sizes in ((2, 3, 5), (3, 1, 9), (1, 4, 1))]).check()
    given = step(model, 3, 2, 6)
    with torch.no_grad():
        torch.testing.assert_close(program(**given)[0], model(**step(model, 3, 2, 6) | given).logits, rtol=1e-4, atol=1e-4)


class Collecting(nn.Module):
    """Finds its cache among further keywords, as decoders of transformers 5.24 find `past_key_values`."""

    def forward(self, x: torch.Tensor, **kwargs: Any) -> torch.Tensor:
        keys, values = kwargs["past"].update(x, x + 1, 0)
        return keys.sum(2) * values.mean(2)


@pytest.mark.parametrize("nested", [True, False])
@pytest.mark.parametrize("capture", ["run", "torch.export"])
def test_axes_of_a_cache_among_further_keywords_are_named(capture: str, nested: bool) -> None:
    def given(batch: int, length: int) -> dict[str, Any]:
        cache = DynamicCache()
        cache.update(torch.rand(batch, 2, length, 8), torch.rand(batch, 2, length, 8), 0)
        return {"x": torch.rand(batch, 2, 3, 8), "past": cache}

    named = {"past": [[KEPT], [KEPT]]}
    shapes = {"x": ROWS, **({"kwargs": named} if nested else named)}
    program = to_onnx(Collecting(), (), kwargs=given(2, 5), dynamic_shapes=shapes, capture=capture)
    verify(program, Collecting(), [((), given(*sizes)) for sizes in ((2, 5), (3, 1), (1, 9))]).check()


def test_a_cache_of_an_encoder_and_a_decoder_is_returned() -> None:
    config = transformers.BartConfig(
        d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48,
        decoder_ffn_dim=48, vocab_size=64, max_position_embeddings=64,
    )  # fmt: skip
    model = weighted(transformers.BartModel(config)).eval()
    given = {"input_ids": ids(2, 7), "decoder_input_ids": ids(2, 4)}
    assert isinstance(model(**given).past_key_values, EncoderDecoderCache)
    program = to_onnx(model, (), kwargs=given, dynamic_shapes={"input_ids": COLUMNS, "decoder_input_ids": {0: "batch", 1: "said"}})
    other = {"input_ids": ids(3, 9), "decoder_input_ids": ids(3, 2)}
    verify(program, model, [((), given), ((), other)]).check()


def test_what_stands_for_a_cache_in_dynamic_shapes_is_said() -> None:
    model = decoder()
    pairs = [(KEPT, KEPT), (KEPT, KEPT)]
    with pytest.raises(
        CaptureError, match=r"For past_key_values \(DynamicCache\), pass \[\[keys of each layer\], \[values of each layer\]\]"
    ):
        to_onnx(
            model, (), kwargs=step(model, 2, 3, 5), dynamic_shapes={"input_ids": None, "attention_mask": None, "past_key_values": pairs}
        )


def test_what_stands_for_another_cache_in_dynamic_shapes_is_said() -> None:
    model = transformers.WhisperForConditionalGeneration(transformers.WhisperConfig(**WHISPER)).eval()
    both = EncoderDecoderCache(past(model, 2, 5), past(model, 2, 6))
    given = {"encoder_outputs": (torch.rand(2, 6, 32),), "decoder_input_ids": ids(2, 3), "past_key_values": both}
    shapes = {"encoder_outputs": None, "decoder_input_ids": None, "past_key_values": [[KEPT, KEPT], [KEPT, KEPT]]}
    with pytest.raises(CaptureError, match=r"For past_key_values \(EncoderDecoderCache\), pass a list of 8 entries, one per"):
        to_onnx(model, (), kwargs=given, dynamic_shapes=shapes)


def test_a_cache_is_put_together_without_an_operation() -> None:
    cache = past(decoder("Gemma2", head_dim=8, sliding_window=6), 2, 4)
    assert [type(layer).__name__ for layer in cache.layers] == ["DynamicSlidingWindowLayer", "DynamicLayer"]
    with caches_known():
        leaves, tree = pytree.tree_flatten(cache)
        again = pytree.tree_unflatten(leaves, tree)
    assert [type(layer) for layer in again.layers] == [type(layer) for layer in cache.layers]
    assert [again.layers[0].sliding_window, again.layers[0].cumulative_length, again.get_seq_length(1)] == [6, 4, 4]
    for layer, own in zip(again.layers, cache.layers, strict=True):
        assert layer.keys is own.keys
        assert layer.values is own.values


def test_a_cache_with_a_window_is_an_argument_at_lengths_around_it() -> None:
    model = decoder("Gemma2", head_dim=8, sliding_window=6)

    def stepped(batch: int, length: int, before: int) -> dict[str, Any]:
        places = torch.arange(before, before + length).expand(batch, -1)
        return {**step(model, batch, length, before), "position_ids": places}

    window = [{0: "batch", 2: torch.export.Dim("window", max=5)}, KEPT]
    shapes = {"input_ids": COLUMNS, "attention_mask": {0: "batch", 1: "all"}, "position_ids": COLUMNS, "past_key_values": [window] * 2}
    program = to_onnx(model, (), kwargs=stepped(2, 3, 4), dynamic_shapes=shapes)
    verify(program, model, [((), stepped(*sizes)) for sizes in ((2, 3, 4), (3, 1, 9), (1, 7, 0), (2, 1, 3))]).check()


def test_where_transformers_cannot_import_its_registrations_a_warning_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        sys.modules, "transformers.exporters.exporter_dynamo", None
    )  # an ImportError, as of a torchvision without its binary part
    with pytest.warns(UserWarning, match="caches of transformers are not supported, because its import fails: import of"):
        program = to_onnx(nn.Linear(3, 2), (torch.ones(2, 3),), dynamic_shapes=({0: "rows"},))
    assert program(torch.ones(4, 3))[0].shape == (4, 2)


def static_cache() -> nn.Module:
    from transformers.integrations.executorch import TorchExportableModuleWithStaticCache

    model = decoder()
    model.generation_config.cache_implementation = "static"
    return TorchExportableModuleWithStaticCache(model, batch_size=2, max_cache_len=12).eval()


@pytest.mark.parametrize("lengths", [(3, 3, 3, 3), (3, 1, 1, 4, 2, 1), (12,)])
def test_a_static_cache_in_buffers_goes_from_call_to_call(lengths: tuple[int, ...]) -> None:
    exported, eager = static_cache(), static_cache()
    eager.load_state_dict(exported.state_dict())
    example = {"input_ids": ids(2, 3), "cache_position": torch.arange(3)}
    moving = {"input_ids": {1: "seq"}, "cache_position": {0: "seq"}} if len(set(lengths)) > 1 or lengths == (12,) else None
    program = to_onnx(exported, (), kwargs=example, dynamic_shapes=moving, mutations="outputs")
    state = list(program.report.state.values())
    assert [value.sum().item() for value in state] == [0] * 6
    begin = 0
    for length in lengths:
        tokens, positions = ids(2, length), torch.arange(begin, begin + length)
        with torch.no_grad():
            wanted = eager(input_ids=tokens, cache_position=positions)
        found, *state = program(tokens, positions, *state)
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
        begin += length


@pytest.mark.parametrize("dynamic_shapes", [None, ({0: "rows"},)])
def test_state_of_another_size_after_a_call_is_refused(dynamic_shapes: Any) -> None:
    class Growing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(1, 3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.seen = torch.cat([self.seen, x])
            return self.seen.cumsum(0)

    with pytest.raises(MutationError, match=r"changes seen, whose shape is \(1, 3\) before a call and"):
        to_onnx(Growing(), (torch.rand(4, 3),), dynamic_shapes=dynamic_shapes, mutations="outputs")
