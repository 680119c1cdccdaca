"""Each excuse of verify has a corpus: differences that it excuses, and files that are wrong in a way that looks alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from test_verify import Module, Pretender
from torch import Tensor, nn

from exportlab.cases import Sample
from exportlab.eager import fresh, run_calls
from exportlab.outcomes import Outcome
from exportlab.verification.check_spec import AS_GIVEN, CheckSpec, UnderTest
from exportlab.verification.devices import Device
from exportlab.verification.difference import difference_of
from exportlab.verification.excuses import EXCUSES, Pair, excuse
from exportlab.verification.values import Mutation

EXTREME = Mutation("scaled up", lambda tensor: True, lambda tensor: tensor, extreme=True)
NOT_FINITE = Mutation("one NaN", lambda tensor: True, lambda tensor: tensor, not_finite=True)
INVENTED = Mutation("all false", lambda tensor: True, lambda tensor: tensor)


@dataclass(frozen=True)
class Differing:
    """A module, a file that answers otherwise, and one call; `first`: the call of the export, where it is another."""

    module: nn.Module | Callable[..., Any]
    file: Callable[..., Any]
    args: tuple[Tensor, ...]
    variation: Mutation = AS_GIVEN
    first: tuple[Tensor, ...] | None = None
    device: Device | None = None

    def pair(self) -> Pair:
        module = self.module if isinstance(self.module, nn.Module) else Module(self.module)
        calls = (Sample(self.args),)
        probe = CheckSpec("export inputs", calls, Outcome.WRONG, variation=self.variation)
        first = (Sample(self.first or self.args),)
        with torch.no_grad():
            expected, actual = run_calls(fresh(module), calls), self.file(*self.args)
        found = difference_of(expected, actual)
        assert found.problem, "they do not differ"
        return Pair(probe, UnderTest(Pretender(self.file), module, None, first, self.device), expected, actual, found)


class Half(nn.Module):
    """Casts to half precision by itself."""

    def forward(self, x: Tensor) -> Tensor:
        return x.bfloat16().softmax(-1).float() + 1


class Encoder(nn.Module):
    """Words, and which of them count, through a layer that has a fast path."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        return self.layer(x, src_key_padding_mask=~mask)


def slow(module: nn.Module) -> Callable[..., Any]:
    """What a module gives without PyTorch's fast path."""

    def call(*args: Any) -> Any:
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            return module(*args)
        finally:
            torch.backends.mha.set_fastpath_enabled(True)

    return call


class Randomly(nn.Module):
    """Draws what it adds."""

    def forward(self, x: Tensor) -> Tensor:
        return x + 1e-3 * torch.rand_like(x)


generator = torch.Generator().manual_seed(0)
X = torch.randn(8, 64, generator=generator)
FEW = (torch.arange(200) % 3).float()
HIDDEN = (torch.randn(2, 5, 8, generator=generator), torch.zeros(2, 5, dtype=torch.bool))
CONSTANT = torch.full((4, 1000), 0.1)
BETWEEN_TWO = torch.tensor([2.5, 4100.5]) / 8192
TINY = torch.linspace(1e-4, 2e-4, 50)
WITH_NAN = torch.tensor([3.0, torch.nan, 1.0, 2.0])
HALF_A_TOLERANCE_MORE = 1.0 + 5e-4
CUDA = Device("cuda", tf32=False)


def zeroed_where_nan(x: Tensor) -> Tensor:
    return torch.where(x.isnan(), torch.zeros_like(x), x + 1)


def cleaned_and_sorted(x: Tensor) -> Tensor:
    return x.nan_to_num(9.0) + x.sort().indices


def normalised(x: Tensor) -> Tensor:
    apart = x - x.mean(-1, keepdim=True)
    return apart / apart.abs().amax(-1, keepdim=True).clamp(min=1e-12)


EXCUSED: dict[str, list[Differing]] = {
    "not finite": [
        Differing(torch.tanh, lambda x: x.tanh() + 0 * x.nan_to_num().sum() + 1e-2, (WITH_NAN,), NOT_FINITE, (X[0],)),
        Differing(lambda x: x.softmax(-1), lambda x: x.nan_to_num().softmax(-1), (WITH_NAN,), NOT_FINITE, (X[0],)),
    ],
    "device": [Differing(lambda x: x * 2, lambda x: x * 2 * HALF_A_TOLERANCE_MORE, (X,), device=CUDA)],
    "rounding": [
        Differing(Half(), lambda x: x.softmax(-1) + 1, (X,)),
        Differing(lambda x: x.half().cumsum(-1).float(), lambda x: x.half().float().cumsum(-1), (X * 30,)),
    ],
    "extreme values": [
        Differing(lambda x: x.log1p(), lambda x: (1 + x).log(), (TINY,), EXTREME),
        Differing(lambda x: x.sin(), lambda x: (x * (1 + 3e-7)).sin(), (1e4 * X,), EXTREME),
    ],
    "small result": [
        Differing(torch.sigmoid, lambda x: x.sigmoid() + 3e-8, (torch.tensor(-8.5),)),
        Differing(torch.exp, lambda x: x.exp() + 3e-8, (torch.tensor([-9.0, -9.2]),)),
    ],
    "fast path": [Differing(Encoder().eval(), slow(Encoder().eval()), HIDDEN, INVENTED)],
    "ties": [
        Differing(lambda x: x.sort().indices, lambda x: x.sort(stable=True).indices, (FEW,)),
        Differing(lambda x: x.topk(50).indices, lambda x: x.sort(stable=True, descending=True).indices[:50], (FEW,)),
    ],
    "sorted NaN": [
        Differing(cleaned_and_sorted, lambda x: cleaned_and_sorted(x).flip(0), (WITH_NAN,), NOT_FINITE, (X[0, :4],)),
    ],
    "ill-conditioned": [
        Differing(lambda x: (x * 8192).round() / 8192, lambda x: (x * 8192 + 0.5).floor() / 8192, (BETWEEN_TWO,)),
        Differing(lambda x: normalised(x).argmax(-1), lambda x: x[..., 0].long() + 7, (CONSTANT,)),
    ],
}
WRONG: dict[str, list[Differing]] = {
    "not finite": [Differing(zeroed_where_nan, lambda x: x + 2, (WITH_NAN,), NOT_FINITE, (X[0, :4],))],
    "device": [Differing(lambda x: x * 2, lambda x: x * 2.01, (X,), device=CUDA)],
    "rounding": [
        Differing(Half(), lambda x: 1.05 * x.softmax(-1) + 1, (X,)),
        Differing(Half(), lambda x: torch.where(x == x.max(), 0.01, 0.0) + x.softmax(-1) + 1, (X,)),
        Differing(Randomly(), lambda x: x + 1e-3 * torch.rand_like(x), (X,)),
    ],
    "extreme values": [
        Differing(lambda x: x.sin(), lambda x: 0.9 * x.sin(), (1e4 * X,), EXTREME),
        Differing(lambda x: x.sin(), lambda x: (x * (1 + 3e-7)).sin() * 1.1, (1e4 * X,)),
    ],
    "small result": [
        Differing(torch.sigmoid, lambda x: x.sigmoid() + 4e-7, (torch.tensor(-8.5),)),
        Differing(torch.sigmoid, lambda x: x.sigmoid() * 0, (torch.tensor(-12.0),)),
    ],
    "fast path": [
        Differing(Encoder().eval(), slow(Encoder(1).eval()), HIDDEN, INVENTED),
        Differing(Encoder().eval(), slow(Encoder().eval()), HIDDEN),  # these values were given, not invented
    ],
    "ties": [
        Differing(lambda x: x.sort().indices, lambda x: x.sort(stable=True).indices.flip(0), (FEW,)),
        Differing(lambda x: x.topk(50).indices, lambda x: x.topk(50, largest=False).indices, (FEW,)),
    ],
    "sorted NaN": [Differing(cleaned_and_sorted, lambda x: x.sort().values, (WITH_NAN.nan_to_num(5.0),))],
    "ill-conditioned": [
        Differing(normalised, lambda x: normalised(x) * 1.05, (X,)),
        Differing(lambda x: (x > 0).float() * 3, lambda x: (x >= 0).float() * 3, (torch.zeros(3),)),
    ],
}


@pytest.fixture(autouse=True)
def eager_on_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device whose eager is off the CPU's by a part in two thousand."""

    def returned_on(device: Device, module: nn.Module, calls: tuple[Sample, ...]) -> Any:
        return run_calls(fresh(module), calls) * HALF_A_TOLERANCE_MORE

    monkeypatch.setattr("exportlab.verification.excuses.returned_on", returned_on)


def every(corpus: dict[str, list[Differing]]) -> list[Any]:
    return [pytest.param(name, case, id=f"{name} {i}") for name, cases in corpus.items() for i, case in enumerate(cases)]


def test_each_excuse_has_a_corpus() -> None:
    assert set(EXCUSED) == set(WRONG) == {reason.name for reason in EXCUSES}


@pytest.mark.parametrize(("name", "case"), every(EXCUSED))
def test_it_excuses_what_is_not_wrong(name: str, case: Differing) -> None:
    check = excuse(case.pair())
    assert check is not None
    assert check.excuse == name
    assert not check.failed


@pytest.mark.parametrize(("name", "case"), every(WRONG))
def test_no_excuse_calls_a_wrong_file_right(name: str, case: Differing) -> None:
    check = excuse(case.pair())
    assert check is None or check.unjudged


def test_what_eager_is_too_inexact_for_is_not_judged() -> None:
    """A few roundings of a large input are many tolerances of what is left of it, for eager as for the file."""

    def left_over(x: Tensor, large: Tensor) -> Tensor:
        return (x + large) - large

    check = excuse(Differing(left_over, lambda x, large: left_over(x, large) + 20, (X, torch.tensor(1e8)), EXTREME).pair())
    assert check is not None
    assert (check.excuse, check.outcome, check.unjudged) == ("extreme values", Outcome.SKIPPED, frozenset({0}))
