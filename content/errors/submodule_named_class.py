"""SyntaxError: invalid syntax (<eval_with_key>): the name of a submodule is a Python keyword, such as `class` or `lambda`

`add_module`, `nn.ModuleDict` and `nn.Sequential` take any name. `torch.export` captures the model, but its graph is Python code that is
written and compiled: there the submodule is `self.class`, which is no Python. The line in the message counts in that code, not in yours.
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
    """Rename the submodule, here to `class_`. Weights that were saved under the old name need their keys renamed."""
    return export("dynamo", Heads("class_", "box"), SAMPLES[0], dynamic_shapes=ROWS), Heads(*MODEL), SAMPLES


def to_onnx() -> Claim:
    """`to_onnx` reads the graph, and never its Python code."""
    return export("to_onnx", Heads(*MODEL), SAMPLES[0], dynamic_shapes=ROWS), Heads(*MODEL), SAMPLES


ERROR = KnownError(
    stage="decomposition",
    message=r"SyntaxError: (invalid syntax|unterminated string literal).*?\(<eval_with_key>\.\d+, line \d+\)",
    breaks=breaks,
    fixes=(Fix("change the model", renamed), Fix("another exporter", to_onnx)),
    threads=("pytorch/pytorch#188538", "pytorch/pytorch#191687"),
)
