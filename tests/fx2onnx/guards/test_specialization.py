"""A number that follows a moving size is never kept as it was in the example, in whatever argument of torch's it is given."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from exportlab import to_onnx, verify
from fx2onnx.errors import FrozenDimension
from fx2onnx.libraries import INSTALLED

ROWS = ({0: "n"},)
X = torch.randn(16, 16)


class Of(nn.Module):
    """A function of a matrix and of its number of rows."""

    def __init__(self, function: Callable[[Tensor, int], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(x, x.shape[0])


TAKEN = {
    "a window": lambda x, n: x.unfold(0, n // 2, n // 2),
    "a kernel of a mean": lambda x, n: F.avg_pool2d(x[None], (n // 2, 1)),
    "a kernel of a maximum": lambda x, n: F.max_pool2d(x[None], (n // 2, 1)),
    "a kernel and a step": lambda x, n: F.avg_pool2d(x[None], n // 4, n // 4),
    "an epsilon below one": lambda x, n: F.layer_norm(x, (16,), eps=1 / n),
    "an epsilon of a batch": lambda x, n: F.batch_norm(x, torch.zeros(16), torch.ones(16), eps=1 / n),
    "a number of parts": lambda x, n: x.chunk(n // 4)[0],
    "a number of parts, at least one": lambda x, n: x.chunk(max(1, n // 4))[-1],
    "a diagonal": lambda x, n: x.diagonal(n // 4),
    "a quantile": lambda x, n: torch.quantile(x, 1 / (n // 4 + 1), dim=0),
    "groups": lambda x, n: F.group_norm(x.T[None], n // 4),
    "a power of a matrix": lambda x, n: torch.linalg.matrix_power(x[:, :4].T @ x[:, :4], n // 4),
    "a hop": lambda x, n: torch.view_as_real(torch.stft(x.flatten(), 16, n // 4, window=torch.ones(16), return_complex=True)),
    "where a loss bends": lambda x, n: F.huber_loss(x, x * 0, delta=1 / n),
    "an exponent": lambda x, n: torch.cdist(x, x, p=1 + 1 / n),
    "a scale of attention": lambda x, n: F.scaled_dot_product_attention(x[None], x[None], x[None], scale=1 / n),
    "decimals": lambda x, n: torch.round(x, decimals=n // 8),
    "smoothing of labels": lambda x, n: F.cross_entropy(x, torch.zeros(n, dtype=torch.long), label_smoothing=1 / n),
    "bins": lambda x, n: torch.histc(x, n // 2, -1, 1),
    "what is padded with": lambda x, n: F.pad(x, (1, 0), value=1 / n),
    "a tolerance": lambda x, n: torch.isclose(x, x * 1.01, atol=1 / n),
    "an axis": lambda x, n: x.sum(dim=n // 16),
    "a factor of shuffled pixels": lambda x, n: F.pixel_shuffle(x.reshape(1, 16, n, 1), max(1, n // 8)),
    "what int() is given, as a kernel": lambda x, n: F.avg_pool2d(x[None], (int(n * 0.4), 1)),
}


SAID = r'^"n" was asked .* (is exported: it is converted to a Python number|give \d parts are exported: it is split) at tests/.*:\d+ in '


@pytest.mark.parametrize("capture", ["torch.export", "auto"])
@pytest.mark.parametrize("name", TAKEN)
def test_a_number_that_torch_takes_plain_is_refused_with_its_line(name: str, capture: str) -> None:
    with pytest.raises(FrozenDimension, match=SAID):
        to_onnx(Of(TAKEN[name]), (X,), dynamic_shapes=ROWS, capture=capture)


def test_a_size_that_has_to_be_one_is_told_by_the_line_that_took_it() -> None:
    with pytest.raises(FrozenDimension, match=r"is the constant 16 after tests/.*test_specialization\.py:\d+ in <lambda>"):
        to_onnx(Of(lambda x, n: F.avg_pool2d(x[None], (n, 1))), (X,), dynamic_shapes=ROWS, capture="torch.export")


def test_a_number_below_one_that_a_library_hands_on_is_refused_as_well() -> None:
    path, scope = INSTALLED / "some_library.py", {"F": F}
    exec(compile("def normed(x, n):\n    return F.layer_norm(x, (16,), eps=1 / n)\n", path, "exec"), scope)
    with pytest.raises(FrozenDimension, match=r"only \(1 / n\) == 0\.0625 is exported: .* at .*some_library\.py:2 in normed\."):
        to_onnx(Of(scope["normed"]), (X,), dynamic_shapes=ROWS)


def test_what_is_accepted_stands_in_the_report() -> None:
    program = to_onnx(Of(lambda x, n: x.chunk(n // 4)[0]), (X,), dynamic_shapes=ROWS, accept_ranges=("n",))
    assert any("only (n // 4) == 4 is exported" in limit and "test_specialization.py" in limit for limit in program.report.limits)


MOVES = {
    "a window's length": lambda x, n: torch.hann_window(n // 2) * x.sum(),
    "an adaptive size": lambda x, n: F.adaptive_avg_pool1d(x, n // 4) + F.adaptive_max_pool1d(x, n // 4),
    "a scale of an image": lambda x, n: F.interpolate(x[None, None], scale_factor=n / 4),
    "one of two scales": lambda x, n: F.interpolate(x[None, None], scale_factor=(16 / n, 2.0), mode="bilinear"),
    "a size": lambda x, n: F.interpolate(x[None, None], size=(n // 2, 8), mode="bilinear"),
    "a factor": lambda x, n: x * (1 / n) + math.log(n),
    "a number of copies": lambda x, n: x.sum(0).repeat(n // 4),
    "ends": lambda x, n: x.clamp(-1 / n, 1 / n),
    "a shift": lambda x, n: x.roll(n // 4, 0),
    "a diagonal of a triangle": lambda x, n: torch.triu(x, n // 4),
    "the last of a part": lambda x, n: x.narrow(0, n // 4, n // 4),
    "a slope": lambda x, n: F.leaky_relu(x, 1 / n),
    "slopes": lambda x, n: F.elu(x, 1 / n) + F.celu(x, 2 / n),
    "the parts of a sum": lambda x, n: torch.tensor_split(x, 4)[1] / (n // 4),
    "a step of rows": lambda x, n: x[:: max(1, n // 4)],
    "a step of numbers": lambda x, n: torch.arange(0, n, max(1, n // 5)) + x.sum(),
}


@pytest.mark.parametrize("name", MOVES)
def test_a_number_that_may_move_moves(name: str) -> None:
    program = to_onnx(Of(MOVES[name]), (X,), dynamic_shapes=ROWS)
    assert program.report.limits == ()
    report = verify(program, Of(MOVES[name]), [(torch.randn(n, 16),) for n in (16, 4, 5, 12, 17, 33, 3)])
    assert report.outcome == "ok", report


class PathMerger(nn.Module):
    """A pool over what two axes are long together, beside what runs do not show."""

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        joined = torch.cat([x, y])
        return torch.max_pool1d(joined.T, 3, 2), joined[joined[:, 0] > 0]


@pytest.mark.parametrize("capture", ["torch.export", "auto"])
def test_a_number_that_an_operator_takes_to_check_it_is_none(capture: str) -> None:
    given = torch.randn(5, 4), torch.randn(7, 4)
    program = to_onnx(PathMerger(), given, dynamic_shapes=({0: "n"}, {0: "m"}), capture=capture)
    report = verify(program, PathMerger(), [given, (torch.randn(3, 4), torch.randn(9, 4)), (torch.randn(1, 4), torch.randn(2, 4))])
    assert report.outcome == "ok", report
