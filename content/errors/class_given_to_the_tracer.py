"""Only tuples, lists and Variables are supported as JIT inputs/outputs: a cache or another object as input, with `dynamo=False`

The legacy exporter (`dynamo=False`) traces with TorchScript, which flattens only tuples, lists and dicts. It doesn't accept a
`DynamicCache` or a dataclass, even if the class is registered. With `dynamo=True`, `torch.onnx.export` accepts registered classes.
"Variables" in the message means tensors.
"""

from dataclasses import dataclass

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


@dataclass
class Cache:
    past: torch.Tensor


class Attended(nn.Module):
    def forward(self, x: torch.Tensor, cache: Cache) -> torch.Tensor:
        return torch.cat([cache.past, x]).cumsum(0)[-x.shape[0] :]


def tensors(rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.linspace(-1, 1, rows * 3).reshape(rows, 3), torch.ones(rows + 2, 3)


def breaks() -> Claim:
    samples = [(x, Cache(past)) for x, past in map(tensors, (4, 7))]
    return export("torchscript", Attended(), samples[0]), Attended(), samples


class ByTensors(nn.Module):
    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: torch.Tensor, past: torch.Tensor) -> torch.Tensor:
        return self.module(x, Cache(past))


SAMPLES = [tensors(4), tensors(7), tensors(1)]
MOVING = ({0: "rows"}, {0: "past"})


def by_tensors() -> Claim:
    """Export a wrapper module that accepts tensors and creates the object from them. Past keys and values then have input names."""
    return export("torchscript", ByTensors(Attended()), SAMPLES[0], dynamic_shapes=MOVING), ByTensors(Attended()), SAMPLES


def dynamo() -> Claim:
    """Use `dynamo=True` and register the class, here with `torch.export.register_dataclass`. You can then pass the object itself."""

    @dataclass
    class KnownCache(Cache):
        pass

    torch.export.register_dataclass(KnownCache)
    samples = [(x, KnownCache(past)) for x, past in SAMPLES]
    return export("dynamo", Attended(), samples[0], dynamic_shapes=({0: "rows"}, [{0: "past"}])), Attended(), samples


ERROR = KnownError(
    stage="capture",
    message=r"Only tuples, lists and Variables are supported as JIT inputs/outputs",
    breaks=breaks,
    fixes=(Fix("change the model", by_tensors), Fix("another exporter", dynamo)),
    threads=("pytorch/pytorch#136582", "pytorch/pytorch#29551", "pytorch/pytorch#42391"),
)
