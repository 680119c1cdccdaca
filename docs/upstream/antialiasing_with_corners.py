"""interpolate with antialias=True and align_corners=True: torch.onnx.export writes a Resize that steps otherwise than torch."""

import onnxruntime
import torch


class Smaller(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.interpolate(x, (2, 2), mode="bilinear", antialias=True, align_corners=True)


x = torch.arange(16.0).reshape(1, 1, 4, 4)
program = torch.onnx.export(Smaller(), (x,))
program.save("model.onnx")
session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
(actual,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
print("ONNX Runtime has", actual.tolist(), "and eager has", Smaller()(x).tolist())
torch.testing.assert_close(torch.from_numpy(actual), Smaller()(x))
