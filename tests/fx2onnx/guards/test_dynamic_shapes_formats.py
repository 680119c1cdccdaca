"""What moves, said by tensor or by example: a `ShapesCollection` and `AdditionalInputs`."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.export import AdditionalInputs, ShapesCollection

from exportlab import to_onnx
from fx2onnx.errors import CaptureError


class Sum(nn.Module):
    """Adds all rows of what it is given."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x.sum(0) + y.sum(0)


@pytest.mark.parametrize("capture", ["run", "torch.export"])
def test_shapes_by_tensor_and_by_example_are_taken(capture: str) -> None:
    x, y = torch.randn(4, 3), torch.randn(4, 3)
    by_tensor, by_example = ShapesCollection(), AdditionalInputs()
    by_tensor[x] = by_tensor[y] = {0: "rows"}
    by_example.add((torch.randn(7, 3), torch.randn(7, 3)))
    for shapes in (by_tensor, by_example):
        program = to_onnx(Sum(), (x, y), dynamic_shapes=shapes, capture=capture)
        torch.testing.assert_close(program(x[:2], y[:2])[0], x[:2].sum(0) + y[:2].sum(0))
    with pytest.raises(CaptureError, match="dynamic_shapes, a ShapesCollection, does not match the arguments: Some tensors"):
        to_onnx(Sum(), (x.clone(), y), dynamic_shapes=by_tensor)


class Collecting(nn.Module):
    """Takes a keyword by its name, and others as they come."""

    def forward(self, x: torch.Tensor, **kwargs: torch.Tensor) -> torch.Tensor:
        return x + kwargs["y"] * kwargs.get("z", 2)


@pytest.mark.parametrize("capture", ["run", "torch.export"])
@pytest.mark.parametrize("nested", [True, False])
@pytest.mark.parametrize("given", [("y",), ("y", "z")])
def test_axes_of_further_keywords_by_their_names_alone(given: tuple[str, ...], nested: bool, capture: str) -> None:
    kwargs = {name: torch.randn(2, 3) for name in given}
    asked = {"y": {0: "rows"}, **({"z": {0: "rows"}} if "z" in given else {})}
    shapes = {"x": {0: "rows"}, **({"kwargs": asked} if nested else asked)}
    program = to_onnx(Collecting(), (torch.randn(2, 3),), kwargs=kwargs, dynamic_shapes=shapes, capture=capture)
    longer = {name: torch.randn(5, 3) for name in given}
    x = torch.randn(5, 3)
    torch.testing.assert_close(program(x, **longer)[0], Collecting()(x, **longer))


def test_the_names_that_input_names_gives_are_not_those_of_arguments() -> None:
    with pytest.raises(CaptureError, match=r"dynamic_shapes uses image from input_names. .* argument names of forward instead: input"):
        to_onnx(nn.ReLU(), (torch.randn(2, 3),), dynamic_shapes={"image": {0: "rows"}}, input_names=["image"])
