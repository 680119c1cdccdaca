"""LinearPackedParamsBase does not have a field with name '__obj_flatten__': a model quantised by torch.ao.quantization

A quantised layer of `torch.ao.quantization` stores its weight in a C++ object, packed for the kernels of one type of CPU. `torch.export`
has to flatten this object, but the object doesn't implement it. The legacy exporter (`dynamo=False`) fails later, because it doesn't have a
translation for `quantized::linear_dynamic`.
"""

import tempfile
from pathlib import Path

import torch
from onnxruntime.quantization import quantize_dynamic
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export, from_file


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.layer.weight = nn.Parameter(torch.tensor([[127.0, -127.0], [0.0, 127.0]]))
        self.layer.bias = nn.Parameter(torch.ones(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)


EXACT_IN_FEW_BITS = torch.tensor([[0.0, 1.0], [1.0, 1.0]])
SAMPLES = [(EXACT_IN_FEW_BITS.repeat(pairs, 1),) for pairs in (2, 5, 1)]
ROWS = ({0: "rows"},)


def packed() -> nn.Module:
    return torch.ao.quantization.quantize_dynamic(Layer().eval(), {nn.Linear})


def breaks() -> Claim:
    return export("dynamo", packed(), SAMPLES[0], dynamic_shapes=ROWS), packed(), SAMPLES


def unpacked() -> Claim:
    """Copy the rounded weights into ordinary layers, and export those. The inputs are no longer rounded, so compare the result with these
    layers. The output is the same if the inputs need no rounding. The model is as large as before quantisation, and not faster.
    """
    model, small = Layer(), packed().layer
    model.layer.weight = nn.Parameter(small.weight().dequantize())
    model.layer.bias = nn.Parameter(small.bias())
    torch.testing.assert_close(model(EXACT_IN_FEW_BITS), packed()(EXACT_IN_FEW_BITS))
    return export("dynamo", model, SAMPLES[0], dynamic_shapes=ROWS), model, SAMPLES


class RoundingItsInput(Layer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        low, high = x.amin().clamp(max=0), x.amax().clamp(min=0)
        step = torch.where(high > low, (high - low) / 255, 1)
        zero = (-low / step).round()
        return super().forward((((x / step).round() + zero).clamp(0, 255) - zero) * step)


def quantized_afterwards() -> Claim:
    """Export the original model and quantise the ONNX model with ONNX Runtime. It rounds the weights, and the inputs at each call, with its
    own scheme. Each call divides the range of its inputs into 256 steps. If one input is 1000, all inputs below 2 are rounded to 0.
    """
    with tempfile.TemporaryDirectory() as folder:
        large, small = Path(folder) / "large.onnx", Path(folder) / "small.onnx"
        export("dynamo", Layer(), SAMPLES[0], dynamic_shapes=ROWS).save(large)
        quantize_dynamic(large, small)
        return from_file(small, SAMPLES[0], {}, Layer()(*SAMPLES[0])), RoundingItsInput(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"\w+PackedParamsBase .*?does not have a field with name '__obj_flatten__'",
    breaks=breaks,
    fixes=(Fix("change the model", unpacked), Fix("change the call", quantized_afterwards)),
    threads=("pytorch/pytorch#137111", "pytorch/pytorch#152619", "pytorch/pytorch#113817"),
)
