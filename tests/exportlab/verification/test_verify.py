"""`verify` names every silence: one deliberately wrong artifact for each."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch._subclasses import FakeTensorMode

from exportlab import Sample, VerificationError, verify
from exportlab.exporters import Artifact, Interface
from exportlab.outcomes import Outcome
from exportlab.sweep.records import read
from exportlab.verification.eager_timeout import Patience
from exportlab.verification.report import Check, Report
from exportlab.verification.values import FLIPPED


class Pretender(Artifact):
    """An artifact that answers with any function."""

    exporter = "pretender"

    def __init__(self, function: Callable[..., Any], asked: Interface | None = None, got: Interface | None = None) -> None:
        self.function = function
        self.asked = asked or Interface()
        self._got = got or Interface()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def save(self, path: str | Path) -> Path:
        raise NotImplementedError

    def ops(self) -> Counter[str]:
        return Counter()

    def got(self) -> Interface:
        return self._got


class Module(nn.Module):
    """A module around any function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


class Calls(nn.Module):
    """Adds how often it was called."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls.add_(1)
        return x + self.calls


def double(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def failures(wrong: Callable[..., Any], right: nn.Module, *samples: Any) -> dict[str, str]:
    """The outcome of each check that is neither ok nor skipped, by name."""
    report = verify(Pretender(wrong), right, list(samples))
    with pytest.raises(VerificationError):
        report.check()
    return {check.name: check.outcome for check in report.checks if check.outcome not in ("ok", "skipped")}


four, seven = torch.arange(1.0, 5.0), torch.arange(1.0, 8.0)


def test_right_artifact_is_ok() -> None:
    report = verify(Pretender(double), Module(double), [(four,), (seven,), (torch.ones(0),)])
    assert report.outcome == "ok"
    assert report.check() is report


def test_another_size_with_other_numbers() -> None:
    def frozen(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if len(x) == 4 else x * 3

    assert failures(frozen, Module(double), (four,), (seven,)) == {"unseen size": "frozen"}


def test_another_size_refused() -> None:
    def refuses(x: torch.Tensor) -> torch.Tensor:
        if len(x) != 4:
            raise RuntimeError("Got invalid dimensions")
        return x * 2

    report = verify(Pretender(refuses), Module(double), [(four,), (seven,)])
    assert report.outcome == "narrow"
    assert [c.detail for c in report.checks if c.outcome == "narrow"] == ["RuntimeError: Got invalid dimensions"]


def test_branch_on_a_value() -> None:
    assert failures(lambda x: x * 2, Module(lambda x: x * 2 if x.sum() > 0 else x * 3), (four,)) == {"other values": "wrong"}


def test_branch_on_one_flag() -> None:
    right = Module(lambda x, flag: x if flag else -x)
    assert failures(lambda x, flag: x, right, (torch.zeros(1) + 1, torch.tensor(True))) == {"other values": "wrong"}


def test_same_tensor_given_twice() -> None:
    assert failures(lambda x, y: y + 2 * y, Module(lambda x, y: x + 2 * y), (four, four)) == {"separate tensors": "wrong"}


def test_state_that_is_lost() -> None:
    assert failures(lambda x: x + 1, Calls(), (four,)) == {"called twice": "wrong"}


def test_module_keeps_its_state() -> None:
    counter = Calls()
    verify(Pretender(lambda x: x + 1), counter, [(four,)])
    assert counter.calls.item() == 0


@pytest.mark.parametrize(
    ("wrong", "seen"),
    [
        (lambda x: (x * 2).double(), "dtype torch.float64 where eager has torch.float32"),
        (lambda x: (x * 2).unsqueeze(0), "shape [1, 4] where eager has [4]"),
        (lambda x: [x * 2], "structure differs: expected tensor[4], got [tensor[4]]"),
        (lambda x: None, "a NoneType where eager has a Tensor"),
    ],
    ids=["dtype", "shape", "structure", "none"],
)
def test_outputs_of_another_kind(wrong: Callable[..., Any], seen: str) -> None:
    report = verify(Pretender(wrong), Module(double), [(four,)])
    assert report.outcome == "wrong"
    assert seen in report.checks[0].detail


def test_keys_and_python_values() -> None:
    right = Module(lambda x: {"y": x, "n": 3})
    assert "structure differs" in verify(Pretender(lambda x: {"z": x, "n": 3}), right, [(four,)]).checks[0].detail
    assert "['n']: 4 where eager has 3" in verify(Pretender(lambda x: {"y": x, "n": 4}), right, [(four,)]).checks[0].detail


@pytest.mark.parametrize(
    ("asked", "got", "name", "seen"),
    [
        (Interface(input_names=("a", "b")), Interface(input_names=("b", "a")), "input names", "asked for a, b, got b, a"),
        (Interface(output_names=("y",)), Interface(output_names=("mul",)), "output names", "asked for y, got mul"),
        (Interface(opset_version=13), Interface(opset_version=18), "opset", "asked for 13, got 18"),
    ],
    ids=["input names", "output names", "opset"],
)
def test_not_as_asked(asked: Interface, got: Interface, name: str, seen: str) -> None:
    report = verify(Pretender(double, asked, got), Module(double), [(four,)])
    assert [(c.name, c.outcome, c.detail) for c in report.checks if c.outcome != "ok"] == [(name, "wrong", seen)]


def test_as_asked_is_ok() -> None:
    names = Interface(("a",), ("y",), 20)
    assert verify(Pretender(double, names, names), Module(double), [(four,)]).outcome == "ok"


def test_nan_equals_nan_only() -> None:
    right = Module(lambda x: x / x)
    zeros = torch.zeros(3)
    assert verify(Pretender(lambda x: x / x), right, [(zeros,)]).outcome == "ok"
    assert failures(lambda x: torch.ones_like(x), right, (zeros,))["export inputs"] == "wrong"


def test_infinities_have_a_sign() -> None:
    assert verify(Pretender(lambda x: x / 0), Module(lambda x: x / 0), [(four,)]).outcome == "ok"
    assert failures(lambda x: -x / 0, Module(lambda x: x / 0), (four,))["export inputs"] == "wrong"


@pytest.mark.parametrize("value", [2**60, -1, 0])
def test_integers_are_exact(value: int) -> None:
    x = torch.tensor([value])
    assert failures(lambda x: x + 1, Module(lambda x: x), (x,))["export inputs"] == "wrong"


def test_booleans_are_exact() -> None:
    x = torch.tensor([True, False, True])
    assert failures(lambda x: ~x, Module(lambda x: x), (x,))["export inputs"] == "wrong"


def test_tolerance_depends_on_dtype_and_is_printed() -> None:
    def near(x: torch.Tensor) -> torch.Tensor:
        return x * (1 + 5e-4)

    assert "wrong" in verify(Pretender(near), Module(lambda x: x), [(four,)]).outcome
    half = verify(Pretender(near), Module(lambda x: x), [(four.half(),)])
    assert half.outcome == "ok"
    assert "float16 rtol 0.01, atol 0.001" in repr(half)


def test_check_raises_with_the_worst_element() -> None:
    def wrong(x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        y[0, 1] += 1
        y[1, 2] += 5
        return y

    report = verify(Pretender(wrong), Module(lambda x: x), [(torch.zeros(2, 3),)])
    with pytest.raises(VerificationError, match=r"output\[1, 2\]: 5 where eager has 0 \(2 of 6 elements differ\)"):
        report.check()


def test_values_that_eager_refuses_are_skipped_with_the_reason() -> None:
    def positive(x: torch.Tensor) -> torch.Tensor:
        if x.min() < 0:
            raise ValueError("negative")
        return x

    report = verify(Pretender(positive), Module(positive), [(four,)])
    assert ("other values", "skipped", "eager refuses these inputs: ValueError: negative") in [
        (c.name, c.outcome, c.detail) for c in report.checks
    ]
    assert report.outcome == "ok"


def test_the_most_serious_outcome_wins() -> None:
    def both(x: torch.Tensor) -> torch.Tensor:
        return x * 3 if len(x) == 7 else x.abs() * 2

    assert verify(Pretender(both), Module(double), [(four,), (seven,)]).outcome == "wrong"


@pytest.mark.parametrize("stored", ["matrix", "previous/onnxscript"])
def test_stored_outcomes_follow_from_their_checks(stored: str) -> None:
    records = read(Path(__file__).parents[3] / f"docs/data/{stored}.jsonl")
    checked = [record for record in records if record.outcome in (Outcome.WRONG, Outcome.FROZEN, Outcome.RUN)]
    assert len(checked) > 100
    for record in checked:
        checks = tuple(Check(c["check"], c["inputs"], Outcome(c["outcome"])) for c in record.failed if c["check"] != "save")
        assert Report("", checks, "").outcome == record.outcome, record


def test_a_tensor_without_data_is_wrong() -> None:
    with FakeTensorMode():
        fake = torch.empty(4)
    report = verify(Pretender(lambda x: fake), Module(double), [(four,)])
    assert "a tensor without data" in report.checks[0].detail


def test_inputs_are_not_changed() -> None:
    x = four.clone()
    verify(Pretender(lambda x: x.add_(1)), Module(lambda x: x.add_(1)), [(x,)])
    assert torch.equal(x, four)


def test_a_sample_that_eager_refuses_is_a_row_and_the_others_are_checked() -> None:
    def four_at_most(x: torch.Tensor) -> torch.Tensor:
        if len(x) > 4:
            raise ValueError("too long")
        return x * 2

    report = verify(Pretender(lambda x: x * 2 if len(x) == 4 else x * 3), Module(four_at_most), [(four,), (seven,), (four[:2],)])
    sizes = [(c.outcome, c.detail) for c in report.checks if c.name == "unseen size"]
    assert sizes[0] == ("skipped", "eager refuses these inputs: ValueError: too long")
    assert sizes[1][0] == "frozen" == report.outcome


def test_nothing_that_eager_takes_is_not_ok() -> None:
    def refuses(x: torch.Tensor) -> torch.Tensor:
        raise ValueError("never")

    report = verify(Pretender(double), Module(refuses), [(four,)])
    assert report.outcome == "skipped"
    with pytest.raises(VerificationError, match="ValueError: never"):
        report.check()


def test_a_call_of_another_kind_is_told_in_these_words() -> None:
    def masked(x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        return x if mask is None else x * mask

    def file(x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        if mask is None:
            raise TypeError("exported for arguments like ((*, *), {})")
        return x * mask

    class Masked(nn.Module):
        def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
            return masked(x, mask)

    report = verify(Pretender(file), Masked(), [(four, four > 2), (four, None), (four.double(), four > 2)])
    told = [(c.name, c.outcome, c.detail) for c in report.checks if c.name == "another kind of call"]
    assert told[0] == (
        "another kind of call",
        "narrow",
        "`mask` is None and was a bool tensor of 1 axes at the export: TypeError: exported for arguments like ((*, *), {})",
    )
    assert report.outcome == "narrow"
    silent = verify(Pretender(lambda x, mask=None: x * 1), Masked(), [(four, four > 0), (four * 2, None), (-four, four > 9)])
    assert silent.outcome == "wrong"


def test_an_output_that_never_changes_is_told() -> None:
    report = verify(Pretender(lambda x: torch.full((1,), 1e4)), Module(lambda x: (x.sum() / 1e3).sigmoid()[None] + 1e4), [(four,)])
    assert [c.detail for c in report.checks if c.name == "depends on inputs"] == ["output 0 stays the same, eager's does not"]
    assert report.outcome == "wrong"


def test_what_is_nearer_to_float64_than_eager_is_rounding() -> None:
    torch.manual_seed(0)
    layers = nn.Sequential(*(nn.Linear(64, 64) for _ in range(12))).eval()
    halves, x = layers.bfloat16(), torch.randn(32, 64).bfloat16()
    exact = copy.deepcopy(halves).double()
    strict = {torch.bfloat16: (1e-3, 0.0)}
    report = verify(Pretender(lambda x: exact(x.double()).bfloat16()), halves, [(x,)], tolerances=strict)
    assert report.checks[0].outcome == "ok"
    assert report.checks[0].detail.startswith("rounding: the file is nearer than eager, off the float64 answer by")
    off = verify(Pretender(lambda x: exact(x.double()).bfloat16() * 1.5), halves, [(x,)], tolerances=strict).checks[0]
    assert off.outcome == "wrong"
    assert "off the float64 answer by" in off.detail


def test_that_rounding_is_all_is_said_once() -> None:
    torch.manual_seed(0)
    half, x = nn.Sequential(*(nn.Linear(64, 64) for _ in range(12))).bfloat16().eval(), torch.randn(32, 64).bfloat16()
    exact, strict = copy.deepcopy(half).double(), {torch.bfloat16: (1e-3, 0.0)}
    report = verify(Pretender(lambda x: exact(x.double()).bfloat16()), half, [(x,), (x[:20],)], tolerances=strict)
    told = [check.detail for check in report.checks if check.detail.startswith("rounding: the file is nearer than eager")]
    assert len(told) > 2
    assert str(report).count("the file is nearer than eager") == 1
    assert "as above, off the float64 answer by" in str(report)


def test_what_is_wrong_at_the_size_of_the_export_is_not_frozen() -> None:
    report = verify(Pretender(lambda x: x + 1), Module(lambda x: x * 1), [(four,), (torch.ones(6),)])
    assert [(check.name, check.outcome) for check in report.checks[:2]] == [("export inputs", "wrong"), ("unseen size", "wrong")]


def test_a_loop_that_other_values_never_end_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def halved(x: torch.Tensor) -> torch.Tensor:
        while x.abs().sum() > 100:
            x = x / 2
        return x

    monkeypatch.setattr("exportlab.verification.eager_timeout.AT_LEAST", 0.5)
    monkeypatch.setattr("exportlab.verification.eager_timeout.TIMES", 0.0)
    report = verify(Pretender(halved), Module(halved), [(four,)])
    assert report.outcome == "ok"
    assert [c.detail for c in report.checks if c.values == "one infinity"] == ["eager refuses these inputs: TooSlow: took longer than 0 s"]


def test_how_long_the_given_calls_take_is_measured_without_a_further_one(monkeypatch: pytest.MonkeyPatch) -> None:
    called, seconds = [], iter(range(0, 1000, 3))
    monkeypatch.setattr("exportlab.verification.eager_timeout.time.perf_counter", lambda: next(seconds))
    patience = Patience()
    with patience.measured():
        pass
    with pytest.raises(KeyError), patience.measured():
        raise KeyError
    assert patience.seconds == 60.0
    flags = torch.tensor([True])
    verify(Pretender(lambda x: x), Module(lambda x: called.append(x) or x), [(flags,)])
    assert len(called) == 6  # the call, its flag flipped or false, twice in a row, and a watched one


def test_one_output_of_another_shape_and_one_with_other_numbers() -> None:
    report = verify(Pretender(lambda x: (x[:2], x + 1)), Module(lambda x: (x, x)), [(four,)])
    assert report.outcome == "wrong"
    assert "shape [2] where eager has [4]" in report.checks[0].detail


def test_report_renders_as_text_and_html() -> None:
    report = verify(Pretender(lambda x: x), Module(double), [Sample((four,))])
    assert repr(report).splitlines()[0] == "pretender: wrong (float32 rtol 0.0001, atol 1e-05 of the scale)"
    assert "<table" in report._repr_html_()
    assert "#D55E00" in report._repr_html_()


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="at least one sample"):
        verify(Pretender(double), Module(double), [])
    with pytest.raises(TypeError, match="a sample is a tuple of arguments"):
        verify(Pretender(double), Module(double), ["x"])
    with pytest.raises(TypeError, match="cannot run a function"):
        verify(double, Module(double), [(four,)])


def hidden(x: torch.Tensor, mask: torch.Tensor, *, kept_at_one: bool = False) -> torch.Tensor:
    """What a mask hides is zero, but in a single row, where it is asked for."""
    return x if kept_at_one and x.shape[0] == 1 else x * mask


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64])
def test_masks_that_hide_nothing_are_flipped_at_their_end_at_every_size(dtype: torch.dtype) -> None:
    rows = [(torch.ones(n, 4), torch.ones(n, 4, dtype=dtype)) for n in (3, 1)]
    found = failures(partial(hidden, kept_at_one=True), Module(hidden), *rows)
    assert found == {"other values": "frozen"}


def test_a_mask_that_is_never_looked_at_is_wrong_where_it_hides_the_end_alone() -> None:
    def only_where_all_is_hidden(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return x * mask.any()

    mask = torch.ones(3, 4, dtype=torch.bool)
    assert failures(only_where_all_is_hidden, Module(hidden), (torch.ones(3, 4), mask)) == {"other values": "wrong"}


def test_a_float_mask_is_flipped_at_its_end() -> None:
    causal = torch.full((3, 3), -1e9).triu(1)
    flipped = FLIPPED.change(causal)
    assert FLIPPED.applies(causal)
    assert flipped[:, -1].tolist() == [0, 0, -1e9]
    assert torch.equal(flipped[:, :-1], causal[:, :-1])
    assert not FLIPPED.applies(causal[:, :1])


@pytest.mark.parametrize(("off", "outcome"), [(3e-8, "ok"), (4e-7, "wrong"), (3e-6, "wrong")])
def test_a_small_result_may_be_off_by_a_rounding_of_what_is_given(off: float, outcome: str) -> None:
    report = verify(Pretender(lambda x: x.sigmoid() + off), Module(torch.sigmoid), [(torch.tensor(-8.5),)])
    assert report.checks[0].outcome == outcome, report
    assert report.checks[0].detail.startswith("less exact for a small result") == (outcome == "ok")
