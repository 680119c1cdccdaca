"""Equal blocks are captured once; what turns out to be no block is captured in the ordinary way."""

from __future__ import annotations

import pytest
import torch
from stacks import ALLOW_GROWN_BUFFERS, Block, Stack, X, exported, stack
from torch import nn

from exportlab import to_onnx, verify


class Writing(Block):
    """Writes into its argument."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return super().forward(x)


class Passing(Block):
    """Returns a view of its argument."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(-1, 8)


class Noting(Block):
    """Changes an attribute of its own, to the same at every call."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.rows = x.shape[0]
        return super().forward(x)


class Note:
    """Something outside that blocks write on."""

    value: torch.Tensor | None = None


class Closing(Block):
    """Reads what the block before it noted, past its arguments."""

    note: Note

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.note.value = super().forward(x) + self.note.value
        return self.note.value * 1


@pytest.mark.parametrize(
    ("kind", "reason"),
    [(Writing, "writes into its arguments"), (Passing, "share memory"), (Noting, "changes its own attributes")],
)
def test_what_turns_out_to_be_no_block_is_captured_in_the_ordinary_way(kind: type, reason: str) -> None:
    class Prepared(Stack):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x * 1)

    model = Prepared([kind() for _ in range(3)]).eval()
    program = to_onnx(model, (X,), dynamic_shapes=({0: "batch"},), functions=(kind,))
    assert reason in program.report.not_shared["blocks.0"]
    assert program.report.shared == {}
    verify(program, model, [(X,), (ALLOW_GROWN_BUFFERS,)]).check()


def test_a_block_that_reads_past_its_arguments_is_not_shared() -> None:
    note = Note()

    class Remembering(Stack):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.note.value = x * 2
            result = super().forward(x)
            self.note.value = None
            return result

    model = Remembering([Closing() for _ in range(3)]).eval()
    for module in (model, *model.blocks):
        module.note = note
    program = to_onnx(model, (X,), dynamic_shapes=({0: "batch"},), functions=(Closing,))
    assert program.report.shared == {}
    assert "not among its arguments" in program.report.not_shared["blocks.0"]
    verify(program, model, [(X,), (ALLOW_GROWN_BUFFERS,)]).check()


def test_arguments_that_differ_are_captured_alone() -> None:
    class Widening(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Linear(8, 8)
            self.blocks = nn.ModuleList(Block() for _ in range(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.blocks[0](self.stem(x))
            x = self.blocks[1](x)
            return self.blocks[2](torch.cat([x, x]))

    report = exported(Widening().eval()).report
    assert report.shared == {"blocks.1": "blocks.0"}
    assert "different shape, dtype or value" in report.not_shared["blocks.2"]


def test_one_block_called_three_times_is_captured_once() -> None:
    block = Block()

    class Again(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.block = block

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.block(self.block(self.block(x)))

    program = exported(Again().eval())
    assert [node.op_type for node in program.model.graph] == ["Block"] * 3


def test_the_model_is_left_as_it_was() -> None:
    model = stack()
    before = [(dict(vars(module)).keys(), type(module)) for module in model.modules()]
    exported(model)
    assert [(dict(vars(module)).keys(), type(module)) for module in model.modules()] == before
