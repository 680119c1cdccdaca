"""nn.GRU with the time in front: torch.onnx.export writes the length of the example into the shape of the output."""

import onnxruntime
import torch

model = torch.nn.GRU(4, 5).eval()
program = torch.onnx.export(model, (torch.randn(6, 2, 4),), dynamic_shapes=({0: "time", 1: "batch"},))
program.save("model.onnx")
session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
x = torch.randn(9, 2, 4)
actual, _ = session.run(None, {session.get_inputs()[0].name: x.numpy()})
expected, _ = model(x)
print("ONNX Runtime has", actual.shape, "and eager has", tuple(expected.shape))
torch.testing.assert_close(torch.from_numpy(actual), expected)
