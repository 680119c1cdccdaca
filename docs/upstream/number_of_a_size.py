"""A number that follows a dynamic axis and that an operator takes plain stays as it is in the example, without a message."""

import onnxruntime
import torch


class HalvesOfTheHeight(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.avg_pool2d(x, (x.shape[2] // 2, 1))


example, x = torch.randn(1, 2, 8, 3), torch.randn(1, 2, 12, 3)
program = torch.onnx.export(HalvesOfTheHeight(), (example,), dynamic_shapes=({2: "height"},), dynamo=True, verbose=False)
session = onnxruntime.InferenceSession(program.model_proto.SerializeToString(), providers=["CPUExecutionProvider"])
(actual,) = session.run(None, {"x": x.numpy()})
print("ONNX Runtime has", actual.shape, "and eager has", tuple(HalvesOfTheHeight()(x).shape))
torch.testing.assert_close(torch.from_numpy(actual), HalvesOfTheHeight()(x))
