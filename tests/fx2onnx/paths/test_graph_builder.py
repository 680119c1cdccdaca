"""The graph that one run writes is held against the other runs: what is not the same in each call, and no size says why, is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from modules import Of
from stacks import Block, Stack
from torch import Tensor

from exportlab import to_onnx
from fx2onnx.trace.refusal import TraceUnsupported

ROWS = ({0: "rows"},)
CALLS: list[None] = []  # of which no attribute tells


def calls() -> int:
    """How many calls there were before this one."""
    CALLS.append(None)
    return len(CALLS) - 1


def another_tensor(x: Tensor) -> Tensor:
    one, other = x.sin(), x.cos()
    return (one, other)[calls() % 2] + 1


def last_written(x: Tensor) -> Tensor:
    """Every other call writes, last of all, into what it returns."""
    y = x * 2
    if calls() % 2:
        y.add_(1)
    return y


OTHERS: dict[str, tuple[Callable[[Tensor], Any], str]] = {
    "another tensor": (another_tensor, r"at .*in another_tensor takes a different tensor at other sizes"),
    "one call more, in place": (last_written, "the operators called depend on the sizes: "),
    "another number, of a size": (lambda x: x * (x.shape[0] + calls()), r"aten\.mul\.Tensor takes .*, but .* at other sizes"),
    "another number": (lambda x: x * float(calls()), r"aten\.mul\.Tensor takes .* depending on the sizes"),
    "another constant": (lambda x: x * torch.tensor([calls()]), "differs between runs"),
    "another number returned": (lambda x: (x * 1, float(calls())), "the model returns"),
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("before", [0, 1])
def test_what_changes_from_call_to_call_is_refused(name: str, before: int) -> None:
    CALLS[:] = [None] * before
    function, why = OTHERS[name]
    with pytest.raises(TraceUnsupported, match=why):
        to_onnx(Of(function).eval(), (torch.rand(3, 4),), dynamic_shapes=ROWS, capture="run")


@pytest.mark.parametrize("before", [0, 1])
def test_an_equal_block_that_takes_another_tensor_is_refused(before: int) -> None:
    CALLS[:] = [None] * before

    class Another(Stack):
        def forward(self, x: Tensor) -> Tensor:
            one, other = self.blocks[0](x), x * 3
            return self.blocks[1]((one * 1, other)[calls() % 2])

    with pytest.raises(TraceUnsupported, match="takes a different tensor at other sizes"):
        to_onnx(Another([Block(), Block()]).eval(), (torch.rand(3, 8),), dynamic_shapes=ROWS, capture="run")


@pytest.fixture
def unchanged() -> Iterator[Any]:
    """An operator that returns a copy, of whose sizes torch cannot say anything."""
    library = torch.library.Library("of_no_sizes", "FRAGMENT")
    library.define("unchanged(Tensor x) -> Tensor")
    library.impl("unchanged", lambda x: x.clone(), "CPU")
    yield torch.ops.of_no_sizes.unchanged
    library._destroy()


def test_sizes_of_an_operator_without_a_shape_function_are_not_inferred_from_runs(unchanged: Any) -> None:
    with pytest.raises(TraceUnsupported, match=r"of_no_sizes\.unchanged\.default returns at .* has no fake kernel"):
        to_onnx(Of(lambda x: unchanged(x[:100])).eval(), (torch.rand(3, 4),), dynamic_shapes=ROWS, capture="run")
