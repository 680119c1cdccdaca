"""Expected `mod` to be an instance of `torch.nn.Module`, got <class 'function'>: the export of a function or method

`torch.export` exports the `forward` of a module together with its weights. It doesn't accept a function, a lambda, or a method such as
`model.generate` or `model.encode`. You need a module that calls it.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Autoencoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.inner, self.outer = nn.Linear(3, 2), nn.Linear(2, 3)

    def encode(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x).relu()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.outer(self.encode(x))


SAMPLES = [(torch.linspace(-1, 1, rows * 3).reshape(rows, 3),) for rows in (4, 7, 1)]
ROWS = ({0: "rows"},)


class Encoder(nn.Module):
    def __init__(self, model: Autoencoder) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.model.encode(x)


def breaks() -> Claim:
    return export("dynamo", Autoencoder().encode, SAMPLES[0], dynamic_shapes=ROWS), Encoder(Autoencoder()), SAMPLES


def wrapped() -> Claim:
    """Export a module whose `forward` calls the function. Store the model as an attribute, so that the export finds its weights and their
    names.
    """
    return export("dynamo", Encoder(Autoencoder()), SAMPLES[0], dynamic_shapes=ROWS), Encoder(Autoencoder()), SAMPLES


def forward_replaced() -> Claim:
    """Assign the method to `model.forward` during the export. You don't need another class."""
    model = Autoencoder()
    model.forward = model.encode
    return export("dynamo", model, SAMPLES[0], dynamic_shapes=ROWS), Encoder(Autoencoder()), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"Expected `mod` to be an instance of `torch\.nn\.Module`, got <class '(?:function|method)'>",
    breaks=breaks,
    fixes=(Fix("change the model", wrapped), Fix("change the call", forward_replaced)),
    threads=("pytorch/pytorch#117528", "pytorch/tutorials#3180"),
)
