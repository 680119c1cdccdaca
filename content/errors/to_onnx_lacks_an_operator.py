"""UnsupportedOps: cannot export aten.linalg_eigvalsh.default, raised by `to_onnx`

`to_onnx` looks an operator up in its own table, then in that of torch, then takes its decomposition. It collects all for which there is
nothing, and names the line of your model that called each. Eigenvalues are one such: ONNX has no operator for them, and torch no
decomposition. Factorisations of matrices are the largest gap.
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
    """Write it with operators that there is a translation for. Two by two, eigenvalues have a formula."""
    return export("to_onnx", ByFormula(), SAMPLES[0], dynamic_shapes=ROWS), Axes(), SAMPLES


def eigenvalues(g: Any, x: Any) -> Any:
    a, b, _, d = g.Split(g.Reshape(x, [-1, 4]), axis=1, num_outputs=4, outputs=4)
    middle, apart = g.Mul(g.Add(a, d), 0.5), g.Mul(g.Sub(a, d), 0.5)
    half = g.Sqrt(g.Add(g.Mul(apart, apart), g.Mul(b, b)))
    return g.Concat(g.Sub(middle, half), g.Add(middle, half), axis=1)


def translated() -> Claim:
    """Hand over a translation, a function of the graph and of the arguments. That it is right, here two by two only, is yours to know."""
    table = {torch.ops.aten.linalg_eigvalsh.default: eigenvalues}
    made = export("to_onnx", Axes(), SAMPLES[0], dynamic_shapes=ROWS, custom_translation_table=table)
    return made, Axes(), SAMPLES


def torch_export() -> Claim:
    """Where it need not be ONNX: an exported program calls the operator of torch."""
    return export("torch.export", Axes(), SAMPLES[0], dynamic_shapes=ROWS), Axes(), SAMPLES


ERROR = KnownError(
    stage="translation",
    message=r"UnsupportedOps: cannot export (?:aten|prims)\.[\w.]+",
    breaks=breaks,
    fixes=(Fix("change the model", by_formula), Fix("change the call", translated), Fix("another exporter", torch_export)),
)
