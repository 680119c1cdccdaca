"""logcumsumexp exported by torch.onnx.export: -inf for what is 104 below the largest element of the row, NaN for a row of -inf."""

import onnxruntime
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x.logcumsumexp(1)


x = torch.tensor([[0.0, 200.0], [-torch.inf, -torch.inf]])
torch.onnx.export(Model(), (x,)).save("model.onnx")
session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
(actual,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
print("ONNX Runtime has", actual.tolist(), "and eager has", Model()(x).tolist())
torch.testing.assert_close(torch.from_numpy(actual), Model()(x))
