"""What is read of weights alone is a constant, where the file cannot follow them; what sizes or inputs had a part in is refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from modules import Of
from torch import Tensor, nn
from torch.ao.quantization import FakeQuantize

from exportlab import to_onnx, verify
from fx2onnx.errors import CaptureError
from fx2onnx.paths.explore import SETTLED

X = torch.randn(4, 3)
SAMPLES = [(X,), (torch.randn(7, 3),), (X[:1],), (-3 * X.abs(),)]


class Switched(nn.Module):
    """A layer that a buffer switches on, by a scale that is read, too."""

    def __init__(self, on: bool, scale: float = 2.0) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.register_buffer("on", torch.tensor([int(on)], dtype=torch.uint8))
        self.register_buffer("scale", torch.tensor(scale))

    def forward(self, x: Tensor) -> Tensor:
        x = self.linear(x)
        return x * float(self.scale) + int(self.scale * 2) if self.on[0] == 1 else x


def exported(module: nn.Module, **options: Any) -> Any:
    """The file of a module, right at sizes that it never saw and for other values."""
    program = to_onnx(module.eval(), (X,), dynamic_shapes=({0: "batch"},), capture="run", **options)
    verify(program, module, SAMPLES).check()
    return program


@pytest.mark.parametrize("on", [True, False])
def test_a_buffer_that_is_tested_and_read_is_a_constant(on: bool) -> None:
    program = exported(Switched(on))
    assert program.report.branches == ()
    assert [limit.partition(": ")[2] for limit in program.report.limits] == [SETTLED]
    assert [node.op_type for node in program.model.graph] == (["Gemm", "Mul", "Add"] if on else ["Gemm"])


def test_equal_blocks_have_switches_of_their_own() -> None:
    program = exported(nn.Sequential(*(Switched(on, scale) for on, scale in ((True, 2.0), (False, 2.0), (True, 3.0), (True, 2.0)))))
    assert [node.op_type for node in program.model.graph] == ["Gemm", "Mul", "Add", "Gemm", "Gemm", "Mul", "Add", "Gemm", "Mul", "Add"]


def test_a_fake_quantize_that_observes_no_more_is_exported() -> None:
    fake = FakeQuantize(quant_min=0, quant_max=255)
    fake.scale.fill_(0.02)
    fake.zero_point.fill_(120)
    fake.disable_observer()
    exported(nn.Sequential(nn.Linear(3, 3), fake))


class Table(nn.Module):
    """Tests, of a table, a row that sizes decide, or as many rows as there are, or what was added to it."""

    def __init__(self, test: Any) -> None:
        super().__init__()
        self.register_buffer("table", torch.tensor([3.0, -4.0, 2.0, -3.0, 5.0, -9.0, 1.0, 1.0] + [0.0] * 40))
        self.test = test

    def forward(self, x: Tensor) -> Tensor:
        return x * 2 if self.test(self.table, x) else x - 1


TESTS = {
    "as many rows as there are": lambda table, x: table[: x.shape[0]].sum() > 0,
    "a tensor of a size": lambda table, x: torch.full((), x.shape[0]) > 5,
    "what a value was added to": lambda table, x: (table + x.sum()).sum() > 0,
    "a copy that a value was written into": lambda table, x: table.clone().add_(x.sum()).sum() > 0,
    "a copy in whose view a value was written": lambda table, x: written_in_a_view(table, x.sum()).sum() > 0,
    "a copy that a size was written into": lambda table, x: table.clone().add_(x.shape[0] - 5).sum() > 0,
}


def written_in_a_view(table: Tensor, value: Tensor) -> Tensor:
    """A copy of the table, with another first element."""
    copied = table.clone()
    copied[0].copy_(value * 10)
    return copied


@pytest.mark.parametrize("name", TESTS)
def test_what_sizes_or_inputs_decide_is_not_settled(name: str) -> None:
    tested = exported(Table(TESTS[name]))
    assert len(tested.report.branches) == 1
    assert tested.report.limits == ()
    beside_a_number = Table(lambda table, x: TESTS[name](table, x) and float(table[0]) > 1)
    if "value" in name:  # of an input, which is tested both ways as ever
        assert len(exported(beside_a_number).report.branches) == 1
    else:
        with pytest.raises(CaptureError, match="read"):
            exported(beside_a_number)


@pytest.mark.parametrize("read", [lambda table, x: int(table[: x.shape[0]].sum()), lambda table, x: int(x.sum())])
def test_what_they_decide_is_not_read(read: Any) -> None:
    with pytest.raises(CaptureError, match="read"):
        exported(Table(lambda table, x: range(read(table, x))))


def test_random_numbers_are_not_settled() -> None:
    with pytest.raises(CaptureError, match="read"):
        exported(Of(lambda x: x * int(torch.rand(()) * 10)))
