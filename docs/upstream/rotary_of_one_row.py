"""torch.onnx.export(opset_version=23) fuses rotary positions of one row, which serve the whole batch, into what ONNX Runtime refuses."""

import onnxruntime
import torch


class Turned(torch.nn.Module):
    def forward(self, x, positions):
        angles = positions[..., None].float() * 10000 ** -(torch.arange(4.0) / 4)
        both = torch.cat([angles, angles], -1)
        half = torch.cat([-x[..., 4:], x[..., :4]], -1)
        return x * both.cos().unsqueeze(1) + half * both.sin().unsqueeze(1)


model, args = Turned(), (torch.randn(2, 3, 5, 8), torch.arange(5)[None])
program = torch.onnx.export(model, args, dynamo=True, opset_version=23, verbose=False)
print("it holds", [node.op_type for node in program.model.graph if node.op_type == "RotaryEmbedding"])
session = onnxruntime.InferenceSession(program.model_proto.SerializeToString(), providers=["CPUExecutionProvider"])
feeds = {value.name: x.numpy() for value, x in zip(session.get_inputs(), args, strict=True)}
(actual,) = session.run(None, feeds)
torch.testing.assert_close(torch.from_numpy(actual), model(*args))
