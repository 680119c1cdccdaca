"""A scale_factor that leaves an axis as long as it is: torch copies along it, the Resize of the file moves the pixels."""

import onnxruntime
import torch


class Widened(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.interpolate(x, scale_factor=(1.05, 1.5), mode="bilinear")


x = torch.arange(100.0).sin().reshape(1, 1, 10, 10)
program = torch.onnx.export(Widened(), (x,), dynamo=True, verbose=False)
session = onnxruntime.InferenceSession(program.model_proto.SerializeToString(), providers=["CPUExecutionProvider"])
(actual,) = session.run(None, {"x": x.numpy()})
print("ten rows stay ten rows:", actual.shape)
torch.testing.assert_close(torch.from_numpy(actual), Widened()(x))
