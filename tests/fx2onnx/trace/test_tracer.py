"""What `contiguous()` returns, a copy or the tensor itself: right where that makes no difference, refused where it does."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from modules import Of
from torch import Tensor, nn

from exportlab import to_onnx
from fx2onnx.trace.refusal import NoFallback, TraceUnsupported

ROWS = ({0: "rows"},)


def copy_kept(x: Tensor) -> Tensor:
    """What a copy is made of is written later."""
    y = x * 1
    kept = y[:, :2].contiguous()
    y.add_(1)
    return kept * 2 + y[:, :2]


def copy_of_a_transposed_kept(x: Tensor) -> Tensor:
    y = (x * 1).T
    kept = y.contiguous()
    y[0] = 5
    return kept.T * y.T


@pytest.mark.parametrize("shapes", [None, ROWS], ids=["static", "moving"])
@pytest.mark.parametrize("function", [copy_kept, copy_of_a_transposed_kept])
def test_a_copy_is_not_taken_for_what_it_was_made_of(function: Callable[[Tensor], Tensor], shapes: object) -> None:
    model, x = Of(function).eval(), torch.rand(3, 4)
    with pytest.raises(TraceUnsupported, match="a tensor is read after a write into its contiguous copy"):
        to_onnx(model, (x,), dynamic_shapes=shapes, capture="run")
    if shapes:  # at one row there is no copy
        with pytest.raises(NoFallback, match="contiguous copy"):
            to_onnx(model, (x,), dynamic_shapes=shapes, capture="auto")
        return
    program = to_onnx(model, (x,), dynamic_shapes=shapes, capture="auto")
    torch.testing.assert_close(program(x)[0], function(x))


def test_a_tensor_that_is_its_own_contiguous_copy_changes_with_it() -> None:
    def both(x: Tensor) -> Tensor:
        y = x * 1
        same = y.contiguous()
        y.add_(1)
        return same * 2

    program, given = to_onnx(Of(both).eval(), (torch.rand(3, 4),), dynamic_shapes=ROWS, capture="run"), torch.rand(7, 4)
    torch.testing.assert_close(program(given)[0], both(given))


def test_a_buffer_that_is_written_as_its_contiguous_copy_is_refused() -> None:
    class Written(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(4))

        def forward(self, x: Tensor) -> Tensor:
            turned = (x * 2).T.contiguous()
            turned.add_(1)  # which is taken where copies are noted as such
            seen = self.seen.contiguous()
            seen.add_(1)
            return turned.T + seen

    with pytest.raises(TraceUnsupported, match=r"the model writes into (seen|a contiguous copy)"):
        to_onnx(Written(), (torch.rand(3, 4),), dynamic_shapes=ROWS, capture="run")
