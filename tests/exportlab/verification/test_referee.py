"""The module in float64 says who is nearer: what sums in another order is rounding, what is off by more is not."""

from __future__ import annotations

import torch
from torch import nn

from exportlab import Sample
from exportlab.verification.float64_reference import adjudicate, half_in, run_in_float64


class Half(nn.Module):
    """Casts to half precision by itself, and names float32."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.linear(x).to(torch.bfloat16).softmax(-1)
        return hidden.to(torch.float32) + torch.ones(64, dtype=torch.float32)


torch.manual_seed(0)
MODULE, CALLS = Half(), (Sample((torch.randn(8, 64),)),)
EAGER = MODULE(*CALLS[0].args).detach()
EXACT = run_in_float64(MODULE, CALLS).detach()


def test_everything_is_computed_in_float64() -> None:
    linear = nn.functional.linear(CALLS[0].args[0].double(), MODULE.linear.weight.double(), MODULE.linear.bias.double())
    assert EXACT.dtype == torch.float64
    assert torch.allclose(EXACT, linear.softmax(-1) + 1, rtol=1e-12)
    assert MODULE.linear.weight.dtype == torch.float32


def test_the_nearer_file_is_rounding_and_a_worse_one_is_not() -> None:
    assert adjudicate(MODULE, CALLS, EAGER, EXACT.float()).words.startswith("rounding: the file is nearer than eager")
    other = EXACT.float() - (EAGER - EXACT.float())  # as far off as eager, to the other side
    assert adjudicate(MODULE, CALLS, EAGER, other).is_rounding
    one_off = EXACT.float()
    one_off[3, 5] += 0.01
    ruling = adjudicate(MODULE, CALLS, EAGER, one_off)
    assert not ruling.is_rounding
    assert ruling.words.startswith("off the float64 answer by 1.0e-02, eager by")


def test_what_cannot_be_computed_so_excuses_nothing() -> None:
    class Refuses(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if x.dtype == torch.float64:
                raise TypeError("no float64 here")
            return x

    x = torch.ones(3)
    ruling = adjudicate(Refuses(), (Sample((x,)),), x, x + 1e-4)
    assert not ruling.is_rounding
    assert ruling.words == "cannot be computed in float64: TypeError: no float64 here"


def test_half_precision_is_found_in_arguments_weights_and_outputs() -> None:
    x = torch.ones(3)
    assert half_in(MODULE, CALLS, EAGER) is None
    assert half_in(MODULE, (Sample((x.half(),)),), EAGER) is torch.float16
    assert half_in(MODULE, CALLS, {"y": x.bfloat16()}) is torch.bfloat16
    assert half_in(nn.Linear(2, 2).half(), (), x) is torch.float16
    assert half_in(nn.Linear(2, 2).half(), (Sample((x.bfloat16(),)),), x) is torch.bfloat16


def test_a_module_with_buffers_is_computed_in_float64() -> None:
    module = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)).eval()
    assert run_in_float64(module, [Sample((torch.randn(2, 3),))]).dtype is torch.float64
    assert module[1].running_mean.dtype is torch.float32


def test_in_float32_a_few_times_the_error_of_eager_is_rounding() -> None:
    module, calls = nn.Identity(), (Sample((torch.arange(8.0),)),)
    eager = calls[0].args[0] + 1e-4
    off = [adjudicate(module, calls, eager, calls[0].args[0] + times * 1e-4).is_rounding for times in (-1.0, 2.5, 3.5)]
    assert off == [True, True, False]
    half = [
        adjudicate(nn.Identity(), (Sample((calls[0].args[0].bfloat16(),)),), eager, calls[0].args[0] + t * 1e-4).is_rounding
        for t in (1.0, 5.0)
    ]
    assert half == [True, False]
