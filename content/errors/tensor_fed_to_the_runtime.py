"""Input must be a list of dictionaries or a single numpy array for input 'x': a PyTorch tensor passed to ONNX Runtime

`InferenceSession.run` accepts and returns NumPy arrays, not PyTorch tensors. The message is misleading: lists of dictionaries are inputs of
scikit-learn models.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Doubled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


SAMPLES = [(torch.ones(rows, 3),) for rows in (4, 7, 1, 0)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    exported = export("dynamo", Doubled(), SAMPLES[0], dynamic_shapes=ROWS)
    exported.session.run(None, {"x": SAMPLES[0][0]})
    return exported, Doubled(), SAMPLES


def numpy() -> Claim:
    """Pass `x.detach().cpu().numpy()`. `torch.from_numpy` converts the outputs back. On a CPU, neither of them copies."""
    exported = export("dynamo", Doubled(), SAMPLES[0], dynamic_shapes=ROWS)
    exported.session.run(None, {"x": SAMPLES[0][0].detach().cpu().numpy()})
    return exported, Doubled(), SAMPLES


def program() -> Claim:
    """Call the `ONNXProgram` that `torch.onnx.export` returns. It accepts and returns tensors."""
    exported = torch.onnx.export(Doubled(), SAMPLES[0], dynamic_shapes=ROWS, verbose=False)
    exported(*SAMPLES[0])
    return exported, Doubled(), SAMPLES


ERROR = KnownError(
    stage="run",
    message=r"Input must be a list of dictionaries or a single numpy array for input",
    breaks=breaks,
    fixes=(Fix("change the call", numpy), Fix("change the call", program)),
    threads=("microsoft/onnxruntime#6091", "microsoft/onnxruntime#20481", "pytorch/pytorch#98100"),
)
