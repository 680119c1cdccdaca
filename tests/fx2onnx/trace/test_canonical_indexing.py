"""Indexing as it is written gives what torch's own indexing gives, and sets what that sets."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from fx2onnx import to_onnx
from fx2onnx.trace.canonical_indexing import canonical_calls

ROWS, COLUMNS = torch.tensor([1, 0, 1]), torch.tensor([[0], [2]])
MASK = torch.tensor([True, False, True])
INDICES: dict[str, Any] = {
    "a number": 1,
    "a number from the end": (slice(None), -1),
    "everything": slice(None),
    "dots": ...,
    "a slice": (slice(1, None), slice(None, -1)),
    "the whole by its size": (slice(0, 2), slice(0, 3)),
    "steps": (slice(None), slice(None, None, 2)),
    "dots and a slice": (..., slice(1, 3)),
    "a new axis": (None, slice(None), None, 0),
    "a tensor": ROWS,
    "a tensor after dots": (..., COLUMNS),
    "two tensors": (ROWS[:1], slice(None), COLUMNS),
    "a number between": (ROWS, 0, torch.tensor([0, 1, 2])),
    "a slice before a tensor": (slice(0, 1), ROWS),
    "a mask": (slice(None), MASK),
    "a mask of two axes": torch.tensor([[True, False, True], [False, False, True]]),
    "a mask and a slice": (slice(None), MASK, slice(1, None)),
    "a new axis before a tensor": (None, ROWS),
    "a list": ([0, 1], slice(None)),
    "an element": (torch.tensor(1),),
}


@pytest.mark.parametrize("name", INDICES)
def test_indexing_as_written_gives_the_same(name: str) -> None:
    x = torch.arange(24.0).reshape(2, 3, 4)
    with canonical_calls():
        found = x[INDICES[name]]
    torch.testing.assert_close(found, x[INDICES[name]])


@pytest.mark.parametrize("name", INDICES)
@pytest.mark.parametrize("further", [0, 2])
def test_setting_as_written_sets_the_same(name: str, further: int) -> None:
    x = torch.zeros(2, 3, 4)
    shape = x[INDICES[name]].shape
    values: list[Tensor | float] = [3.0, torch.tensor(2.0), torch.rand((1,) * further + tuple(shape))]
    for value in values:
        found, own = x.clone(), x.clone()
        with canonical_calls():
            found[INDICES[name]] = value
        own[INDICES[name]] = value
        torch.testing.assert_close(found, own)


def windows(x: Tensor, side: int) -> Tensor:
    batch, height, width, channels = x.shape
    x = x.view(batch, height // side, side, width // side, side, channels)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, side, side, channels)


def image(parts: Tensor, side: int, height: int, width: int) -> Tensor:
    batch = int(parts.shape[0] / (height * width / side / side))
    x = parts.view(batch, height // side, width // side, side, side, -1)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(batch, height, width, -1)


class InWindows(nn.Module):
    """Pads an image to whole windows and cuts it again, as Swin does: each cut is left out by torch where nothing was padded."""

    def __init__(self, side: int) -> None:
        super().__init__()
        self.side, self.layer = side, nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        height, width = x.shape[1:3]
        x = pad(x, (0, 0, 0, -width % self.side, 0, -height % self.side))
        x = image(self.layer(windows(x, self.side)), self.side, *x.shape[1:3])
        return x[:, :height, :width].contiguous()


@pytest.mark.parametrize("side", [4, 7])
def test_cuts_of_two_axes_that_torch_leaves_out_apart_are_noted_as_written(side: int) -> None:
    model = InWindows(side)
    program = to_onnx(model, (torch.rand(2, 14, 18, 2),), dynamic_shapes=({0: "batch", 1: "height", 2: "width"},), capture="run")
    for batch, height, width in product((1, 3, 16), (1, 2, 3, 7, 16, 31), (1, 5, 17, 28)):
        x = torch.rand(batch, height, width, 2)
        torch.testing.assert_close(program(x)[0], model(x), rtol=1e-4, atol=1e-5)
