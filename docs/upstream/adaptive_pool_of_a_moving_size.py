"""adaptive_avg_pool2d over dynamic axes: torch.onnx.export writes a pool with the window of the example's size."""

import onnxruntime
import torch

model = torch.nn.AdaptiveAvgPool2d(3)
program = torch.onnx.export(model, (torch.randn(1, 2, 6, 6),), dynamic_shapes=({2: "height", 3: "width"},))
program.save("model.onnx")
session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
x = torch.randn(1, 2, 9, 9)
(actual,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
print("ONNX Runtime has", actual.shape, "and eager has", tuple(model(x).shape))
torch.testing.assert_close(torch.from_numpy(actual), model(x))
