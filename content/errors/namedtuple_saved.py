"""Can't serialize TreeSpec of namedtuple class ... because we didn't register a serializated_type_name, in torch.export.save

The capture succeeds; saving fails. A file can't contain a Python class, so torch.export.save writes a registered name for each container
type among the inputs and outputs. torch.export.load looks this name up. A named tuple doesn't have such a name, and neither does a
container that you registered without `serialized_type_name`. `No registered serialization name for <class ...> found` has the same cause.
"""

import io
from functools import cache
from typing import NamedTuple

import torch
from torch import nn
from torch.utils import _pytree as pytree

from exportlab.errors.known import Claim, Fix, KnownError


class Moments(NamedTuple):
    mean: torch.Tensor
    variance: torch.Tensor


class Named(NamedTuple):
    mean: torch.Tensor
    variance: torch.Tensor


class Measured(nn.Module):
    def __init__(self, kind: type[tuple] = Moments) -> None:
        super().__init__()
        self.kind = kind

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return self.kind(x.mean(1), x.var(1))


SAMPLES = [(torch.linspace(-1, 1, rows * 3).reshape(rows, 3),) for rows in (4, 7, 1, 0)]


def saved_and_loaded(model: nn.Module) -> torch.export.ExportedProgram:
    program = torch.export.export(model, SAMPLES[0], dynamic_shapes=({0: torch.export.Dim.AUTO},))
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    return torch.export.load(file)


def breaks() -> Claim:
    return saved_and_loaded(Measured()), Measured(), SAMPLES


class Listed(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(self.model(x))


def listed() -> Claim:
    """Return a plain tuple, list or dict from a wrapper module. These types don't need a name."""
    return saved_and_loaded(Listed(Measured())), Listed(Measured()), SAMPLES


@cache
def registered() -> None:
    pytree._register_namedtuple(Named, serialized_type_name="known_errors.Named")


def named() -> Claim:
    """Register a name for the class before the export. Every program that loads the file has to register it too."""
    registered()
    return saved_and_loaded(Measured(Named)), Measured(Named), SAMPLES


ERROR = KnownError(
    stage="saving",
    message=r"Can't serialize TreeSpec of namedtuple class <class '.*?'>|No registered serialization name for <class '.*?'> found",
    breaks=breaks,
    fixes=(Fix("change the model", listed), Fix("change the call", named)),
    threads=("pytorch/pytorch#123388", "pytorch/pytorch#112428", "pytorch/pytorch#147400"),
)
