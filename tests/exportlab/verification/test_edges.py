"""A threshold that lies elsewhere in the file is seen, by values beside it; and nothing is seen where it lies where it should."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from mutant_models import Model, numbers
from torch import Tensor, nn

from exportlab import verify
from exportlab.exporters import export
from exportlab.messages import muffled
from exportlab.verification.verify import Report

X, SMALL = numbers(4, 6), numbers(3, 5, seed=2) / 4
IDS = torch.tensor([[3, 17, 42, 8], [5, 1, 2, 60]])
MOVES = (2 / 3, 1.5)


def either(condition: Tensor, x: Tensor) -> Tensor:
    """Two answers that differ at every element."""
    return torch.where(condition, x * 2 + 1, x * 3 + 2)


#: What a threshold decides; where it lies; a call.
THRESHOLDS: dict[str, tuple[Callable[..., Any], float, Tensor]] = {
    "a branch": (lambda x, k: torch.cond(x.norm() > k, lambda x: x * 2, lambda x: x * 3, (x,)), 2.0, X),
    "norm above": (lambda x, k: either(x.norm() > k, x), 20.0, X),
    "norm below": (lambda x, k: either(x.norm() > k, x), 0.5, X),
    "sum of squares": (lambda x, k: either(x.pow(2).sum() > k, x), 200.0, X),
    "variance": (lambda x, k: either(x.var() < k, x), 1e-8, X),
    "sum, of another sign": (lambda x, k: either(x.sum() > k, x), 30.0, -X.abs()),
    "least of all": (lambda x, k: either(x.min() > k, x), 0.5, X),
    "sum of exponentials": (lambda x, k: either(x.exp().sum() > k, x), 1000.0, X),
    "where": (lambda x, k: torch.where(x > k, x / 4, x), 6.0, X),
    "where of sizes": (lambda x, k: torch.where(x.abs() > k, x / 4, x), 6.0, X),
    "cut off at six": (lambda x, k: torch.where(x > k, k, x), 6.0, X),
    "a mask that fills": (lambda x, k: x.masked_fill(x < -k, 0.0).cumsum(-1), 5.0, X),
    "masks that are multiplied": (lambda x, k: x * (x < k) + k * (x >= k), 20.0, X),
    "the sum of a mask": (lambda x, k: x + (x.abs() > k).sum(-1, keepdim=True), 4.0, SMALL),
    "in half precision": (lambda x, k: torch.where(x.norm() > k, x * 2, x), 10.0, X.half()),
    "in bfloat16": (lambda x, k: torch.where(x.norm() > k, x * 2, x), 10.0, X.bfloat16()),
    "largest integer": (lambda i, k: either(i.max() > k, i), 90, IDS),
    "integers each": (lambda i, k: torch.where(i > k, i // 2, i), 500, IDS),
    "sum of integers": (lambda i, k: torch.where(i.sum() > k, i + 1, i), 1000, IDS),
    "least integer": (lambda i, k: torch.where(i.min() >= k, i + 1, i), 9, IDS),
}


def within(decides: Callable[..., Any], threshold: float) -> nn.Module:
    return Model(lambda _, x: decides(x, threshold)).eval()


def verified(decides: Callable[..., Any], threshold: float, sample: Tensor, moved: float = 1.0) -> Report:
    """The report on a file with the threshold moved by a factor."""
    elsewhere = round(threshold * moved) if isinstance(threshold, int) else threshold * moved
    with muffled():
        artifact = export("to_onnx", within(decides, elsewhere), (sample,))
        return verify(artifact, within(decides, threshold), [(sample,)])


def seen(report: Report) -> str:
    return "\n".join(f"{check.name} ({check.given}): {check.outcome} {check.detail}" for check in report.failed)


@pytest.mark.parametrize("move", MOVES, ids=["down", "up"])
@pytest.mark.parametrize("name", THRESHOLDS)
def test_a_threshold_that_was_moved_is_seen(name: str, move: float) -> None:
    assert verified(*THRESHOLDS[name], move).outcome == "wrong"


#: Where a rounding, or an overflow, is what decides at the edge; and edges at which nothing is to be seen.
SOUND: dict[str, tuple[Callable[..., Any], float, Tensor]] = {
    **THRESHOLDS,
    "ties of integers": (lambda i, k: torch.where(i.float() * 0.1 > k, i, -i), 0.3, IDS),
    "ties of quotients": (lambda i, k: torch.where(i.float() / 7 >= k, i, -i), 3 / 7, IDS),
    "saturated": (lambda x, k: torch.where(x.tanh() >= k, x, -x), 1.0, X),
    "a probability near one": (lambda x, k: torch.where(x.softmax(-1) > k, x, -x), 0.999999, X),
    "overflow": (lambda x, k: torch.where((x * x * k).isinf(), 0.0, x), 1.0, X.half()),
    "underflow": (lambda x, k: torch.where(x.exp() > k, x, -x), 0.0, X),
    "digits that cancel": (lambda x, k: torch.where((x + 1e4 - 1e4 - x).abs().max() > k, x, -x), 1e-4, X),
    "a running sum in half precision": (lambda x, k: torch.where(x.softmax(-1).cumsum(-1) < k, x, -x), 0.9, numbers(4, 50).half()),
}


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_file_is_ok(name: str) -> None:
    report = verified(*SOUND[name])
    assert report.outcome == "ok", seen(report)


def test_where_rounding_decides_at_an_edge_nothing_is_asked() -> None:
    with muffled():
        artifact = export("to_onnx", Model(lambda _, i: torch.where(i / 41 >= 1, i, -i)), (IDS,))
        report = verify(artifact, Model(lambda _, i: torch.where(i * (1 / 41) >= 1, i, -i)), [(IDS,)])
    assert report.outcome == "ok", seen(report)  # in float32, 41 * (1 / 41) is less than 1
    assert [check.values.split(",")[0] for check in report.checks if "edge" in check.values]


def test_what_is_beside_an_edge_is_named_by_the_scale_and_the_line() -> None:
    report = verified(*THRESHOLDS["norm above"])
    names = [check.values for check in report.checks if "edge" in check.values]
    assert [name.split(", ")[1].split(" at ")[0] for name in names] == ["just below the edge", "just above the edge"]
    scales = [float(name.split(",")[0].removeprefix("times ")) for name in names]
    assert scales[0] * X.norm() < 20 < scales[1] * X.norm()
    assert all("test_edges.py:" in name for name in names)


def test_integers_are_tried_one_by_one() -> None:
    report = verified(*THRESHOLDS["largest integer"])
    names = [check.values.split(",")[0] for check in report.checks if "edge" in check.values]
    assert names == ["integers up to 90", "integers up to 91", "integers up to 92"]


def test_a_model_that_decides_nothing_is_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    def searched(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr("exportlab.verification.search.Search.decided", searched)
    assert verified(lambda x, k: x.tanh() * k, 2.0, X).outcome == "ok"
