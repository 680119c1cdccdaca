"""Unsupported input type <class 'transformers.cache_utils.DynamicCache'>: a language model is called with a cache of keys and values

torch.export accepts lists, dicts and registered classes as arguments. transformers doesn't register its caches, so torch.export rejects the
cache, or its `dynamic_shapes` (`associate shape … to non-tensor type`). A cache isn't a dataclass, so `register_dataclass` rejects it too.

`patches.for_model` registers the caches inside its `with` block. `verify` supports them without it. {doc}`Lesson 309
</tutorials/309_patch_a_real_model>` explains how.
"""

from typing import Any

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export
from exportlab.patches import for_model

MOVING = ({0: "batch"}, [[{0: "batch", 2: "past"}], [{0: "batch", 2: "past"}]])


class Attended(nn.Module):
    """One decoding step of attention with one head over all cached keys and values."""

    def forward(self, x: torch.Tensor, cache: Any) -> torch.Tensor:
        keys, values = cache.update(x, x, 0)
        return (x @ keys.mT).softmax(-1) @ values


def call(batch: int, past: int) -> tuple[torch.Tensor, Any]:
    from transformers import DynamicCache

    cache = DynamicCache()
    before = torch.linspace(-1, 1, batch * past * 4).reshape(batch, 1, past, 4)
    cache.update(before, before.cos(), 0)
    return torch.linspace(0, 1, batch * 4).reshape(batch, 1, 1, 4), cache


SIZES = ((2, 3), (3, 5), (1, 1))


def breaks() -> Claim:
    samples = [call(*sizes) for sizes in SIZES]
    return export("dynamo", Attended(), samples[0]), Attended(), samples


def patched() -> Claim:
    """Export within `patches.for_model`. In `dynamic_shapes`, a cache is a list of two lists: the keys of all layers and the values of all
    layers.
    """
    model, samples = Attended(), [call(*sizes) for sizes in SIZES]
    with for_model(model, samples[0]):
        exported = export("dynamo", model, samples[0], dynamic_shapes=MOVING)
    return exported, model, samples


def ours() -> Claim:
    """Use `to_onnx`. It supports the caches of transformers with these `dynamic_shapes`, without a `with` block."""
    samples = [call(*sizes) for sizes in SIZES]
    return export("to_onnx", Attended(), samples[0], dynamic_shapes=MOVING), Attended(), samples


ERROR = KnownError(
    stage="capture",
    message=r"Unsupported input type <class 'transformers\.cache_utils\.\w+'>|to non-tensor type <class 'transformers\.cache_utils\.\w+'>",
    breaks=breaks,
    fixes=(Fix("patch", patched), Fix("another exporter", ours)),
    threads=("pytorch/pytorch#155862", "pytorch/pytorch#136582"),
)
