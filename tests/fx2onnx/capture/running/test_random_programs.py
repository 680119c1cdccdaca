"""Random programs over two moving sizes: what is captured by running is right at sizes that were never run, whatever it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

from fx2onnx import ToOnnxError, to_onnx

Step = Callable[[Tensor, Tensor, int], Tensor]
SHAPES = ({0: "rows"}, {0: "others"})
NEVER_RUN = ((1, 1), (2, 3), (3, 2), (4, 17), (8, 5), (16, 16), (33, 70))
STEPS: dict[str, Step] = {  # x is (n, 4), y is (m, 4), k from 1 to 4; each gives (anything, 4)
    "first part": lambda x, y, k: x[: x.shape[0] // k],
    "last rows": lambda x, y, k: x[-k:],
    "without the last": lambda x, y, k: x[:-k],
    "every k": lambda x, y, k: x[::k],
    "from k": lambda x, y, k: x[k:],
    "one after the other": lambda x, y, k: torch.cat([x, y]),
    "padded": lambda x, y, k: F.pad(x, (0, 0, k, 0)),
    "padded to a multiple": lambda x, y, k: F.pad(x, (0, 0, 0, -x.shape[0] % k)),
    "as long as the other": lambda x, y, k: x[: y.shape[0]],
    "turned": lambda x, y, k: x.T.reshape(-1, 4),
    "repeated": lambda x, y, k: x.repeat(k, 1),
    "interleaved": lambda x, y, k: x.repeat_interleave(k, 0),
    "rolled": lambda x, y, k: x.roll(k, 0),
    "flipped": lambda x, y, k: x.flip(0),
    "summed up": lambda x, y, k: x.cumsum(0),
    "weighed by place": lambda x, y, k: x * torch.arange(x.shape[0])[:, None] / x.shape[0],
    "scaled by sizes": lambda x, y, k: x * (x.shape[0] * k - y.shape[0]),
    "scaled by a root": lambda x, y, k: x / (x.shape[0] + k) ** 0.5,
    "attends": lambda x, y, k: torch.softmax(x @ y.T / 2, -1) @ y,
    "attends backwards": lambda x, y, k: (x @ x.T).tril(-k) @ x,
    "pooled": lambda x, y, k: F.max_pool1d(F.pad(x.T[None], (0, 2 * k)), k + 1).squeeze(0).T,
    "folded over": lambda x, y, k: F.conv1d(F.pad(x.T[None], (k, k)), torch.ones(4, 4, 3) / 3, stride=k).squeeze(0).T,
    "resized": lambda x, y, k: F.interpolate(x.T[None], scale_factor=float(k)).squeeze(0).T,
    "resized to the other": lambda x, y, k: F.interpolate(x.T[None], size=y.shape[0]).squeeze(0).T,
    "windows": lambda x, y, k: F.pad(x, (0, 0, 0, 4)).unfold(0, k, k).sum(-1),
    "the mean of all": lambda x, y, k: x - x.mean(0),
    "the mean where there is one": lambda x, y, k: x - y.sum(0) / max(y.shape[0], k),
    "a column set": lambda x, y, k: _set(x.clone(), k),
    "rows set": lambda x, y, k: _rows_set(x.clone(), k),
    "a half of it twice": lambda x, y, k: torch.cat(x.chunk(2)),
    "split and put together": lambda x, y, k: torch.cat(x.split(k)[::-1]),
    "a test of a size": lambda x, y, k: x * 2 if x.shape[0] > k else x,
    "a test of two sizes": lambda x, y, k: x * 2 if x.shape[0] >= y.shape[0] else x,
    "a test of a rest": lambda x, y, k: x * 2 if x.shape[0] % (k + 1) == 0 else x,
    "a test of a value": lambda x, y, k: x * 2 if x.sum() > k else x,
    "written where a value says": lambda x, y, k: _written_where(x.clone(), k),
    "scaled down while it is large": lambda x, y, k: _scaled_down(x, k),
    "a number compared": lambda x, y, k: x * 2 if x.mean().item() > 1 / k else x - y.sum(0),
    "a test of either": lambda x, y, k: x.abs() if x.min() < -k or y.max() > x.max() else x,
    "a value and a size": lambda x, y, k: x * 3 if x.shape[0] > 2 * k and x.sum() < 0 else x,
    "refused above": lambda x, y, k: _refused_above(x, 8 * k),
    "turns": lambda x, y, k: sum((x * i for i in range(k)), x),
    "a turn for each row": lambda x, y, k: torch.stack([row * k for row in x]),
    "turns of a size": lambda x, y, k: sum((x * i for i in range(x.shape[0] // k)), x),
    "sorted": lambda x, y, k: x.sort(0).values,
    "the k largest": lambda x, y, k: F.pad(x, (0, 0, 0, k)).topk(k, 0).values,
    "without a sign": lambda x, y, k: x.abs().clamp(min=0.1 * k),
}


def _set(x: Tensor, k: int) -> Tensor:
    x[:, k % 4] = x[:, 0] * 2
    return x


def _written_where(x: Tensor, k: int) -> Tensor:
    if x[:, 0].sum() > 0:
        x[:, k % 4] = x[:, 1] * 2
    x += k
    return x


def _scaled_down(x: Tensor, k: int) -> Tensor:
    for _ in range(k):
        if not x.abs().sum() > 10:
            break
        x = x / 2
    return x


def _refused_above(x: Tensor, most: int) -> Tensor:
    if x.shape[0] > most:
        raise ValueError("too long")
    return x


def _rows_set(x: Tensor, k: int) -> Tensor:
    x[k:] += 1
    x[: x.shape[0] // 2].mul_(k)
    return x


class Random(nn.Module):
    """One step after the other."""

    def __init__(self, steps: list[tuple[str, int]]) -> None:
        super().__init__()
        self.steps = steps

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        for name, k in self.steps:
            x = STEPS[name](x, y, k)
        return x


@settings(deadline=None, max_examples=40, derandomize=True)
@given(st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.integers(1, 4)), min_size=1, max_size=4))
def test_what_is_captured_is_right(steps: list[tuple[str, int]]) -> None:
    model, example = Random(steps), (torch.rand(5, 4), torch.rand(7, 4))
    try:
        program = to_onnx(model, example, dynamic_shapes=SHAPES, capture="run")
    except ToOnnxError:
        return
    for number, (rows, others) in enumerate(NEVER_RUN):
        given = torch.randn(rows, 4) + number % 3 - 1, torch.randn(others, 4)
        wanted = _in_eager(model, given)
        if wanted is not None and wanted.numel():
            torch.testing.assert_close(program(*given)[0], wanted, rtol=1e-4, atol=1e-4)


def _in_eager(model: nn.Module, given: Any) -> Tensor | None:
    """What eager returns; None at sizes that it does not take, of which a file may do anything."""
    try:
        with torch.no_grad():
            returned: Tensor = model(*(tensor.clone() for tensor in given))
    except (RuntimeError, IndexError, ValueError):
        return None
    return returned
