"""Only tuples, lists and Variables are supported as JIT inputs/outputs: the older exporter is given a cache or another object

`dynamo=False` is the tracer of TorchScript. It looks into tuples, lists and dicts, and into nothing else: neither into a `DynamicCache`,
nor into a dataclass, whether torch knows them as containers or not. The newer exporter does, once it knows the class. What the message
calls Variables are tensors.
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
    """Export a module around yours that takes the tensors and makes the object of them. So past keys and values get names, too."""
    return export("torchscript", ByTensors(Attended()), SAMPLES[0], dynamic_shapes=MOVING), ByTensors(Attended()), SAMPLES


def dynamo() -> Claim:
    """The newer exporter takes the object itself as soon as the class is a container that torch knows."""

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
