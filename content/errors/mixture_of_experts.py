"""DispatchError: No ONNX function found for transformers.grouped_mm_fallback: mixture-of-experts models (Mixtral, Qwen3 MoE)

transformers can compute the experts in several ways. The default, `grouped_mm`, sorts the tokens by expert and multiplies group by group.
On a CPU it is a custom operator, registered with `torch.library`, and `torch.onnx.export` doesn't have a translation for it. The older
implementation, `eager`, loops over the experts that the tokens select, which `torch.export` can't capture.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Experts(nn.Module):
    def __init__(self, way: str) -> None:
        from transformers import MixtralConfig
        from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock

        super().__init__()
        torch.manual_seed(0)
        config = MixtralConfig(hidden_size=8, intermediate_size=8, num_local_experts=3, num_experts_per_tok=2)
        config._experts_implementation = way
        self.block = MixtralSparseMoeBlock(config).eval()
        for weight in self.parameters():
            nn.init.normal_(weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.block(x)


SAMPLES = [(torch.linspace(-1, 1, rows * tokens * 8).reshape(rows, tokens, 8).sin(),) for rows, tokens in ((2, 3), (3, 5), (1, 1))]
BOTH = ({0: "rows", 1: "tokens"},)


def breaks() -> Claim:
    return export("dynamo", Experts("grouped_mm"), SAMPLES[0], dynamic_shapes=BOTH), Experts("grouped_mm"), SAMPLES


def batched() -> Claim:
    """Load the model with `experts_implementation="batched_mm"`. It uses one `MatMul`, and copies the weights for each token."""
    return export("dynamo", Experts("batched_mm"), SAMPLES[0], dynamic_shapes=BOTH), Experts("grouped_mm"), SAMPLES


def to_onnx() -> Claim:
    """Use `to_onnx`. It translates `grouped_mm`."""
    return export("to_onnx", Experts("grouped_mm"), SAMPLES[0], dynamic_shapes=BOTH), Experts("grouped_mm"), SAMPLES


ERROR = KnownError(
    stage="translation",
    message=r"No ONNX function found for <OpOverload\(op='transformers\.\w+', overload='\w+'\)>.*? for the real-valued",
    breaks=breaks,
    fixes=(Fix("change the call", batched), Fix("another exporter", to_onnx)),
    threads=("huggingface/transformers#42697", "huggingface/transformers#38518", "huggingface/transformers#46743"),
)
