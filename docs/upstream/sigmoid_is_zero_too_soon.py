"""Sigmoid of ONNX Runtime, in float32 on the CPU, gives 0 from -18 down, where PyTorch gives 1.5e-8: its logarithm is -inf."""

import numpy
import onnxruntime
import torch
from onnx import TensorProto, helper

x = numpy.array([-5.0, 5.0, -20.0], dtype=numpy.float32)
value, result = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in "xy")
nodes = [helper.make_node("Sigmoid", ["x"], ["s"]), helper.make_node("Log", ["s"], ["y"])]
model = helper.make_model(helper.make_graph(nodes, "graph", [value], [result]), opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
(actual,) = session.run(None, {"x": x})
expected = torch.from_numpy(x).sigmoid().log()
print("ONNX Runtime has", actual, "and eager has", expected.numpy())
torch.testing.assert_close(torch.from_numpy(actual), expected, rtol=1e-4, atol=1e-4)
