"""Random programs over two moving sizes, and whether a file gives what eager gives; `python random_programs.py FIRST COUNT` tries many."""

from __future__ import annotations

import math
import random
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fx2onnx import ToOnnxError, to_onnx

Step = Callable[[Tensor, Tensor, int], Tensor]
Arguments = tuple[Tensor, Tensor]
SHAPES = ({0: "rows"}, {0: "others"})
NEVER_RUN = ((1, 1), (2, 3), (3, 2), (4, 17), (8, 5), (16, 16), (33, 70))
NUDGES = 24
AS_FAR = 4  # times as far from float64 as eager
CLOSE = {"rtol": 1e-4, "atol": 1e-4, "equal_nan": True}

BRANCHES: dict[str, Step] = {  # x is (n, 4), y is (m, 4), k from 1 to 4; each step gives (anything, 4)
    "a test of a size": lambda x, y, k: x * 2 if x.shape[0] > k else x,
    "a test of two sizes": lambda x, y, k: x * 2 if x.shape[0] >= y.shape[0] else x,
    "a test of a rest": lambda x, y, k: x * 2 if x.shape[0] % (k + 1) == 0 else x,
    "a test of the other size": lambda x, y, k: x + y.sum(0) if y.shape[0] > 2 * k else x - 1,
    "one of some sizes": lambda x, y, k: -x if x.shape[0] in (k, 2 * k, 7 * k) else x,
    "a test of a value": lambda x, y, k: x * 2 if x.sum() > k else x,
    "a test of all values": lambda x, y, k: x * 2 if bool((x > -k).all()) else -x,
    "a test within a test": lambda x, y, k: (x * 3 if y.max() > 1 else x - k) if x.sum() > 0 else y[:k] * 2,
    "written where a value says": lambda x, y, k: _written_where(x.clone(), k),
    "scaled down while it is large": lambda x, y, k: _scaled_down(x, k),
    "a number compared": lambda x, y, k: x * 2 if x.mean().item() > 1 / k else x - y.sum(0),
    "a test of either": lambda x, y, k: x.abs() if x.min() < -k or y.max() > x.max() else x,
    "a value and a size": lambda x, y, k: x * 3 if x.shape[0] > 2 * k and x.sum() < 0 else x,
    "refused above": lambda x, y, k: _refused_above(x, 8 * k),
    "refused by a value": lambda x, y, k: _refused_by_a_value(x, k),
    "the smaller of two sizes": lambda x, y, k: x[: min(x.shape[0], y.shape[0])] + y[: min(x.shape[0], y.shape[0])],
    "at least some rows": lambda x, y, k: F.pad(x, (0, 0, 0, max(0, 2 * k - x.shape[0]))),
    "at most some rows": lambda x, y, k: x[: min(x.shape[0], 3 * k)],
}
LOOPS: dict[str, Step] = {
    "turns": lambda x, y, k: sum((x * i for i in range(k)), x),
    "a turn for each row": lambda x, y, k: torch.stack([row * k for row in x]),
    "turns of a size": lambda x, y, k: sum((x * i for i in range(x.shape[0] // k)), x),
    "a state carried": lambda x, y, k: _carried(x, k),
    "a state carried backwards": lambda x, y, k: torch.stack(_states(x.flip(0), k)[::-1]),
    "rows by number": lambda x, y, k: torch.stack([x[t] * (t + k) for t in range(x.shape[0])]),
    "rows backwards": lambda x, y, k: torch.stack([x[t] - k for t in reversed(range(x.shape[0]))]),
    "rows written": lambda x, y, k: _rows_written(x, k),
    "a column written": lambda x, y, k: _column_written(x.clone(), k),
    "rows of the other added": lambda x, y, k: _rows_added(x.clone(), y),
    "each row of the other attended": lambda x, y, k: torch.stack([torch.softmax(x @ row, 0) @ x for row in y]),
    "one row after each": lambda x, y, k: torch.cat([torch.cat([row[None]] * k) for row in x]),
    "an LSTM's cell": lambda x, y, k: _cells(x, k),
    "two loops": lambda x, y, k: torch.stack([row - s for row, s in zip(x, _states(x, k), strict=True)]),
    "the largest so far": lambda x, y, k: _largest_so_far(x),
    "in parts": lambda x, y, k: torch.cat([part.cumsum(0) for part in x.split(k)]),
    "while rows are left": lambda x, y, k: _while_rows_are_left(x, k),
    "every k written": lambda x, y, k: _every_k_written(x.clone(), k),
}
VIEWS: dict[str, Step] = {
    "first part": lambda x, y, k: x[: x.shape[0] // k],
    "last rows": lambda x, y, k: x[-k:],
    "without the last": lambda x, y, k: x[:-k],
    "every k": lambda x, y, k: x[::k],
    "from k": lambda x, y, k: x[k:],
    "as long as the other": lambda x, y, k: x[: y.shape[0]],
    "turned": lambda x, y, k: x.T.reshape(-1, 4),
    "whole parts": lambda x, y, k: x[: x.shape[0] // k * k].view(-1, k, 4).mean(1),
    "repeated": lambda x, y, k: x.repeat(k, 1),
    "expanded": lambda x, y, k: x[None].expand(k, -1, -1).reshape(-1, 4),
    "expanded to the other": lambda x, y, k: (x[:, None] * y[None]).mean(1),
    "interleaved": lambda x, y, k: x.repeat_interleave(k, 0),
    "rolled": lambda x, y, k: x.roll(k, 0),
    "flipped": lambda x, y, k: x.flip(0),
    "narrow": lambda x, y, k: x.narrow(0, x.shape[0] // 2, x.shape[0] - x.shape[0] // 2),
    "swapped": lambda x, y, k: x.unflatten(1, (2, 2)).transpose(1, 2).flatten(1),
    "windows": lambda x, y, k: F.pad(x, (0, 0, 0, 4)).unfold(0, k, k).sum(-1),
    "overlapping windows": lambda x, y, k: F.pad(x, (0, 0, 0, 4)).unfold(0, k, 1).amax(-1),
    "a half of it twice": lambda x, y, k: torch.cat(x.chunk(2)),
    "split and put together": lambda x, y, k: torch.cat(x.split(k)[::-1]),
    "strided": lambda x, y, k: x.contiguous().as_strided((x.shape[0], 4), (4, 1)) * k,
    "a diagonal": lambda x, y, k: x + (x @ x.T).diagonal()[:, None] / 8,
    "one row for all": lambda x, y, k: x[-1:].expand_as(x) + x / k,
}
WRITES: dict[str, Step] = {
    "a column set": lambda x, y, k: _set(x.clone(), k),
    "rows set": lambda x, y, k: _rows_set(x.clone(), k),
    "written through a view": lambda x, y, k: _written_through_a_view(x.clone(), k),
    "written through a transposed view": lambda x, y, k: _written_through_a_transposed(x.clone(), k),
    "written into what was given": lambda x, y, k: x.mul_(1 / k),
    "set where it is negative": lambda x, y, k: _set_where(x.clone(), k),
    "filled at places": lambda x, y, k: x.clone().index_fill_(0, torch.tensor([0, -1]) % x.shape[0], float(k)),
    "added at places": lambda x, y, k: x.clone().index_add_(0, torch.arange(y.shape[0]) % x.shape[0], y / k),
    "put at places": lambda x, y, k: x.index_put((torch.arange(x.shape[0]) // k,), x, accumulate=True),
    "scattered": lambda x, y, k: torch.zeros_like(x).scatter_(0, torch.arange(x.shape[0]).flip(0)[:, None].expand(-1, 4), x),
    "a tensor filled in": lambda x, y, k: _filled_in(x, y, k),
    "a view read after a write": lambda x, y, k: _view_read_after(x.clone(), k),
    "swapped halves": lambda x, y, k: _swapped_halves(x.clone()),
}
PLAIN: dict[str, Step] = {
    "one after the other": lambda x, y, k: torch.cat([x, y]),
    "padded": lambda x, y, k: F.pad(x, (0, 0, k, 0)),
    "padded to a multiple": lambda x, y, k: F.pad(x, (0, 0, 0, -x.shape[0] % k)),
    "summed up": lambda x, y, k: x.cumsum(0),
    "weighed by place": lambda x, y, k: x * torch.arange(x.shape[0])[:, None] / x.shape[0],
    "scaled by sizes": lambda x, y, k: x * (x.shape[0] * k - y.shape[0]),
    "scaled by a root": lambda x, y, k: x / (x.shape[0] + k) ** 0.5,
    "scaled by a root of math": lambda x, y, k: x / math.sqrt(x.shape[0] * k),
    "attends": lambda x, y, k: torch.softmax(x @ y.T / 2, -1) @ y,
    "attends itself": lambda x, y, k: F.scaled_dot_product_attention(x[None], x[None], x[None], is_causal=True)[0],
    "attends backwards": lambda x, y, k: (x @ x.T).tril(-k) @ x / x.shape[0],
    "pooled": lambda x, y, k: F.max_pool1d(F.pad(x.T[None], (0, 2 * k)), k + 1).squeeze(0).T,
    "pooled to k": lambda x, y, k: F.adaptive_avg_pool1d(x.T[None], k).squeeze(0).T,
    "folded over": lambda x, y, k: F.conv1d(F.pad(x.T[None], (k, k)), torch.ones(4, 4, 3) / 3, stride=k).squeeze(0).T,
    "unfolded by a convolution": lambda x, y, k: F.conv_transpose1d(x.T[None], torch.ones(4, 4, k) / 4, stride=k).squeeze(0).T,
    "resized": lambda x, y, k: F.interpolate(x.T[None], scale_factor=float(k)).squeeze(0).T,
    "resized to the other": lambda x, y, k: F.interpolate(x.T[None], size=y.shape[0]).squeeze(0).T,
    "resized by lines": lambda x, y, k: F.interpolate(x.T[None], size=k * x.shape[0] + 1, mode="linear").squeeze(0).T,
    "the mean of all": lambda x, y, k: x - x.mean(0),
    "the mean where there is one": lambda x, y, k: x - y.sum(0) / max(y.shape[0], k),
    "normalised": lambda x, y, k: F.layer_norm(x, (4,)),
    "sorted": lambda x, y, k: x.sort(0).values,
    "the k largest": lambda x, y, k: F.pad(x, (0, 0, 0, k)).topk(k, 0).values,
    "without a sign": lambda x, y, k: x.abs().clamp(min=0.1 * k),
    "looked up": lambda x, y, k: x[(torch.arange(y.shape[0]) * k) % x.shape[0]],
    "a table of sizes": lambda x, y, k: x * torch.tensor([x.shape[0], y.shape[0], k, 1]) / 8,
    "near the diagonal": lambda x, y, k: (torch.arange(x.shape[0])[:, None] - torch.arange(y.shape[0])).abs().le(k).float() @ y,
    "distances": lambda x, y, k: torch.cdist(x, y).amin(1, keepdim=True) + x,
    "whole numbers": lambda x, y, k: (x * 4).long().clamp(-k, k) // 2 + x * 0,
    "chosen": lambda x, y, k: torch.where(x > 1 / k, x, x.mean() - 1),
}
STEPS = BRANCHES | LOOPS | VIEWS | WRITES | PLAIN


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


def _refused_by_a_value(x: Tensor, k: int) -> Tensor:
    if x.abs().max() > 10 * k:
        raise ValueError("too large")
    return x / k


def _rows_set(x: Tensor, k: int) -> Tensor:
    x[k:] += 1
    x[: x.shape[0] // 2].mul_(k)
    return x


def _states(x: Tensor, k: int) -> list[Tensor]:
    state, states = torch.zeros(4), []
    for row in x:
        state = torch.tanh(state / 2 + row / k)
        states.append(state)
    return states


def _carried(x: Tensor, k: int) -> Tensor:
    state = torch.zeros(4)
    for t in range(x.shape[0]):
        state = state * 0.5 + x[t] / k
    return x + state


def _rows_written(x: Tensor, k: int) -> Tensor:
    out = torch.zeros_like(x)
    for t in range(x.shape[0]):
        out[t] = x[t] * k + out[t - 1] / 2
    return out


def _column_written(x: Tensor, k: int) -> Tensor:
    for t in range(1, x.shape[0]):
        x[t, k % 4] = x[t - 1, 0] + x[t, 1]
    return x


def _rows_added(x: Tensor, y: Tensor) -> Tensor:
    for row in y:
        x += row / 4
    return x


def _cells(x: Tensor, k: int) -> Tensor:
    h, c, weight, states = torch.zeros(1, 4), torch.zeros(1, 4), torch.ones(16, 4) / (4 * k), []
    for row in x:
        h, c = torch._VF.lstm_cell(row[None], (h, c), weight, weight, None, None)  # type: ignore[attr-defined]
        states.append(h[0])
    return torch.stack(states)


def _largest_so_far(x: Tensor) -> Tensor:
    best, rows = x[0], []
    for row in x:
        best = torch.maximum(best, row)
        rows.append(best)
    return torch.stack(rows)


def _while_rows_are_left(x: Tensor, k: int) -> Tensor:
    at, parts = 0, []
    while at < x.shape[0]:
        parts.append(x[at : at + k].sum(0))
        at += k
    return torch.stack(parts)


def _every_k_written(x: Tensor, k: int) -> Tensor:
    for t in range(0, x.shape[0], k):
        x[t] = x[t] * 2
    return x


def _written_through_a_view(x: Tensor, k: int) -> Tensor:
    part = x.reshape(-1, 2, 2)[:, 0]
    part.add_(k)
    x.narrow(0, 0, x.shape[0] // 2).mul_(2)
    return x + part.sum()


def _written_through_a_transposed(x: Tensor, k: int) -> Tensor:
    x.T[k % 4].mul_(k)
    x.T[:, ::2].sub_(1)
    return x


def _set_where(x: Tensor, k: int) -> Tensor:
    x[x < 0] = 0.5 * k
    return x


def _filled_in(x: Tensor, y: Tensor, k: int) -> Tensor:
    out = x.new_full((x.shape[0] + y.shape[0] + k, 4), float(k))
    out[: x.shape[0]] = x
    out[x.shape[0] + k :] += y
    return out


def _view_read_after(x: Tensor, k: int) -> Tensor:
    view = x[:, 1:3]
    x[:, k % 4] += 1
    x *= 2
    return torch.cat([view, view.flip(1)], 1)


def _swapped_halves(x: Tensor) -> Tensor:
    half = x.shape[0] // 2
    x[:half], x[x.shape[0] - half :] = x[x.shape[0] - half :].clone(), x[:half].clone()
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


def random_steps(source: random.Random) -> list[tuple[str, int]]:
    """One to four steps, each kind of them as often as another."""
    kinds = (BRANCHES, LOOPS, VIEWS, WRITES, PLAIN)
    return [(source.choice(list(source.choice(kinds))), source.randint(1, 4)) for _ in range(source.randint(1, 4))]


def given(seed: int) -> Iterator[Arguments]:
    """Arguments of sizes that were never run."""
    source = torch.Generator().manual_seed(seed)
    for number, (rows, others) in enumerate(NEVER_RUN):
        yield torch.randn(rows, 4, generator=source) + number % 3 - 1, torch.randn(others, 4, generator=source)


def in_eager(model: nn.Module, arguments: Any) -> Tensor | None:
    """What eager returns; None at sizes that it does not take, of which a file may do anything."""
    try:
        with torch.no_grad():
            returned: Tensor = model(*(tensor.clone() for tensor in arguments))
    except (RuntimeError, IndexError, ValueError):
        return None
    return returned


def _nudged(arguments: Arguments) -> Iterator[Arguments]:
    """The arguments as they are, in float64, and moved by some units in the last place."""
    source = torch.Generator().manual_seed(0)
    yield (arguments[0].double(), arguments[1].double())
    for _ in range(NUDGES):
        x, y = (tensor * (1 + 1e-6 * torch.randn(tensor.shape, generator=source)) for tensor in arguments)
        yield x, y


def is_close(one: Tensor, other: Tensor) -> bool:
    """Whether two results are equal but for rounding."""
    return one.shape == other.shape and torch.allclose(one.double(), other.double(), **CLOSE)


def is_a_tie(model: nn.Module, arguments: Arguments, found: Tensor) -> bool:
    """Whether eager itself returns what was found, when its arguments are moved by a rounding: then a test stands at its threshold."""
    return any(is_close(found, wanted) for wanted in (in_eager(model, at) for at in _nudged(arguments)) if wanted is not None)


def is_rounding(model: nn.Module, arguments: Arguments, found: Tensor, wanted: Tensor) -> bool:
    """Whether what was found is about as far from the answer in float64 as eager itself is: eager had lost those digits already."""
    exact = in_eager(model, (arguments[0].double(), arguments[1].double()))
    if exact is None or exact.shape != wanted.shape or found.shape != wanted.shape:
        return False
    lost, differs = ((exact - one.double()).abs().max().item() for one in (wanted, found))
    return differs <= AS_FAR * lost


def what_is_wrong(program: Any, model: nn.Module, seed: int = 0) -> str:
    """Say where a file gives something that eager gives neither there nor within a rounding; nothing if it nowhere does."""
    for arguments in given(seed):
        wanted = in_eager(model, arguments)
        if wanted is None or not wanted.numel():
            continue
        found = program(*(tensor.clone() for tensor in arguments))[0]
        if not (is_close(found, wanted) or is_rounding(model, arguments, found, wanted) or is_a_tie(model, arguments, found)):
            return f"{found.tolist()} is not {wanted.tolist()} at {[len(tensor) for tensor in arguments]}"
    return ""


def _outcome(seed: int) -> str:
    """Capture one program by running, and hold its file against eager."""
    torch.manual_seed(seed)
    model, example = Random(random_steps(random.Random(seed))), (torch.rand(5, 4), torch.rand(7, 4))
    if in_eager(model, example) is None:
        return "refused by eager"
    try:
        program = to_onnx(model, example, dynamic_shapes=SHAPES, capture="run")
    except ToOnnxError:
        return "refused"
    wrong = what_is_wrong(program, model, seed)
    if wrong:
        print(seed, model.steps, wrong, flush=True)
    return "wrong" if wrong else "right"


def main(first: int, count: int) -> None:
    """Print what became of the programs of these seeds, and each that is wrong."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    print(Counter(map(_outcome, range(first, first + count))))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
