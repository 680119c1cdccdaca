"""Random numbers of a generator are refused at the line that draws them, whatever draws and however the model is captured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from modules import Of
from torch import Tensor
from torch.export import Dim

from exportlab import to_onnx
from fx2onnx.errors import CaptureError

X = torch.rand(4, 3)
ROWS = ({0: Dim.DYNAMIC},)
KEPT = torch.Generator()


def made_there(x: Tensor) -> Tensor:
    return x + torch.rand(x.shape, generator=torch.Generator().manual_seed(0))


DRAWS: dict[str, Callable[[Tensor], Tensor]] = {
    "made there": made_there,
    "randn": lambda x: x + torch.randn(x.shape, generator=KEPT),
    "randint": lambda x: x + torch.randint(5, (x.shape[0], 1), generator=KEPT),
    "randperm": lambda x: x[torch.randperm(x.shape[0], generator=KEPT)],
    "normal_": lambda x: x + torch.empty_like(x).normal_(generator=KEPT),
    "bernoulli": lambda x: torch.bernoulli(x, generator=KEPT),
    "multinomial": lambda x: torch.multinomial(x, 2, generator=KEPT),
    "an initialisation": lambda x: x + torch.nn.init.uniform_(torch.empty(3), generator=KEPT),
}


TOLD = r"from a torch.Generator, .* at tests/fx2onnx/trace/test_generators\.py:\d+ in .*: Remove the `generator` argument"


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("shapes", [None, ROWS], ids=["static", "moving"])
@pytest.mark.parametrize("by", ["auto", "run", "torch.export"])
def test_a_generator_is_refused_with_its_line_and_what_to_do(name: str, shapes: Any, by: str) -> None:
    with pytest.raises(CaptureError, match=TOLD) as caught:
        to_onnx(Of(DRAWS[name]), (X,), dynamic_shapes=shapes, capture=by)
    assert not getattr(caught.value, "__notes__", ())


@pytest.mark.parametrize("by", ["run", "torch.export"])
def test_without_a_generator_a_file_draws_numbers_of_its_own(by: str) -> None:
    """It may be given as None, as libraries hand on what they were given."""

    def noisy(x: Tensor) -> Tensor:
        order = torch.randperm(x.shape[0], generator=None)
        whole = torch.randint(2, x.shape, generator=None) + torch.randint(0, 2, x.shape, generator=None)
        return x[order] + torch.rand(x.shape, generator=None) + 0 * torch.randn(x.shape, generator=None) + whole

    program = to_onnx(Of(noisy), (X,), dynamic_shapes=ROWS, capture=by)
    assert program(torch.zeros(1000, 3))[0].mean().item() == pytest.approx(1.5, abs=0.1)
