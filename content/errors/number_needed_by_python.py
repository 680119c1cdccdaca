"""Could not extract specialized integer from data-dependent expression u0: a list index, `range` or `len` uses a number from a tensor

A list, a `ModuleList` and `range` are Python's: they need a number, now. The capture has only `u0`, which stands for any. It could
choose one, and the graph would hold that layer or that many turns for ever; so it refuses. What is indexed or repeated has to be
something that the graph knows: a tensor, or a loop operator.
"""

import torch
from torch import nn
from torch._higher_order_ops.while_loop import while_loop

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class LayerByNumber(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(4))

    def forward(self, x: torch.Tensor, number: torch.Tensor) -> torch.Tensor:
        return self.layers[int(number)](x)


SAMPLES = [(torch.ones(4, 3), torch.tensor(2)), (torch.ones(7, 3) / 2, torch.tensor(0)), (-torch.ones(1, 3), torch.tensor(3))]
ROWS = ({0: "rows"}, None)


def breaks() -> Claim:
    return export("dynamo", LayerByNumber(), SAMPLES[0], dynamic_shapes=ROWS), LayerByNumber(), SAMPLES


class WeightByNumber(LayerByNumber):
    def forward(self, x: torch.Tensor, number: torch.Tensor) -> torch.Tensor:
        weights = torch.stack([layer.weight for layer in self.layers])
        biases = torch.stack([layer.bias for layer in self.layers])
        return nn.functional.linear(x, weights[number], biases[number])


def stacked() -> Claim:
    """Stack what the list holds, and index the tensor: a run computes one layer. The layers have to be alike."""
    return export("dynamo", WeightByNumber(), SAMPLES[0], dynamic_shapes=ROWS), LayerByNumber(), SAMPLES


class AllThenOne(LayerByNumber):
    def forward(self, x: torch.Tensor, number: torch.Tensor) -> torch.Tensor:
        return torch.stack([layer(x) for layer in self.layers])[number]


def all_then_one() -> Claim:
    """Where the layers differ too much to be stacked, compute all and pick one. It costs all of them."""
    return export("dynamo", AllThenOne(), SAMPLES[0], dynamic_shapes=ROWS), LayerByNumber(), SAMPLES


def to_onnx() -> Claim:
    """`to_onnx` tests the number once for each layer of the list: nested `If`s, of which a run computes one layer. They may differ."""
    return export("to_onnx", LayerByNumber(), SAMPLES[0], dynamic_shapes=ROWS), LayerByNumber(), SAMPLES


class Repeated(nn.Module):
    def forward(self, x: torch.Tensor, times: torch.Tensor) -> torch.Tensor:
        for _ in range(times.item()):
            x = x / 2 + 1
        return x


class RepeatedByOperator(nn.Module):
    def forward(self, x: torch.Tensor, times: torch.Tensor) -> torch.Tensor:
        start = (torch.zeros_like(times), x)
        return while_loop(lambda i, x: i < times, lambda i, x: (i + 1, x / 2 + 1), start)[1]


def loop_operator() -> Claim:
    """Where it was `for … in range(n.item())`: `while_loop` asks at run time, and becomes a `Loop`."""
    return export("dynamo", RepeatedByOperator(), SAMPLES[0], dynamic_shapes=ROWS), Repeated(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"Could not extract specialized integer from data-dependent expression \S*u\d+",
    op=r"\brange\(|\blen\(|\[",
    breaks=breaks,
    fixes=(
        Fix("change the model", stacked),
        Fix("change the model", all_then_one),
        Fix("change the model", loop_operator),
        Fix("another exporter", to_onnx),
    ),
    threads=("pytorch/pytorch#182345", "pytorch/pytorch#138116", "huggingface/transformers#34390"),
)
