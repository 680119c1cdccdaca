"""SpecViolationError: Constant tensor lifted_tensor_0 is not in the constants dictionary, with a cache or other container as input

A container of yours is taken apart before the model runs and put together inside the capture. If putting it together makes a tensor, as
`DynamicCache` of transformers does (an empty one, to which it appends), that tensor is a constant of the graph. `run_decompositions`
captures the graph again and puts the container together again: there is a second constant, and nobody enters it in the list of constants.
For a cache of transformers, `exportlab.patches.caches_as_containers` puts it together without one.
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
    """Let the container only hold what it is given. Where the class is not yours, pass a list of tensors and build it in `forward`."""
    return export("dynamo", Appended(), samples(Lean)[0], dynamic_shapes=MOVING), Appended(), samples(Lean)


def to_onnx() -> Claim:
    """`to_onnx` decomposes nothing before it translates, so nothing is captured twice."""
    return export("to_onnx", Appended(), samples(Past)[0], dynamic_shapes=MOVING), Appended(), samples(Past)


ERROR = KnownError(
    stage="decomposition",
    message=r"Constant tensor \w*lifted_tensor_\d+ is not in the constants dictionary",
    breaks=breaks,
    fixes=(Fix("change the model", lean), Fix("another exporter", to_onnx)),
    threads=("pytorch/pytorch#164461", "pytorch/pytorch#185090"),
)
