"""`int()` of a value is a size, as `item()` gives it; a model that asks for its type, or makes a text of it, is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from exportlab import to_onnx
from fx2onnx.errors import CaptureError

SIZES = (1, 2, 3, 5, 7, 16, 17, 31)


class Padding(nn.Module):
    """Says which places of each row are padding, of as many as the longest has."""

    def forward(self, lengths: Tensor) -> Tensor:
        return torch.arange(int(lengths.max()))[None] >= lengths[:, None]


class Doubled(nn.Module):
    """Makes another number of the value, which is no size of anything."""

    def forward(self, lengths: Tensor) -> Tensor:
        return lengths * hash(int(lengths.max()))


class OfBoth(nn.Module):
    """A function of steps and of how many of them each row has."""

    def __init__(self, function: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        return self.function(x, lengths)


def masked(x: Tensor, lengths: Tensor) -> Tensor:
    max_traced_size = int(lengths.max())
    mask = torch.arange(max_traced_size)[None] < lengths[:, None]
    return x[:, :max_traced_size] * mask[..., None]


def cut_then_masked(x: Tensor, lengths: Tensor) -> Tensor:
    max_traced_size = int(lengths.max())
    x = x[:, :max_traced_size]
    return x * (torch.arange(max_traced_size)[None] < lengths[:, None])[..., None]


def masked_within(x: Tensor, lengths: Tensor) -> Tensor:
    max_traced_size = min(int(lengths.max()), x.shape[1])
    return x[:, :max_traced_size] * (torch.arange(max_traced_size)[None] < lengths[:, None])[..., None]


CUT: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "cut": lambda x, lengths: x[:, : int(lengths.max())] * 2,
    "cut and masked": masked,
    "cut, then masked": cut_then_masked,
    "cut and masked within": masked_within,
    "cut by the product": lambda x, lengths: x[:, : int(lengths.max()) * 2] + 1,
    "cut before": lambda x, lengths: x[:, int(lengths.min()) :] + 1,
    "padded": lambda x, lengths: pad(x, (0, 0, 0, int(lengths.max()))),
    "repeated": lambda x, lengths: x.sum(1, keepdim=True).expand(-1, int(lengths.max()), -1) * 2,
}
FAR_SIZE = ("cut", "cut and masked within", "cut by the product", "cut before")  # what clamps at the size
TEXT: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "a text": lambda x, lengths: masked(x, lengths) * (2 if f"{int(lengths.max())}" == "3" else 1),
    "str": lambda x, lengths: masked(x, lengths) * (2 if str(int(lengths.max())) == "3" else 1),
}


def test_int_of_a_value_is_a_size() -> None:
    program = to_onnx(Padding(), (torch.tensor([5, 3]),), dynamic_shapes=({0: "batch"},))
    for lengths in ([7, 3, 1], [1], [4, 9], [2, 2, 2, 2]):
        x = torch.tensor(lengths)
        torch.testing.assert_close(program(x)[0], Padding()(x))


@pytest.mark.parametrize("name", CUT)
def test_what_is_cut_at_a_value_is_as_long_as_that_says(name: str) -> None:
    model = OfBoth(CUT[name])
    axes = {"x": {0: "batch", 1: "steps"}, "lengths": {0: "batch"}}
    program = to_onnx(model, (torch.rand(2, 9, 3), torch.tensor([4, 7])), dynamic_shapes=axes)
    for steps in SIZES:
        inside = [[steps, 1], [1, 1], [max(steps - 1, 1)] * 3]
        for lengths in map(torch.tensor, (*inside, [steps + 4, 2], [0, 0]) if name in FAR_SIZE else inside):
            x = torch.rand(len(lengths), steps, 3)
            torch.testing.assert_close(program(x, lengths)[0], model(x, lengths))


@pytest.mark.parametrize("name", TEXT)
def test_the_text_of_a_value_is_no_constant(name: str) -> None:
    with pytest.raises(CaptureError, match=r"depends on tensor values is converted to text at .*test_int_as_size.py"):
        to_onnx(OfBoth(TEXT[name]), (torch.rand(2, 9, 3), torch.tensor([4, 7])), dynamic_shapes=({0: "batch", 1: "steps"}, {0: "batch"}))


def of_its_type(x: Tensor, lengths: Tensor) -> Tensor:
    return masked(x, lengths) * (2 if type(int(lengths.max())) is int else 1)


def test_the_type_of_a_value_is_not_asked() -> None:
    with pytest.raises(CaptureError) as caught:
        to_onnx(OfBoth(of_its_type), (torch.rand(2, 9, 3), torch.tensor([4, 7])), dynamic_shapes=({0: "batch", 1: "steps"}, {0: "batch"}))
    assert "may check its type" in " ".join(caught.value.__notes__)


def test_what_is_refused_so_as_well_says_what_it_said() -> None:
    with pytest.raises(CaptureError, match="data-dependent"):
        to_onnx(Doubled(), (torch.tensor([5, 3]),), dynamic_shapes=({0: "batch"},))
