"""What a module decides by values is noted with its line, and told where no sample changes it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.utils import _pytree as pytree

from exportlab import Sample, export, verify
from exportlab.outcomes import Outcome
from exportlab.verification.check_spec import CheckSpec
from exportlab.verification.conditions import Conditions, describe_site
from exportlab.verification.decision_coverage import cover_decisions


class Decides(nn.Module):
    """By a condition, a mask that fills, and a mask that is multiplied."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:  # a condition
            x = x + 1
        y = x.masked_fill(x > 5, 0.0)  # a mask
        return y * (x.cumsum(0) < 100)  # a mask that is multiplied


def lines_of(conditions: Conditions) -> list[str]:
    return [describe_site(*same) for same in conditions.never_changed().items()]


def test_what_no_sample_changes_is_told_with_its_line() -> None:
    conditions = Conditions()
    conditions.watch(Decides(), (Sample((torch.ones(3),)),))
    found = lines_of(conditions)
    assert len(found) == 3
    assert "the condition at test_conditions.py:" in found[0]
    assert "`if x.sum() > 0:  # a condition` was True every time" in found[0]
    assert found[1].startswith("no sample reaches the mask at test_conditions.py:")
    assert found[2].endswith("is true everywhere in each sample")


def test_what_changes_is_not() -> None:
    conditions = Conditions()
    for x in (torch.tensor([-1.0, 0.0]), torch.tensor([9.0, 1.0]), torch.tensor([1000.0])):
        conditions.watch(Decides(), (Sample((x,)),))
    assert lines_of(conditions) == []
    assert len(conditions.seen) == 3


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.where(x < 9, 0 * x),
        lambda x: x[x < 9],
        lambda x: x.nan_to_num() if not x.isnan().any() else x,
        lambda x: x[: int(x.abs().max().item()) + 1],
        lambda x: x if torch.equal(x, x) else -x,
    ],
    ids=["where", "index", "nan", "number", "equal"],
)
def test_each_way_to_decide_is_seen(function: Any) -> None:
    class Model(nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return function(x)

    conditions = Conditions()
    conditions.watch(Model(), (Sample((torch.ones(3),)),))
    assert conditions.never_changed()


class Several(nn.Module):
    """Two conditions a line, in every way; a loop tests its own at two places of the code."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if 0 < x.sum() < 10:
            x = x + 1
        if x.amax() > 0 and x.amin() > 0:
            x = x + 1
        while 0 < x[0] < 9:
            x = x + 4
        return (x if x[0] > 1 else -x) + (1 if x[1] > 1 else 2)


def test_conditions_of_one_line_are_kept_apart() -> None:
    conditions = Conditions()
    conditions.watch(Several(), (Sample((torch.ones(3),)),))
    parts = {site.part: values for site, values in conditions.seen.items()}
    assert parts == {
        "0 < x.sum()": {True}, "x.sum() < 10": {True},
        "x.amax() > 0": {True}, "x.amin() > 0": {True},
        "0 < x[0]": {True}, "x[0] < 9": {True, False},
        "x[0] > 1": {True}, "x[1] > 1": {True},
    }  # fmt: skip
    assert any(line.endswith("`0 < x.sum()` was True every time") for line in lines_of(conditions))


def test_a_module_with_cond_is_watched_and_runs_afterwards() -> None:
    class Cond(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cond(x.sum() > 0, lambda x: x.masked_fill(x > 5, 0.0) * 2, lambda x: x * 3, (x,))

    conditions = Conditions()
    conditions.watch(Cond(), (Sample((torch.ones(3),)),))
    assert [site.kind for site in conditions.seen] == ["condition", "mask"]
    assert torch.equal(Cond()(-torch.ones(3)), -3 * torch.ones(3))


def test_what_moved_did_so_by_values_alone() -> None:
    class Causal(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.where(torch.ones(len(x), len(x)).tril() > 0, 0.0) + x.where(x < 5, 0.0)

    conditions = Conditions()
    for x in (torch.zeros(1), torch.zeros(3)):
        conditions.watch(Causal(), (Sample((x,)),))
    assert conditions.moved() == set()
    conditions.watch(Causal(), (Sample((torch.full((3,), 9.0),)),))
    assert len(conditions.moved()) == 1


def test_more_values_are_tried_for_a_mask_that_none_of_the_usual_ones_reaches() -> None:
    class Filled(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.masked_fill((x > 0).all(), 0.5)

    usual = CheckSpec("export inputs", (Sample((torch.tensor([0.9, -1.1]),)),), Outcome.WRONG)
    reach = cover_decisions(Filled(), usual.calls[0], [usual], patience=10.0)
    assert "all ones" in [variation.name for variation, _ in reach.further]
    assert not reach.conditions.open()


class Spread(nn.Module):
    """What another module returns; one NaN among the inputs reaches all of it."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: torch.Tensor) -> Any:
        return pytree.tree_map(lambda value: value + 0 * x.sum(), self.module(x))


def test_where_eager_cannot_be_watched_a_nan_that_spreads_otherwise_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def unwatchable(*args: Any) -> None:
        raise ValueError("too many values to unpack")

    monkeypatch.setattr("exportlab.verification.excuses.collect_decisions", unwatchable)
    module, sample = nn.Tanh(), (torch.randn(4),)
    report = verify(export("torch.export", Spread(module), sample), module, [sample])
    told = [check.detail for check in report.checks if check.values == "one NaN"]
    assert told == ["the model propagates NaN and infinity differently; eager cannot be observed: ValueError: too many values to unpack"]
    report.check()
