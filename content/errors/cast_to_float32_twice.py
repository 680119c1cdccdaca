"""two nodes with same node name (…_cast_to_fp32_node): `convert_float_to_float16` with a list of nodes or operators to block

ONNX Runtime's `convert_float_to_float16` inserts a `Cast` before each input of a node that stays in float32, and names it after the input
value. A product of a value with itself reads this value twice, so two casts have the same name. Examples are `h * h`, and `square()` in a
model from `to_onnx`. ONNX requires unique names.

The method of the same name on `OnnxModel` has the same bug. Still use the method if several nodes in a row stay in float32. The function
converts back to float16 between them, where numbers that are too large for float16 are lost. {doc}`Lesson 210
</tutorials/210_half_precision>` shows both.
"""

import tempfile
from pathlib import Path

import onnx
import onnxruntime
import torch
from onnxruntime.transformers.float16 import convert_float_to_float16
from onnxruntime.transformers.onnx_model import OnnxModel
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export, from_file


class Energy(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = x.relu()
        return (h * h).mean(-1)


class ByPower(Energy):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.relu().pow(2).mean(-1)


class InHalf(nn.Module):
    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.module(x.float()).half()


SAMPLES = [(torch.tensor([[1.0, -0.5, 0.25, 0.0]]).expand(rows, 4).contiguous(),) for rows in (4, 7, 1)]
ROWS = ({0: "rows"},)
WIDE = ["Mul", "Pow"]


def converted(module: nn.Module) -> onnx.ModelProto:
    with tempfile.TemporaryDirectory() as folder:
        model = onnx.load(export("dynamo", module, SAMPLES[0], dynamic_shapes=ROWS).save(Path(folder) / "model.onnx"))
    return convert_float_to_float16(model, op_block_list=WIDE)


def run(model: onnx.ModelProto) -> Claim:
    OnnxModel(model).topological_sort()
    onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "half.onnx"
        onnx.save(model, path)
        halves = [(x.half(),) for (x,) in SAMPLES]
        return from_file(path, halves[0], {}, InHalf(Energy())(*halves[0])), InHalf(Energy()), halves


def breaks() -> Claim:
    return run(converted(Energy()))


def power() -> Claim:
    """Use `pow(2)` instead of `h * h`. It reads the value once."""
    return run(converted(ByPower()))


def once() -> Claim:
    """Remove the second cast of each name after the conversion. Both compute the same value, and other nodes refer to it by name."""
    model = converted(Energy())
    first = {node.name: node for node in reversed(model.graph.node)}
    kept = [node for node in model.graph.node if first[node.name] is node]
    del model.graph.node[:]
    model.graph.node.extend(kept)
    return run(model)


ERROR = KnownError(
    stage="load",
    message=r"two nodes with same node name \(\w*cast_to_fp32_node\)",
    breaks=breaks,
    fixes=(Fix("change the model", power), Fix("change the call", once)),
    threads=("microsoft/onnxconverter-common#259", "microsoft/onnxruntime#27469", "microsoft/onnxconverter-common#271"),
)
