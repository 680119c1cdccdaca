"""quantize_dynamic of ONNX Runtime ends in ShapeInferenceError on a Linear that torch.onnx.export wrote."""

import torch
from onnxruntime.quantization import quantize_dynamic

torch.onnx.export(torch.nn.Linear(4, 8), (torch.randn(3, 4),)).save("model.onnx")
quantize_dynamic("model.onnx", "quantised.onnx")
