"""Branches and loops that complex numbers pass through: both sides, and as many turns as there are rows."""

from __future__ import annotations

import pytest
import torch
from inputs import normal
from torch import nn

from exportlab import verify
from fx2onnx import to_onnx
from fx2onnx.errors import UnsupportedOps

X = normal(3, 8)


class ByCond(nn.Module):
    """One side returns the double, the other a conjugate; a real result stands beside it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Take one side by the sum."""
        z = torch.fft.fft(x)
        made, size = torch.cond(x.sum() > 0, lambda z: (z * 2, z.abs()), lambda z: (z.conj() + 1, z.abs() - 1), (z,))
        return torch.view_as_real(made) + size.sum()


class ByIf(nn.Module):
    """The same in Python."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Take one side by the sum."""
        z = torch.fft.fft(x)
        return ((z * 2j) if x.sum() > 0 else z.conj()).abs() + z.real


class ByRow(nn.Module):
    """A state of complex numbers, and what it was after each row."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Go over the rows."""
        state, states = torch.zeros(8, dtype=torch.complex64), []
        for row in x:
            state = state * 0.5j + torch.fft.fft(row)
            states.append(state)
        return torch.view_as_real(torch.stack(states)), state.abs()


@pytest.mark.parametrize(("kind", "capture"), [(ByCond, "run"), (ByCond, "torch.export"), (ByIf, "run")])
def test_both_sides(kind: type[nn.Module], capture: str) -> None:
    module = kind().eval()
    program = to_onnx(module, (X,), dynamic_shapes=({0: "rows"},), capture=capture)
    verify(program, module, [(X,), (normal(5, 8).abs(),), (-X.abs(),)]).check()


def test_as_many_turns_as_rows() -> None:
    program = to_onnx(ByRow(), (X,), dynamic_shapes=({0: "rows"},), capture="run")
    assert "Loop" in {node.op_type for node in program.model.graph}
    verify(program, ByRow(), [(X,), (normal(1, 8),), (normal(7, 8),)]).check()


class ByScan(nn.Module):
    """A state of complex numbers in a scan."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Go over the rows."""
        from torch._higher_order_ops.scan import scan

        start = torch.zeros(8, dtype=torch.complex64)
        return scan(lambda state, row: (state * 0.5j + row, state.abs()), start, torch.complex(x, x))[1]


def test_a_scan_is_refused() -> None:
    with pytest.raises(UnsupportedOps, match="scan: complex operands are not supported"):
        to_onnx(ByScan(), (X,))


class Turn(nn.Module):
    """A complex product."""

    def __init__(self) -> None:
        super().__init__()
        self.turn = nn.Parameter(torch.ones(8, dtype=torch.complex64))

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        """Multiply."""
        return z * self.turn


class IterationProxy(nn.Module):
    """A stack of them."""

    def __init__(self) -> None:
        super().__init__()
        self.turns = nn.ModuleList(Turn() for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Apply one after the other."""
        z = torch.fft.fft(x)
        for turn in self.turns:
            z = turn(z)
        return z.abs()


@pytest.mark.parametrize("capture", ["run", "torch.export"])
def test_equal_blocks_of_complex_numbers_are_right(capture: str) -> None:
    program = to_onnx(IterationProxy(), (X,), dynamic_shapes=({0: "rows"},), capture=capture)
    verify(program, IterationProxy(), [(X,), (normal(5, 8),)]).check()


def test_blocks_of_complex_numbers_are_no_functions() -> None:
    program = to_onnx(IterationProxy(), (X,), functions=(Turn,))
    verify(program, IterationProxy(), [(X,)]).check()
    assert set(program.report.not_shared) == {"turns.0", "turns.1", "turns.2"}
