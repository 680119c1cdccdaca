"""ShapeInferenceError: Inferred shape and existing shape differ in dimension 0, raised by `quantize_dynamic` after an export

ONNX Runtime's `quantize_dynamic` replaces each `Gemm` with a `MatMul`, and transposes the weight for it. `torch.onnx.export` records the
shape of each value, including the weights. Now the weight is `[3, 2]`, but its recorded shape is still `[2, 3]`. Shape inference, the next
step, raises an error. A square weight doesn't cause it.

The quantised model rounds each input to one of 256 steps. Therefore each fix is compared with a layer that rounds its input in the same
way.
"""

import tempfile
from pathlib import Path

import onnx
import torch
from onnxruntime.quantization import quantize_dynamic
from onnxruntime.quantization.shape_inference import quant_pre_process
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export, from_file


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([[127.0, 3.0, -8.0], [-127.0, 0.0, 50.0]]))
        self.bias = nn.Parameter(torch.ones(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(x, self.weight, self.bias)


class RoundingItsInput(Layer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        low, high = x.amin().clamp(max=0), x.amax().clamp(min=0)
        step = torch.where(high > low, (high - low) / 255, 1)
        zero = (-low / step).round()
        return super().forward((((x / step).round() + zero).clamp(0, 255) - zero) * step)


EXACT_IN_8_BITS = torch.tensor([[0.0, 255.0, 7.0]])
SAMPLES = [(EXACT_IN_8_BITS.repeat(rows, 1),) for rows in (4, 7, 1)]
ROWS = ({0: "rows"},)


def exported(module: nn.Module) -> onnx.ModelProto:
    with tempfile.TemporaryDirectory() as folder:
        return onnx.load(export("dynamo", module, SAMPLES[0], dynamic_shapes=ROWS).save(Path(folder) / "model.onnx"))


def quantized(model: onnx.ModelProto) -> Claim:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "small.onnx"
        quantize_dynamic(model, path)
        return from_file(path, SAMPLES[0], {}, Layer()(*SAMPLES[0])), RoundingItsInput(), SAMPLES


def breaks() -> Claim:
    return quantized(exported(Layer()))


class AsProduct(Layer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.weight.T + self.bias


def product() -> Claim:
    """Write the layer as `x @ weight.T + bias`. It is exported as `MatMul` and `Add`, so the quantiser doesn't transpose a weight."""
    return quantized(exported(AsProduct()))


def forgetful() -> Claim:
    """Delete the recorded shapes with `del model.graph.value_info[:]`. The quantiser infers them again."""
    model = exported(Layer())
    del model.graph.value_info[:]
    return quantized(model)


def prepared() -> Claim:
    """Preprocess the model with `quant_pre_process`. ONNX Runtime recommends this step. It infers all shapes again, which takes a while for
    a large model.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "prepared.onnx"
        quant_pre_process(exported(Layer()), path)
        return quantized(onnx.load(path))


ERROR = KnownError(
    stage="optimiser",
    message=r"\[ShapeInferenceError\] Inferred shape and existing shape differ in dimension \d+: \(\d+\) vs \(\d+\)",
    breaks=breaks,
    fixes=(Fix("change the model", product), Fix("change the call", prepared), Fix("change the call", forgetful)),
    threads=("microsoft/onnxruntime#25890", "microsoft/onnxruntime#26018", "onnx/onnx#1800"),
)
