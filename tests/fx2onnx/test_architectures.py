"""Every architecture of the zoo is right at every size when `to_onnx` exports it, without a fallback."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.export import Dim
from transformers import LlamaConfig, LlamaModel

from content import zoo
from exportlab.cases import Case
from exportlab.exporters import get
from exportlab.verification.comparison import attempt, reason
from fx2onnx import to_onnx

ARCHITECTURES = zoo.cases(topic="transformers")
REFUSED = {  # by name: the outcome, and what its message holds
    "longformer": ("capture", "data-dependent"),
    "rwkv": ("capture", '"seq" was asked to be dynamic but is the constant 7'),
    "encodec": ("capture", "data-dependent"),
    "llava": ("capture", '"batch" was asked to be dynamic but is the constant 2'),
    "llama_static_buffers": ("convert", 'mutations="outputs"'),
}
OPTIONS: dict[str, dict[str, Any]] = {"clip": {"accept_ranges": ("seq",)}}  # texts up to the length that it has positions for


@pytest.mark.parametrize("subject", ARCHITECTURES, ids=lambda c: c.name)
def test_an_architecture_is_right_at_every_size_or_refused(subject: Case) -> None:
    made = subject.build()
    found = attempt(get("to_onnx"), made.module, made.samples, made.dynamic_shapes, fallback=False, **OPTIONS.get(subject.name, {}))
    outcome, message = REFUSED.get(subject.name, ("ok", ""))
    assert found.outcome == outcome, found.error or found.report
    assert message in (reason(found.error) if found.error else "")


def test_what_is_said_of_architectures_is_said_of_ones_that_exist() -> None:
    assert {*REFUSED, *OPTIONS} <= {subject.name for subject in ARCHITECTURES}


def test_a_decoder_has_at_most_a_tenth_more_nodes_without_a_mask() -> None:
    """Without a mask, transformers finds the packed sequences of a row from its positions, which it indexes by all rows and columns."""
    sizes = {"hidden_size": 32, "intermediate_size": 37, "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 99}
    model = LlamaModel(LlamaConfig(**sizes, use_cache=False)).eval()
    ids = {"input_ids": torch.ones(2, 9, dtype=torch.int64)}
    masked = {**ids, "attention_mask": torch.ones(2, 9, dtype=torch.int64)}
    without, with_mask = (
        len(to_onnx(model, kwargs=call, dynamic_shapes={name: {0: Dim.DYNAMIC, 1: Dim.DYNAMIC} for name in call}).model.graph)
        for call in (ids, masked)
    )
    assert without <= 1.1 * with_mask
