"""UnsupportedOps: cannot export aten.linalg_eigvalsh.default, raised by `to_onnx`

`to_onnx` looks up each operator in its own translations, then in those of `torch.onnx`, and then tries the operator's decomposition. The
error lists all operators for which none of these exist, with the lines of your model that call them. ONNX doesn't have an operator for
eigenvalues, and PyTorch doesn't have a decomposition. Most missing operators are matrix factorisations.
"""

from typing import Any

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Axes(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.eigvalsh(x @ x.mT)


def squares(count: int) -> torch.Tensor:
    return torch.linspace(-1, 2, count * 4).reshape(count, 2, 2).exp()


SAMPLES = [(squares(rows),) for rows in (4, 7, 1)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("to_onnx", Axes(), SAMPLES[0], dynamic_shapes=ROWS), Axes(), SAMPLES


class ByFormula(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a, b, _, d = (x @ x.mT).flatten(1).unbind(1)
        middle, half = (a + d) / 2, torch.sqrt(((a - d) / 2) ** 2 + b**2)
        return torch.stack([middle - half, middle + half], 1)


def by_formula() -> Claim:
    """Write the computation with supported operators. The eigenvalues of a 2×2 matrix have a formula."""
    return export("to_onnx", ByFormula(), SAMPLES[0], dynamic_shapes=ROWS), Axes(), SAMPLES


def eigenvalues(g: Any, x: Any) -> Any:
    a, b, _, d = g.Split(g.Reshape(x, [-1, 4]), axis=1, num_outputs=4, outputs=4)
    middle, apart = g.Mul(g.Add(a, d), 0.5), g.Mul(g.Sub(a, d), 0.5)
    half = g.Sqrt(g.Add(g.Mul(apart, apart), g.Mul(b, b)))
    return g.Concat(g.Sub(middle, half), g.Add(middle, half), axis=1)


def translated() -> Claim:
    """Pass a translation in `custom_translation_table`. It is a function of the graph and the arguments. Check that it is right: this one
    is for 2×2 matrices.
    """
    table = {torch.ops.aten.linalg_eigvalsh.default: eigenvalues}
    made = export("to_onnx", Axes(), SAMPLES[0], dynamic_shapes=ROWS, custom_translation_table=table)
    return made, Axes(), SAMPLES


def torch_export() -> Claim:
    """Use `torch.export` if you don't need ONNX. The exported program calls the PyTorch operator."""
    return export("torch.export", Axes(), SAMPLES[0], dynamic_shapes=ROWS), Axes(), SAMPLES


ERROR = KnownError(
    stage="translation",
    message=r"UnsupportedOps: cannot export (?:aten|prims)\.[\w.]+",
    breaks=breaks,
    fixes=(Fix("change the model", by_formula), Fix("change the call", translated), Fix("another exporter", torch_export)),
)
