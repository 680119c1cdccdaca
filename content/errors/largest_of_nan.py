"""A number where PyTorch returns nan: `max`, `argmax` and `sort` of a row with NaN

PyTorch treats NaN as larger than every number: `max` returns NaN, `argmax` returns its position, and `sort` puts it last. ONNX doesn't
specify how `ReduceMax`, `ArgMax` and `TopK` treat NaN. `torch.onnx.export` writes these operators, and in ONNX Runtime the result depends
on the position of the NaN. A NaN that an earlier layer produced can disappear this way.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Largest(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.max(-1).values


ROWS_WITH_NAN = torch.tensor([[1.0, float("nan"), 5.0], [2.0, 7.0, 1.0], [float("nan"), 0.0, 4.0]])
SAMPLES = [(ROWS_WITH_NAN[:rows],) for rows in (2, 3, 1)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", Largest(), SAMPLES[0], dynamic_shapes=ROWS), Largest(), SAMPLES


class LargestOrNan(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.where(x.isnan().any(-1), torch.nan, x.max(-1).values)


def asked() -> Claim:
    """Replace the result with `torch.where` and `isnan`. ONNX has an operator for `isnan`."""
    return export("dynamo", LargestOrNan(), SAMPLES[0], dynamic_shapes=ROWS), Largest(), SAMPLES


def to_onnx() -> Claim:
    """Use `to_onnx`. It adds the test for NaN."""
    return export("to_onnx", Largest(), SAMPLES[0], dynamic_shapes=ROWS), Largest(), SAMPLES


ERROR = KnownError(
    stage="silent",
    message=r"^export inputs: output\S*\[[\d, ]+\]: -?\d\S* where eager has nan \(\d+ of \d+ elements differ\)\n?",
    check="export inputs",
    breaks=breaks,
    op=r"aten\.(max|argmax|amax|sort|topk)",
    fixes=(Fix("change the model", asked), Fix("another exporter", to_onnx)),
    threads=("onnx/onnx#4716", "microsoft/onnxruntime#10514"),
)
