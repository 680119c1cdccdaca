"""Keywords that a forward does not name may move, too."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from exportlab import Sample, to_onnx, verify
from fx2onnx.errors import CaptureError

X = torch.randn(4, 3)


class Scaled(nn.Module):
    """Everything but the first input by keyword."""

    def forward(self, x: Tensor, **others: Tensor) -> Tensor:
        return x * others["scale"] + others["offset"]


def test_keywords_that_a_forward_does_not_name_may_move() -> None:
    module, others = Scaled(), {"scale": X + 1, "offset": X - 1}
    moving = {0: "batch"}
    program = to_onnx(module, (X,), kwargs=others, dynamic_shapes={"x": moving, "others": {"scale": moving, "offset": moving}})
    seven = torch.randn(7, 3)
    verify(program, module, [Sample((X,), others), Sample((seven,), {"scale": seven + 1, "offset": seven - 1})]).check()
    assert "forward" not in vars(module)


def test_a_keyword_that_cannot_be_a_parameter_is_refused() -> None:
    class Odd(nn.Module):
        def forward(self, x: Tensor, **others: Tensor) -> Tensor:
            return x * others["my scale"]

    with pytest.raises(CaptureError, match=r"cannot name \['my scale'\] in \*\*others"):
        to_onnx(
            Odd(),
            (X,),
            kwargs={"my scale": X},
            dynamic_shapes={"x": {0: "batch"}, "others": {"my scale": {0: "batch"}}},
            capture="torch.export",
        )


def test_a_run_takes_keywords_that_are_no_identifiers() -> None:
    class Odd(nn.Module):
        def forward(self, x: Tensor, **others: Tensor) -> Tensor:
            return x * others["a.b"] + others["a_b"] - others["class"]

    given = {name: torch.rand(3, 2) for name in ("a.b", "a_b", "class")}
    shapes = {"x": {0: "rows"}, "others": {name: {0: "rows"} for name in given}}
    program = to_onnx(Odd(), (torch.rand(3, 2),), kwargs=given, dynamic_shapes=shapes, capture="run")
    assert len({value.name for value in program.model.graph.inputs}) == 4
    x, further = torch.rand(7, 2), {name: torch.rand(7, 2) for name in given}
    torch.testing.assert_close(program(x, **further)[0], Odd()(x, **further))
