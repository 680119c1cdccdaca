"""torch.onnx.export names the bounds of a clamp after what is clamped: the file of two clamps of one tensor does not load."""

import onnxruntime
import torch


class Clamped(torch.nn.Module):
    def __init__(self):
        super().__init__()
        for name, value in {"a": -1.0, "b": 1.0, "c": -2.0, "d": 2.0}.items():
            self.register_buffer(name, torch.tensor(value))

    def forward(self, x):
        y = x * 2
        return y.clamp(self.a, self.b) + y.clamp(self.c, self.d)


program = torch.onnx.export(Clamped(), (torch.randn(2, 3),), dynamo=True, verbose=False)
print([(node.op_type, [value.name for value in node.inputs]) for node in program.model.graph])
onnxruntime.InferenceSession(program.model_proto.SerializeToString(), providers=["CPUExecutionProvider"])
