"""Unsupported input type <class 'transformers.cache_utils.DynamicCache'>: a language model is given a cache of past keys and values

torch takes lists and dicts apart, and classes that it was told about. transformers tells it of none of its caches, so torch.export refuses
the argument, or the `dynamic_shapes` for it (`associate shape … to non-tensor type`). A cache is no dataclass: `register_dataclass`
refuses it. `patches.for_model` registers it as long as its block runs, and `verify` knows caches without it. More on it in
{doc}`lesson 309 </tutorials/309_patch_a_real_model>`.
"""

from typing import Any

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export
from exportlab.patches import for_model

MOVING = ({0: "batch"}, [[{0: "batch", 2: "past"}], [{0: "batch", 2: "past"}]])


class Attended(nn.Module):
    """One step of an attention with one head, which reads all that came before."""

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
    """Export within `patches.for_model`. In `dynamic_shapes` a cache is a list of the keys of all layers, and one of their values."""
    model, samples = Attended(), [call(*sizes) for sizes in SIZES]
    with for_model(model, samples[0]):
        exported = export("dynamo", model, samples[0], dynamic_shapes=MOVING)
    return exported, model, samples


def ours() -> Claim:
    """`to_onnx` knows the caches of transformers, and takes the same `dynamic_shapes`. No block is needed."""
    samples = [call(*sizes) for sizes in SIZES]
    return export("to_onnx", Attended(), samples[0], dynamic_shapes=MOVING), Attended(), samples


ERROR = KnownError(
    stage="capture",
    message=r"Unsupported input type <class 'transformers\.cache_utils\.\w+'>|to non-tensor type <class 'transformers\.cache_utils\.\w+'>",
    breaks=breaks,
    fixes=(Fix("patch", patched), Fix("another exporter", ours)),
    threads=("pytorch/pytorch#155862", "pytorch/pytorch#136582"),
)
