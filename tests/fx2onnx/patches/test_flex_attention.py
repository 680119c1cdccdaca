"""FlexAttention is right at sizes that the export never saw, whatever its functions do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from modules import Of
from torch import Tensor, nn
from torch.export import Dim
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from exportlab import to_onnx, verify
from fx2onnx.errors import UnsupportedOps

SHAPES = ({0: Dim.DYNAMIC, 2: Dim.DYNAMIC},)
SIZES = ((2, 5), (3, 9), (1, 1))
BIAS = torch.randn(2, 40)

NEEDS_INDICES = pytest.mark.skipif(torch.__version__ < "2.11", reason="torch 2.10 reads batched positions as numbers, so this is refused")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def heads(batch: int, length: int) -> Tensor:
    return torch.randn(batch, 2, length, 4, generator=torch.Generator().manual_seed(batch))


def of_documents(x: Tensor) -> Any:
    """Attention to what stands before in the same run of positions; these are read by two indices, one after the other."""
    run, length = torch.arange(x.shape[2]).expand(x.shape[0], -1) // 3, x.shape[2]
    mask = create_block_mask(lambda b, h, q, k: (q >= k) & (run[b][q] == run[b][k]), x.shape[0], None, length, length, device="cpu")
    return flex_attention(x, x, x, block_mask=mask)


def biased(x: Tensor) -> Any:
    """Attention of two heads to one, with a bias by heads and distances, and the sums of the scores."""

    def moved(score: Tensor, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return score + BIAS[h, q - k + 20]

    return flex_attention(x, x[:, :1], x[:, :1], score_mod=moved, scale=0.5, enable_gqa=True, return_lse=True)


MODELS: dict[str, Callable[[Tensor], Any]] = {"of documents": of_documents, "biased": biased}


@NEEDS_INDICES
@pytest.mark.parametrize("name", MODELS)
def test_its_functions_are_followed(name: str) -> None:
    model = Of(MODELS[name])
    program = to_onnx(model, (heads(*SIZES[0]),), dynamic_shapes=SHAPES)
    verify(program, model, [(heads(*size),) for size in SIZES]).check()


class Projected(nn.Module):
    """Attention to what weights make, which require gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return flex_attention(self.layer(x), x, x)


@NEEDS_INDICES
def test_weights_may_require_gradients() -> None:
    model, x = Projected(), heads(3, 7)
    program = to_onnx(model, (heads(*SIZES[0]),), dynamic_shapes=SHAPES)
    with torch.no_grad():
        torch.testing.assert_close(program(x)[0], model(x), rtol=1e-4, atol=1e-5)


def test_a_program_that_keeps_it_whole_is_refused_with_its_line_and_what_to_do() -> None:
    program = torch.export.export(Projected().requires_grad_(False), (heads(*SIZES[0]),), strict=False)
    told = r"its arguments are functions, .*Pass the module.*\n.*called at tests/fx2onnx/patches/test_flex_attention.py:\d+ in forward"
    with pytest.raises(UnsupportedOps, match=told):
        to_onnx(program)
