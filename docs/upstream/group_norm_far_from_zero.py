"""GroupNormalization of ONNX Runtime on the CPU takes the variance as mean(x²) − mean(x)²: far from zero nothing is left of it."""

import numpy
import onnxruntime
import torch
from onnx import TensorProto, helper

x = 1000 + torch.arange(64.0).reshape(1, 64).sin()
given, result = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 64]) for name in "xy")
scale, bias = (helper.make_tensor(name, TensorProto.FLOAT, [64], numpy.full(64, value, "f")) for name, value in (("s", 1), ("b", 0)))
node = helper.make_node("GroupNormalization", ["x", "s", "b"], ["y"], num_groups=2)
graph = helper.make_graph([node], "graph", [given], [result], initializer=[scale, bias])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
(actual,) = session.run(None, {"x": x.numpy()})
expected = torch.nn.functional.group_norm(x, 2)
print("ONNX Runtime has", actual[0, :3], "and eager has", expected[0, :3].numpy())
torch.testing.assert_close(torch.from_numpy(actual), expected, rtol=1e-3, atol=1e-3)
