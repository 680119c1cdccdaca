"""Build models whose export is measured, with random weights and samples at several sizes: tiny ones, and a few large ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from ..cases import Built, Declaration, case
from ..specs import integers, ones, tensor

FEW, FEW_WORDS = {"batch": (2, 3)}, {"batch": (2, 3), "seq": (16, 9)}
BATCH, TEXT = {"batch": (2, 3, 1, 8)}, {"batch": (2, 3, 1, 8), "seq": (5, 9, 1, 32)}
SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_attention_heads": 4,
    "vocab_size": 50,
    "max_position_embeddings": 64,
}


class FirstResult(nn.Module):
    """A text model of transformers that returns only its first output."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> Any:
        """Return the first output of the model."""
        return self.model(ids, attention_mask=mask)[0]


class FirstOfImages(FirstResult):
    """An image model of transformers that returns only its first output."""

    def forward(self, images: torch.Tensor) -> Any:  # type: ignore[override]
        """Return the first output of the model."""
        return self.model(images)[0]


def exported(name: str) -> Built:
    """Return a model by name: `MLP`, `convnet`, `BERT(4)` or `Llama(16)` with the number of layers, or a name from `LARGE`.

    Raises:
        KeyError: the name is unknown.
    """
    kind, _, layers = name.rstrip(")").partition("(")
    if name in LARGE:
        return case(dims=FEW_WORDS if LARGE[name] is _large_llama else FEW)(LARGE[name]).build()
    declare = {"MLP": _mlp, "convnet": _convnet, "BERT": _bert, "Llama": _llama}[kind]
    return case(dims=TEXT if layers else BATCH)(lambda: declare(int(layers or 0))).build()


def _mlp(_: int) -> Declaration:
    layers = [module for _ in range(10) for module in (nn.Linear(32, 32), nn.ReLU())]
    return nn.Sequential(*layers), (tensor("batch", 32),)


def _convnet(_: int) -> Declaration:
    first = (nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU())
    second = (nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8), nn.ReLU())
    head = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))
    return nn.Sequential(*first, *second, *head), (tensor("batch", 3, 16, 16),)


def _bert(layers: int) -> Declaration:
    from transformers import BertConfig, BertModel

    model = BertModel(BertConfig(**SIZES, num_hidden_layers=layers))
    return FirstResult(model), (integers("batch", "seq", high=50), ones("batch", "seq"))


def _llama(layers: int) -> Declaration:
    from transformers import LlamaConfig, LlamaForCausalLM

    model = LlamaForCausalLM(LlamaConfig(**SIZES, num_hidden_layers=layers, num_key_value_heads=2, use_cache=False))
    return FirstResult(model), (integers("batch", "seq", high=50), ones("batch", "seq"))


def _resnet() -> Declaration:
    from transformers import ResNetConfig, ResNetModel

    return FirstOfImages(ResNetModel(ResNetConfig())), (tensor("batch", 3, 224, 224),)


def _vit() -> Declaration:
    from transformers import ViTConfig, ViTModel

    return FirstOfImages(ViTModel(ViTConfig())), (tensor("batch", 3, 224, 224),)


def _large_llama() -> Declaration:
    from transformers import LlamaConfig, LlamaModel

    heads: dict[str, Any] = {"num_attention_heads": 32, "num_key_value_heads": 8}
    sizes: dict[str, Any] = {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "vocab_size": 32000}
    model = LlamaModel(LlamaConfig(**sizes, **heads, use_cache=False))
    return FirstResult(model), (integers("batch", "seq", high=50), ones("batch", "seq"))


LARGE: dict[str, Callable[[], Declaration]] = {"ResNet-50": _resnet, "ViT-B": _vit, "Llama of 1 B": _large_llama}
