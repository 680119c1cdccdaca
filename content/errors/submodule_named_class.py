"""SyntaxError: invalid syntax (<eval_with_key>): the name of a submodule is a Python keyword, such as `class` or `lambda`

`add_module`, `nn.ModuleDict` and `nn.Sequential` accept any name. `torch.export` can capture the model, but its graph is generated and
compiled as Python code. There the submodule is `self.class`, which is a syntax error. The line number in the message refers to the
generated code.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Heads(nn.Module):
    def __init__(self, *names: str) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.heads = nn.ModuleDict({name: nn.Linear(3, 2) for name in names})

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([head(x) for head in self.heads.values()], 1)


MODEL = ("class", "box")
SAMPLES = [(torch.linspace(-1, 1, rows * 3).reshape(rows, 3),) for rows in (4, 7, 1, 0)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", Heads(*MODEL), SAMPLES[0], dynamic_shapes=ROWS), Heads(*MODEL), SAMPLES


def renamed() -> Claim:
    """Rename the submodule, for example to `class_`. If you saved the weights under the old name, rename their keys too."""
    return export("dynamo", Heads("class_", "box"), SAMPLES[0], dynamic_shapes=ROWS), Heads(*MODEL), SAMPLES


def to_onnx() -> Claim:
    """Use `to_onnx`. It reads the graph instead of its Python code."""
    return export("to_onnx", Heads(*MODEL), SAMPLES[0], dynamic_shapes=ROWS), Heads(*MODEL), SAMPLES


ERROR = KnownError(
    stage="decomposition",
    message=r"SyntaxError: (invalid syntax|unterminated string literal).*?\(<eval_with_key>\.\d+, line \d+\)",
    breaks=breaks,
    fixes=(Fix("change the model", renamed), Fix("another exporter", to_onnx)),
    threads=("pytorch/pytorch#188538", "pytorch/pytorch#191687"),
)
