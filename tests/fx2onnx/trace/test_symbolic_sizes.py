"""Sizes that know their expression, handed to what takes plain integers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from fx2onnx import to_onnx
from fx2onnx.errors import FrozenDimension

ROWS = ({0: "rows"},)


def pairs(of: Callable[..., Tensor], offset: int, more: int = 0) -> Callable[[Tensor], Tensor]:
    """Products of the rows that the indices of a triangle name, which may be larger than there are rows."""

    def products(x: Tensor) -> Tensor:
        first, second = of(x.shape[0] + more, x.shape[0] + more, offset=offset).clamp(max=x.shape[0] - 1)
        return (x[first] * x[second]).sum(1)

    return products


class Does(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


def resynthesised(give: Callable[[Tensor, Tensor, int], Tensor], more: int = 0) -> Callable[[Tensor], Tensor]:
    """Columns as their frequencies give them back, as many samples as there are rows, and some more."""

    def again(x: Tensor) -> Tensor:
        window = torch.hann_window(8)
        frequencies = torch.stft(nn.functional.pad(x.T, (8, 8)), 8, 2, window=window, return_complex=True)
        return give(frequencies, window, x.shape[0] + 16 + more)

    return again


TAKEN: dict[str, Callable[[Tensor], Tensor]] = {
    "linspace": lambda x: x * torch.linspace(0, 1, x.shape[0])[:, None],
    "linspace by keywords": lambda x: x * torch.linspace(0, 1, steps=2 * x.shape[0], dtype=torch.float64, device="cpu")[::2, None],
    "logspace": lambda x: x * torch.logspace(0, 1, x.shape[0])[:, None],
    "one_hot": lambda x: nn.functional.one_hot(torch.arange(x.shape[0]), x.shape[0] + 1),
    "istft": resynthesised(lambda z, window, length: torch.istft(z, 8, 2, window=window, length=length)),
    "istft, as a method": resynthesised(lambda z, window, length: z.istft(8, 2, None, window, True, False, None, length)),
    "istft of more than there is": resynthesised(lambda z, window, length: torch.istft(z, 8, hop_length=2, length=length), more=9),
}


for offset in (-3, -1, 0, 1, 2, 4):
    TAKEN[f"above {offset}"] = pairs(torch.triu_indices, offset)
    TAKEN[f"below {offset}, of larger squares"] = pairs(torch.tril_indices, offset, more=2)


@pytest.mark.parametrize("name", TAKEN)
def test_a_size_that_is_taken_as_an_integer_keeps_its_expression(name: str) -> None:
    model = Does(TAKEN[name])
    program = to_onnx(model, (torch.rand(5, 3),), dynamic_shapes=ROWS, capture="run")
    for rows in (1, 2, 9, 40):
        x = torch.rand(rows, 3)
        torch.testing.assert_close(program(x)[0], model(x), rtol=1e-5, atol=1e-6)


def test_a_size_that_torch_takes_for_a_number_is_refused_at_the_line_of_the_model() -> None:
    with pytest.raises(FrozenDimension, match=r"the constant 5 after .*test_symbolic_sizes\.py:\d+ in "):
        to_onnx(Does(lambda x: x * torch.kaiser_window(x.shape[0])[:, None]), (torch.rand(5, 3),), dynamic_shapes=ROWS, capture="run")
