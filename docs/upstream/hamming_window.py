"""torch.hamming_window exports as the HammingWindow of ONNX, which has another shape: 25/46 and 21/46 for 0.54 and 0.46."""

import onnxruntime
import torch


class Windowed(torch.nn.Module):
    def forward(self, x):
        return x * torch.hamming_window(8)


x = torch.ones(8)
program = torch.onnx.export(Windowed(), (x,), dynamo=True, verbose=False)
session = onnxruntime.InferenceSession(program.model_proto.SerializeToString(), providers=["CPUExecutionProvider"])
(actual,) = session.run(None, {"x": x.numpy()})
print([node.op_type for node in program.model.graph], actual)
torch.testing.assert_close(torch.from_numpy(actual), Windowed()(x))
