"""Input must be a list of dictionaries or a single numpy array for input 'x': ONNX Runtime was fed a torch tensor

`InferenceSession.run` takes arrays of NumPy, and gives arrays back. A tensor of torch is no such thing to it, and the message does not say
so: lists of dictionaries are what models of scikit-learn take.
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
    """Feed `x.detach().cpu().numpy()`; `torch.from_numpy` makes tensors of what comes back. On the processor neither copies."""
    exported = export("dynamo", Doubled(), SAMPLES[0], dynamic_shapes=ROWS)
    exported.session.run(None, {"x": SAMPLES[0][0].detach().cpu().numpy()})
    return exported, Doubled(), SAMPLES


def program() -> Claim:
    """Or call what `torch.onnx.export` returned: an `ONNXProgram` takes tensors and gives tensors."""
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
