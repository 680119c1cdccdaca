"""Could not extract specialized integer from data-dependent expression u0: a list index or `range` from a tensor's value

Indexing a list or a `ModuleList`, and `range`, need a Python integer at export time. torch.export only has the symbol `u0`, which can be
any number. Choosing one number would specialise the graph to one layer or one number of iterations, so torch.export raises an error. Write
the index or the loop with operators that the graph can contain: index a tensor, or use a loop operator.
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
    """Stack the weights and index the tensor. A run computes one layer. The layers need the same shapes."""
    return export("dynamo", WeightByNumber(), SAMPLES[0], dynamic_shapes=ROWS), LayerByNumber(), SAMPLES


class AllThenOne(LayerByNumber):
    def forward(self, x: torch.Tensor, number: torch.Tensor) -> torch.Tensor:
        return torch.stack([layer(x) for layer in self.layers])[number]


def all_then_one() -> Claim:
    """Compute all layers and select one. Use this if the layers are too different to stack. The cost is that of all layers."""
    return export("dynamo", AllThenOne(), SAMPLES[0], dynamic_shapes=ROWS), LayerByNumber(), SAMPLES


def to_onnx() -> Claim:
    """Use `to_onnx`. It tests the number once per layer, and writes nested `If` nodes. A run computes one layer. The layers can differ."""
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
    """Use `while_loop` instead of `for … in range(n.item())`. It evaluates the condition at run time, and becomes an ONNX `Loop`."""
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
