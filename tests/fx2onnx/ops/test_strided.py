"""Views by strides: over a tensor that fills its memory or the end of it, also where its first axis moves; refused over other parts."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from inputs import OWN, normal
from operators import Call, check, check_both, check_further
from torch.export import Dim

from fx2onnx import to_onnx
from fx2onnx.errors import ToOnnxError

X = normal(6, 4)


def test_views_and_copies_by_strides() -> None:
    check_both(lambda x: (x.as_strided((2, 3), (1, 2)), x.as_strided((3, 2, 2), (4, 1, 1), 3), x.as_strided((), (), 5)), X, options=OWN)
    check_both(lambda x: (torch.as_strided_copy(x, (2, 3), (1, 2)), (x + 1).as_strided((5,), (0,), 2)), X, options=OWN)


def test_what_is_written_by_strides() -> None:
    check_both(lambda x, y: torch.as_strided_scatter(x, y, (2, 3), (1, 4), 2), X, normal(2, 3), options=OWN)
    check_both(lambda x, y: torch.as_strided_scatter(x > 0, y > 0, (2, 3), (1, 4)), X, normal(2, 3), options=OWN)


def test_strides_and_sizes_that_follow_a_moving_axis() -> None:
    rows = {0: Dim("rows", min=2)}
    check_further(lambda x: x.as_strided((x.shape[0] - 1, 8), (4, 1), 4 * 0), (X,), (normal(9, 4),), (rows,))
    check_further(lambda x: x.as_strided((x.shape[1], x.shape[0]), (1, x.shape[1])), (X,), (normal(3, 4),), (rows,))


@pytest.mark.parametrize("view", [lambda x: x[1:], lambda x: x.flatten()[5:], lambda x: x[2:][1:]])
def test_strides_over_the_end_of_a_memory(view: Callable[[torch.Tensor], torch.Tensor]) -> None:
    def by_strides(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        shown = view(x.contiguous())
        begin = shown.storage_offset()
        return shown.as_strided((2, 2), (1, 2)), shown.as_strided((3,), (2,), begin + 1), torch.as_strided_copy(shown, (2,), (1,), begin)

    check_further(by_strides, (X,), (normal(9, 4),), ({0: Dim("rows", min=5)},))
    check(by_strides, X)


@pytest.mark.parametrize("moving", [False, True])
@pytest.mark.parametrize("view", [lambda x: x[:-1], lambda x: x.T, lambda x: x[:, :2], lambda x: x[:1].expand(6, 4)])
def test_strides_over_a_part_of_a_memory_are_refused(view: object, moving: bool) -> None:
    call = Call(lambda x: view(x).as_strided((2, 2), (1, 2)), (X,), {})  # type: ignore[operator]
    with pytest.raises(ToOnnxError, match="only a part of its memory"):
        to_onnx(call, (X,), dynamic_shapes=(({0: Dim("rows", min=3)},),) if moving else None)


@pytest.mark.parametrize("copy", [torch.as_strided_copy, lambda x, *given: torch.as_strided_scatter(x, torch.ones(2, 2), *given)])
def test_a_copy_by_strides_is_not_counted_from_the_start_of_a_view(copy: Callable[..., torch.Tensor]) -> None:
    with pytest.raises(ToOnnxError, match="only a part of its memory"):
        to_onnx(Call(lambda x: copy(x[1:-1], (2, 2), (1, 2), 5), (X,), {}), (X,))
