"""Unsupported input type <class '…'>. Export only supports pytree containers of basic types: a dataclass or a cache as input

The inputs of a graph are tensors. PyTorch can flatten a list or a dict into tensors and rebuild it, but not your own class. This is the
same for a dataclass, a KV cache and a class of another library. Register the class, or flatten the object yourself. A NumPy array raises
the same error; convert it with `torch.from_numpy`. There is a patch for the caches of transformers: {doc}`lesson 309
</tutorials/309_patch_a_real_model>`.
"""

from dataclasses import dataclass

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


@dataclass
class Batch:
    pixels: torch.Tensor
    weights: torch.Tensor


class Weighted(nn.Module):
    def forward(self, batch: Batch) -> torch.Tensor:
        return batch.pixels * batch.weights


def tensors(rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.linspace(-1, 1, rows * 3).reshape(rows, 3), torch.arange(1.0, rows + 1)[:, None]


def breaks() -> Claim:
    samples = [(Batch(*tensors(rows)),) for rows in (4, 7, 1)]
    return export("dynamo", Weighted(), samples[0]), Weighted(), samples


def registered() -> Claim:
    """Register the class with `torch.export.register_dataclass`. Do it once, before you export or run the model. Each field has an entry in
    `dynamic_shapes`.
    """

    @dataclass
    class KnownBatch(Batch):
        pass

    torch.export.register_dataclass(KnownBatch)
    samples = [(KnownBatch(*tensors(rows)),) for rows in (4, 7, 1)]
    shapes = ([{0: "rows"}, {0: "rows"}],)
    return export("dynamo", Weighted(), samples[0], dynamic_shapes=shapes), Weighted(), samples


class ByTensors(nn.Module):
    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, pixels: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        return self.module(Batch(pixels, weights))


def taken_apart() -> Claim:
    """Build the object inside a wrapper module that accepts tensors. You don't have to register the class. The inputs get plain names."""
    samples = [tensors(rows) for rows in (4, 7, 1)]
    program = export("dynamo", ByTensors(Weighted()), samples[0], dynamic_shapes=({0: "rows"}, {0: "rows"}))
    return program, ByTensors(Weighted()), samples


ERROR = KnownError(
    stage="capture",
    message=r"Unsupported input type <class '(?!transformers\.cache_utils\.).*?'>\. Export only supports pytree containers of basic types",
    breaks=breaks,
    fixes=(Fix("change the call", registered), Fix("change the call", taken_apart)),
    threads=("pytorch/pytorch#147400", "pytorch/pytorch#136582"),
    kin=r"Unsupported input type",
    advice="pass tensors, or register the class: torch.export.register_dataclass",
)
