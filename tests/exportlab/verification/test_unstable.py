"""Where eager itself is far off its exact answer it is no measure: nothing is judged by it, and the report is not ok because of it."""

from __future__ import annotations

import pytest
import torch
from test_verify import Pretender
from torch import Tensor, nn

from exportlab import verify
from exportlab.outcomes import Outcome
from exportlab.verification.report import NOT_JUDGED

X = torch.randn(40, 8, generator=torch.Generator().manual_seed(0))


class Unstable(nn.Module):
    """Rounding decides which rows are the five best; a second output, if it is wanted, depends on nothing of the kind."""

    def __init__(self, steady: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.score, self.value, self.steady = nn.Linear(8, 1), nn.Linear(8, 4), steady

    def forward(self, x: Tensor, shift: float = 0.0, steady_shift: float = 0.0) -> Tensor | tuple[Tensor, Tensor]:
        best = (1 + 1e-7 * self.score(x)[:, 0]).sigmoid().topk(5).indices
        picked = 5 * self.value(x)[best] + shift
        return (picked, x.sum(-1) + steady_shift) if self.steady else picked


class Rotated(Unstable):
    """Picks five rows as well, by scores that round otherwise: as right as eager, and other rows."""

    def forward(self, x: Tensor, shift: float = 0.0, steady_shift: float = 0.0) -> Tensor | tuple[Tensor, Tensor]:
        best = (1.9 + 1e-7 * self.score(x)[:, 0]).sigmoid().topk(5).indices
        picked = 5 * self.value(x)[best] + shift
        return (picked, x.sum(-1) + steady_shift) if self.steady else picked


@pytest.fixture
def given_inputs_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without made-up values, at some of which rounding decides nothing."""
    monkeypatch.setattr("exportlab.verification.verify.USUAL", ())
    monkeypatch.setattr("exportlab.verification.decision_coverage.FURTHER", ())


@pytest.mark.usefixtures("given_inputs_alone")
def test_a_shifted_file_is_not_excused_by_what_eager_is_off() -> None:
    module = Unstable().eval()
    report = verify(Pretender(lambda x: module(x, shift=3.0)), module, [(X,), (X[:30],)])
    assert report.outcome is Outcome.SKIPPED
    given = [check for check in report.checks if check.name in ("export inputs", "unseen size")]
    assert all(check.detail.startswith(NOT_JUDGED) and "100 tolerances" in check.detail for check in given)
    assert [check.detail for check in report.checks if check.is_open] == [
        f"no check at {where} could judge output 0, which differs: eager itself is too inexact"
        for where in ("the size of the export", "other sizes")
    ]
    assert report.worst == 0.0


def test_values_at_which_eager_is_steady_find_the_shift() -> None:
    module = Unstable().eval()
    assert verify(Pretender(lambda x: module(x, shift=3.0)), module, [(X,)]).outcome is Outcome.WRONG


@pytest.mark.usefixtures("given_inputs_alone")
def test_the_other_outputs_are_judged_as_ever() -> None:
    module, file = Unstable(steady=True).eval(), Rotated(steady=True).eval()
    report = verify(Pretender(lambda x: file(x)), module, [(X,)])
    assert report.outcome is Outcome.SKIPPED
    assert {(check.judged, check.unjudged) for check in report.checks if check.unjudged} == {(frozenset({1}), frozenset({0}))}
    assert verify(Pretender(lambda x: file(x, steady_shift=1.0)), module, [(X,)]).outcome is Outcome.WRONG


def test_an_output_that_is_judged_elsewhere_at_the_size_is_ok() -> None:
    """Scaled up, the scores are apart; there the right file is compared, and it is right."""
    report = verify(Pretender(lambda x: Rotated().eval()(x)), Unstable().eval(), [(X,)])
    assert any(check.unjudged for check in report.checks)
    assert report.outcome is Outcome.OK


@pytest.mark.usefixtures("given_inputs_alone")
def test_a_file_that_gives_the_float64_answer_is_judged_by_that() -> None:
    class Exact(Unstable):
        def forward(self, x: Tensor, shift: float = 0.0, steady_shift: float = 0.0) -> Tensor:
            double = Unstable().double().eval()(x.double())
            assert isinstance(double, Tensor)
            return double.float()

    report = verify(Pretender(lambda x: Exact()(x)), Unstable().eval(), [(X,)])
    assert report.outcome is Outcome.OK
    assert "the file is nearer than eager" in report.checks[0].detail
