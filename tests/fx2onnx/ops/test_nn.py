"""Convolutions and other layers with weights: right in ONNX Runtime at the export's size and at another."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from inputs import OWN, normal
from modules import Op
from operators import check_both
from torch import nn

from exportlab import verify
from fx2onnx import to_onnx

aten = torch.ops.aten
OPSETS = (18, 26)


def image(*sizes: int) -> torch.Tensor:
    return normal(*(sizes or (2, 3, 7, 8)))


def by_weights(function: Any, *weights: Any, **options: Any) -> Any:
    """The function of its first argument alone, so that the sizes of the weights stay."""
    return lambda x: function(x, *weights, **options)


CONVOLUTIONS = {
    "conv1d": (by_weights(F.conv1d, normal(6, 3, 3), normal(6)), image(2, 3, 7)),
    "conv1d unbatched": (by_weights(F.conv1d, normal(6, 3, 3), padding=1), image(3, 7)),
    "conv2d groups": (by_weights(F.conv2d, normal(6, 1, 3, 2), normal(6), 2, 1, 2, 3), image()),
    "conv2d same": (by_weights(F.conv2d, normal(6, 3, 4, 3), normal(6), padding="same", dilation=(1, 2)), image()),
    "conv3d valid": (by_weights(F.conv3d, normal(6, 2, 3, 2, 2), padding="valid"), normal(1, 2, 5, 6, 4)),
    "conv empty": (by_weights(F.conv1d, normal(6, 3, 3)), image(0, 3, 7)),
    "conv float16": (by_weights(F.conv2d, normal(6, 3, 3, 3).half()), image().half()),
    "transpose1d": (by_weights(F.conv_transpose1d, normal(3, 4, 3), None, 3, 2, 2), image(2, 3, 5)),
    "transpose1d long output padding": (by_weights(F.conv_transpose1d, normal(3, 4, 3), None, 1, 2, 1, 1, 2), image(2, 3, 5)),
    "transpose1d beyond all": (by_weights(F.conv_transpose1d, normal(2, 3, 3), normal(3), 1, 1, 3, 1, 4), image(2, 2, 4)),
    "transpose2d": (by_weights(F.conv_transpose2d, normal(4, 3, 3, 3), normal(6), 2, 1, 1, 2), normal(2, 4, 5, 6)),
    "transpose3d unbatched": (by_weights(F.conv_transpose3d, normal(4, 3, 3, 2, 1), normal(3), (1, 2, 3)), normal(4, 3, 4, 5)),
    "convolution": (by_weights(aten.convolution.default, normal(6, 3, 3, 2), None, [2, 1], [1, 1], [1, 1], False, [0, 0], 1), image()),
    "bilinear": (lambda x: F.bilinear(x, x[..., :2], WEIGHT[:, :, :2], WEIGHT[0, 0, :2].repeat(3)), normal(2, 5, 4)),
    "weight norm": (lambda v: torch._weight_norm(v, MAGNITUDE, 1), normal(3, 4, 2)),
}
WEIGHT, MAGNITUDE = normal(6, 4, 3), normal(1, 4, 1)


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_give_what_eager_gives(name: str) -> None:
    check_both(*CONVOLUTIONS[name], options=OWN)


class Unshrunk(nn.Module):
    """Back to the sizes of another tensor, as the decoder of a U-Net does."""

    def __init__(self, axes: int, kernel: int, stride: int, dilation: int) -> None:
        super().__init__()
        kind = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)[axes - 1]
        self.up = kind(4, 4, kernel, stride=stride, padding=1, dilation=dilation, groups=2)

    def forward(self, x: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        return self.up(x, output_size=like.shape[2:])


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize(("kernel", "stride", "dilation"), [(3, 2, 1), (4, 3, 1), (2, 2, 3)])
def test_a_transposed_convolution_follows_the_size_of_another_tensor(axes: int, kernel: int, stride: int, dilation: int) -> None:
    model = Unshrunk(axes, kernel, stride, dilation).eval()

    def given(size: int, further: int) -> tuple[torch.Tensor, torch.Tensor]:
        long = (size - 1) * stride - 2 + dilation * (kernel - 1) + 1 + further
        return normal(2, 4, *[size] * axes), normal(2, 1, *[long] * axes)

    shapes = tuple({i + 2: f"{name}{i}" for i in range(axes)} for name in ("given", "wanted"))
    program = to_onnx(model, given(5, 0), dynamic_shapes=shapes, capture="torch.export")
    for size, further in product((2, 4, 7), range(stride)):
        torch.testing.assert_close(program(*given(size, further))[0], model(*given(size, further)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float64])
def test_the_number_of_groups_may_move(dtype: torch.dtype) -> None:
    def filtered(x: torch.Tensor, filters: torch.Tensor) -> torch.Tensor:
        flat = x.flatten(0, 1)[None]
        return F.conv2d(flat, filters.flatten(0, 1)[:, None], stride=2, padding=1, groups=flat.shape[1]).unflatten(1, (-1, 2))

    def given(batch: int) -> tuple[torch.Tensor, torch.Tensor]:
        return normal(batch, 2, 6, 7).to(dtype), normal(batch, 2, 3, 3).to(dtype)

    program = to_onnx(Op(filtered), given(2), dynamic_shapes=(({0: "batch"}, {0: "batch"}),), capture="torch.export", fallback=False)
    verify(program, Op(filtered), [given(batch) for batch in (2, 5, 1)]).check()
