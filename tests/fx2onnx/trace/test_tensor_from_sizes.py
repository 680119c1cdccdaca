"""Tensors of Python's numbers: right where sizes are among them, refused where there are as many as a size, with the line."""

from __future__ import annotations

from collections.abc import Callable

import numpy
import pytest
import torch
from modules import Of
from torch import Tensor
from torch.export import Dim

from exportlab import to_onnx, verify
from fx2onnx.errors import CaptureError, FrozenDimension

X = torch.rand(4, 3)
BOTH = ({0: Dim.DYNAMIC, 1: Dim.DYNAMIC},)
TABLE = [*range(1000)]
AS_LONG: dict[str, Callable[[Tensor], Tensor]] = {
    "a size for each row": lambda x: x.sum() + torch.tensor([x.shape[1] for _ in range(x.shape[0])]),
    "a number for each row": lambda x: x.sum() + torch.tensor([2.0 for _ in range(x.shape[0])]),
    "a list repeated": lambda x: x.sum() + torch.tensor([x.shape[1]] * x.shape[0]),
    "as_tensor": lambda x: x.sum() + torch.as_tensor([0] * x.shape[0]),
    "numbers that count": lambda x: x.sum() + torch.tensor([2 * i for i in range(x.shape[0])]),
    "the first of a table": lambda x: x.sum() + torch.tensor(TABLE[: x.shape[0]]),
    "pairs": lambda x: x.sum() + torch.tensor([[1, x.shape[1]] for _ in range(x.shape[0])]),
    "an array": lambda x: x.sum() + torch.from_numpy(numpy.zeros(x.shape[0])),
}
OTHERWISE: dict[str, Callable[[Tensor], Tensor]] = {
    "full": lambda x: x.sum() + torch.full((x.shape[0],), x.shape[1]),
    "arange": lambda x: x.sum() + torch.arange(0, 2 * x.shape[0], 2),
    "a table": lambda x: x.sum() + torch.tensor(TABLE)[: x.shape[0]],
    "a list that does not follow a size": lambda x: x.sum() + torch.tensor([x.shape[1] for _ in range(3)]),
}


@pytest.mark.parametrize("name", AS_LONG)
@pytest.mark.parametrize("by", ["auto", "run"])
def test_a_list_as_long_as_a_size_is_refused_with_its_line_and_what_to_do(name: str, by: str) -> None:
    told = r"^a tensor is created from a list or an array .* at tests/fx2onnx/trace/test_tensor_from_sizes\.py:\d+ in .*: .*torch.full"
    with pytest.raises(CaptureError, match=told) as caught:
        to_onnx(Of(AS_LONG[name]), (X,), dynamic_shapes=BOTH, capture=by)
    assert not getattr(caught.value, "__notes__", ())


@pytest.mark.parametrize("name", AS_LONG)
def test_torch_export_does_not_take_it_for_a_constant_in_silence(name: str) -> None:
    with pytest.raises(FrozenDimension, match=r'"axis 0 of x" was asked to be dynamic .* tests/.*test_tensor_from_sizes\.py:\d+'):
        to_onnx(Of(AS_LONG[name]), (X,), dynamic_shapes=BOTH, capture="torch.export")


@pytest.mark.parametrize("name", OTHERWISE)
def test_what_is_to_be_done_instead_is_taken(name: str) -> None:
    model = Of(OTHERWISE[name])
    verify(to_onnx(model, (X,), dynamic_shapes=BOTH), model, [(torch.rand(*size),) for size in ((4, 3), (7, 2), (1, 1))]).check()


def test_the_size_may_be_accepted_as_a_constant() -> None:
    model = Of(AS_LONG["a number for each row"])
    program = to_onnx(model, (X,), dynamic_shapes=({0: "rows", 1: "columns"},), accept_ranges=("rows",))
    torch.testing.assert_close(program(torch.ones(4, 5))[0], model(torch.ones(4, 5)))
