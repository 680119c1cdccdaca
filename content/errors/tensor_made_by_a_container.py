"""SpecViolationError: Constant tensor lifted_tensor_0 is not in the constants dictionary: a cache or custom container as input

torch.export flattens a custom container before it runs the model, and rebuilds it inside the capture. If rebuilding creates a tensor, this
tensor becomes a constant of the graph. transformers' `DynamicCache` does this: it creates an empty tensor and appends to it.
`run_decompositions` captures the graph again and rebuilds the container again. This creates a second constant, which isn't added to the
constants. For a transformers cache, `exportlab.patches.caches_as_containers` rebuilds it without a new tensor.
"""

from functools import cache

import torch
from torch import nn
from torch.utils import _pytree as pytree

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Past:
    def __init__(self, *seen: torch.Tensor) -> None:
        self.keys = torch.cat([torch.tensor([]).reshape(0, 3), *seen])


class Lean:
    def __init__(self, keys: torch.Tensor) -> None:
        self.keys = keys


def parts(past: Past | Lean) -> tuple[list[torch.Tensor], None]:
    return [past.keys], None


def named_parts(past: Past | Lean) -> tuple[list[tuple[pytree.KeyEntry, torch.Tensor]], None]:
    return [(pytree.GetAttrKey("keys"), past.keys)], None


@cache
def registered() -> None:
    for kind in (Past, Lean):
        pytree.register_pytree_node(kind, parts, lambda keys, _, kind=kind: kind(*keys), flatten_with_keys_fn=named_parts)


class Appended(nn.Module):
    def forward(self, x: torch.Tensor, past: Past | Lean) -> torch.Tensor:
        return torch.cat([past.keys, x])


def samples(kind: type[Past | Lean]) -> list[tuple[torch.Tensor, Past | Lean]]:
    registered()
    return [(torch.ones(rows, 3), kind(torch.linspace(0, 1, seen * 3).reshape(seen, 3))) for rows, seen in ((2, 4), (3, 7), (1, 1))]


MOVING = ({0: "rows"}, [{0: "seen"}])


def breaks() -> Claim:
    return export("dynamo", Appended(), samples(Past)[0], dynamic_shapes=MOVING), Appended(), samples(Past)


def lean() -> Claim:
    """Store the tensors in the container without creating new ones. If you can't change the class, pass a list of tensors and build the
    container in `forward`.
    """
    return export("dynamo", Appended(), samples(Lean)[0], dynamic_shapes=MOVING), Appended(), samples(Lean)


def to_onnx() -> Claim:
    """Use `to_onnx`. It doesn't decompose the graph before the translation, so it captures only once."""
    return export("to_onnx", Appended(), samples(Past)[0], dynamic_shapes=MOVING), Appended(), samples(Past)


ERROR = KnownError(
    stage="decomposition",
    message=r"Constant tensor \w*lifted_tensor_\d+ is not in the constants dictionary",
    breaks=breaks,
    fixes=(Fix("change the model", lean), Fix("another exporter", to_onnx)),
    threads=("pytorch/pytorch#164461", "pytorch/pytorch#185090"),
)
