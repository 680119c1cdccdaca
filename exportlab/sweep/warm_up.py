"""Warm up exporters before measurements: the first export in a process also imports modules and fills registries and caches."""

from __future__ import annotations

from collections.abc import Iterable

from torch import nn

from ..cases import Declaration, case
from ..exporters import get
from ..specs import integers, tensor
from ..torchvisions import import_torchvision
from ..verification.comparison import run_export_step

FORK_AFTER = {  # exports by these start no threads, so the process can fork after them
    "torch.export", "to_onnx", "dynamo", "torchscript", "openvino", "executorch", "transformers",
}  # fmt: skip


def warmed_up(exporters: Iterable[str], transformers: bool = False) -> None:
    """Export a tiny model with each of these exporters, except those after which the process can't fork. Failed exports are ignored.

    Args:
        transformers: whether to warm up a model of transformers, whose import takes seconds.

    Raises:
        ValueError: an exporter doesn't exist.
    """
    for exporter in FORK_AFTER.intersection(exporters):
        for warming in (perceptron, *((encoder,) if transformers else ())):
            built = warming.build()
            run_export_step(get(exporter), built.module, built.samples[0], built.dynamic_shapes)


@case(dims={"batch": (2,)})
def perceptron() -> Declaration:
    """A multilayer perceptron."""
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), (tensor("batch", 4),)


@case(dims={"batch": (2,), "seq": (3,)})
def encoder() -> Declaration:
    """A model of transformers, which imports torchvision if that is installed."""
    import_torchvision()
    from transformers import BertConfig, BertModel

    config = BertConfig(vocab_size=16, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8)
    return BertModel(config), (integers("batch", "seq"),)
