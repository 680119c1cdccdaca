"""A handful of numbers that were rounded to half precision on the way: a right program is not called wrong because they scatter."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from exportlab import verify
from exportlab.outcomes import Outcome

MOVES = torch.export.Dim.DYNAMIC


class HalfInside(nn.Module):
    """Takes words, computes in float16, and returns three numbers of float32 a row."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.attend = nn.Embedding(20, 16).half(), nn.MultiheadAttention(16, 2, batch_first=True).half()
        self.norm, self.head = nn.LayerNorm(16).half(), nn.Linear(16, 3)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        x = self.words(ids)
        attended, _ = self.attend(x, x, x, key_padding_mask=~mask, need_weights=False)
        shown = mask.unsqueeze(-1).float()
        return self.head((self.norm(x + attended).float() * shown).sum(1) / shown.sum(1).clamp(min=1e-9))


def call(rows: int, length: int) -> tuple[Tensor, Tensor]:
    mask = torch.ones(rows, length, dtype=torch.bool)
    mask[0, length // 2 + 1 :] = False
    return torch.randint(0, 20, (rows, length)), mask


def made(seed: int) -> tuple[nn.Module, list[tuple[Tensor, Tensor]], torch.export.ExportedProgram]:
    torch.manual_seed(seed)
    module, samples = HalfInside().eval(), [call(2, 6), call(3, 17), call(2, 5)]
    return module, samples, torch.export.export(module, samples[0], dynamic_shapes=({0: MOVES, 1: MOVES},) * 2)


@pytest.mark.parametrize("seed", [0, 1, 4, 5, 6, 7])
def test_the_program_of_torch_export_is_right(seed: int) -> None:
    module, samples, program = made(seed)
    assert verify(program, module, samples).outcome is Outcome.OK


@pytest.mark.parametrize("name", ["head.bias", "norm.weight", "attend.in_proj_weight"])
def test_a_changed_weight_is_still_wrong(name: str) -> None:
    _, samples, program = made(0)
    changed, _, _ = made(0)
    weight = changed.get_parameter(name)
    with torch.no_grad():
        weight.flatten()[3 % weight.numel()] += 0.25
    assert verify(program, changed, samples).outcome is Outcome.WRONG
