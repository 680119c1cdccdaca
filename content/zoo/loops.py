"""Loops: in Python, with `scan`, with `while_loop`. Repeated layers are in submodules."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch._higher_order_ops.while_loop import while_loop

from exportlab.cases import Declaration, case
from exportlab.specs import integers, tensor


@case(dims={"batch": (4, 7, 1, 0)}, topics=("loops",))
def row_loop() -> Declaration:
    """A Python loop over the batch: is it a loop in the exported model?"""

    class RowLoop(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            y = x * 2
            for i in range(y.shape[0]):
                y[i] += torch.sin(y[i])
            return y

    return RowLoop(), (tensor("batch", 16),)


@case(dims={"batch": (4, 7, 1)}, topics=("loops", "control flow"))
def scan_sum() -> Declaration:
    """A running sum with `scan`: is its body captured once for any number of rows?"""

    def add(total: Tensor, row: Tensor) -> list[Tensor]:
        return [total + row, total + row]

    class RunningSum(nn.Module):
        def forward(self, x: Tensor) -> list[Tensor]:
            return torch.ops.higher_order.scan(add, [torch.zeros(3)], [x], [])

    return RunningSum(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("loops", "control flow"))
def halved_until_small() -> Declaration:
    """A `while_loop` that ends depending on values: does the exported model run the right number of iterations?"""

    def too_large(x: Tensor) -> Tensor:
        return x.abs().sum() > 1

    class HalvedUntilSmall(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            (small,) = torch._higher_order_ops.while_loop(too_large, lambda x: (x / 2,), (x,))
            return small

    return HalvedUntilSmall(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("loops", "layers"))
def layers_in_a_list() -> Declaration:
    """A loop over layers, each weighted by its number: does each layer appear once with its own weight?"""

    class Layers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(3))

        def forward(self, x: Tensor) -> Tensor:
            total = x
            for i, layer in enumerate(self.layers):
                total = total + i * layer(total).tanh()
            return total

    return Layers(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("loops",))
def fixed_time_axis() -> Declaration:
    """A loop over a static axis: is it unrolled in order?"""

    class Decayed(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            state = torch.zeros_like(x[:, 0])
            for t, step in enumerate(x.unbind(1)):
                state = state * 0.5 + step * t
            return state

    return Decayed(), (tensor("batch", 5, 3),)


@case(dims={"batch": (4, 7, 1)}, topics=("loops", "silence"))
def rows_unbound() -> Declaration:
    """A loop over `unbind` of a dynamic axis: does the exported model handle any number of rows?"""

    class Unbound(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.stack([row * i for i, row in enumerate(x.unbind(0))])

    return Unbound(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1)}, topics=("loops", "silence"))
def rows_iterated() -> Declaration:
    """`for row in x`, the shortest loop over a batch: do exporters detect that its length is dynamic?"""

    class Iterated(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return sum(row.cumsum(0) for row in x)

    return Iterated(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("loops", "silence"))
def parts_of_two_rows() -> Declaration:
    """`split(2)` gives a number of parts that depends on the batch: are there more for a larger batch?"""

    class Parts(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.cat([part.cumsum(0) for part in x.split(2)])

    return Parts(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1)}, topics=("loops", "silence"))
def two_chunks() -> Declaration:
    """`chunk(2)` of a dynamic size gives two parts, but only one for a single row: is the split right?"""

    class Chunks(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.cat([part - part.mean(0) for part in x.chunk(2)])

    return Chunks(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("loops", "silence"))
def at_most_six_turns() -> Declaration:
    """A loop with a fixed end breaks at the batch size: is the `break` at the end of the batch?"""

    class Breaks(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            total = torch.zeros(3)
            for i in range(6):
                if i >= x.shape[0]:
                    break
                total = total + x[i] * i
            return total

    return Breaks(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1)}, topics=("loops", "recursion", "silence"))
def halved_recursively() -> Declaration:
    """A function calls itself on both halves down to one row: does the depth follow the batch?"""

    class Tree(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            if x.shape[0] == 1:
                return x[0]
            middle = x.shape[0] // 2
            return self.forward(x[:middle]) - 0.5 * self.forward(x[middle:])

    return Tree(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("loops", "recursion"))
def recursion_of_depth_three() -> Declaration:
    """A function calls itself three times, with a parameter: is it unrolled?"""

    class Nested(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.randn(3))

        def forward(self, x: Tensor, depth: int = 3) -> Tensor:
            return x if depth == 0 else torch.tanh(self.forward(x * self.scale, depth - 1)) + depth

    return Nested(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("loops",))
def python_while_on_value() -> Declaration:
    """A Python `while` on values: which exporters refuse it, and which keep the example's number of iterations?"""

    class HalvedInPython(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            while x.abs().sum() > 1:
                x = x / 2
            return x

    return HalvedInPython(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("loops", "Python values"))
def weights_as_numbers() -> Declaration:
    """`tolist()` of an input gives three Python numbers to a loop: are they read at each call?"""

    class Weighted(nn.Module):
        def forward(self, x: Tensor, weights: Tensor) -> Tensor:
            total = torch.zeros_like(x)
            for power, weight in enumerate(weights.tolist()):
                total = total + weight * x**power
            return total

    return Weighted(), (tensor("batch", 3), tensor(3))


@case(dims={"tokens": (6, 9, 1, 3)}, topics=("loops", "mixture of experts"))
def experts_in_turn() -> Declaration:
    """Each expert gets the rows that selected it and is skipped without any: is the run-time test exported?"""

    class Experts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.router, self.experts = nn.Linear(4, 3), nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

        def forward(self, x: Tensor) -> Tensor:
            chosen, out = self.router(x).argmax(1), torch.zeros_like(x)
            for i, expert in enumerate(self.experts):
                rows = (chosen == i).nonzero().squeeze(1)
                if rows.shape[0] > 0:
                    out.index_add_(0, rows, expert(x[rows]))
            return out

    return Experts(), (tensor("tokens", 4),)


@case(dims={"tokens": (6, 9, 1, 0)}, topics=("loops", "mixture of experts", "rewritten"))
def experts_all_at_once() -> Declaration:
    """The same experts applied to all rows, with zero weights if not selected: is it exported, at more cost?"""

    class Experts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.router, self.experts = nn.Linear(4, 3), nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

        def forward(self, x: Tensor) -> Tensor:
            chosen = nn.functional.one_hot(self.router(x).argmax(1), 3).to(x.dtype)
            return torch.einsum("te,teh->th", chosen, torch.stack([expert(x) for expert in self.experts], 1))

    return Experts(), (tensor("tokens", 4),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("loops", "control flow"))
def turns_as_input() -> Declaration:
    """An input sets how often a `while_loop` applies a layer, even zero times: is it read at run time?"""

    class Repeated(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(3, 3)

        def forward(self, x: Tensor, turns: Tensor) -> Tensor:
            return while_loop(lambda left, x: left > 0, lambda left, x: (left - 1, self.linear(x)), (turns, x))[1]

    return Repeated(), (tensor("batch", 3), integers(high=4))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("loops", "control flow"))
def no_turn_in_the_example() -> Declaration:
    """A `while_loop` over the rows after the fourth has no iteration in the example: is its body exported?"""

    class Beyond(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            first = torch.tensor(4)
            return while_loop(lambda i, x: i < x.shape[0], lambda i, x: (i + 1, x * 2 + i), (first, x))[1]

    return Beyond(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("loops", "control flow", "convergence"))
def newtons_root() -> Declaration:
    """Newton iterations until convergence, at most ten: does the slowest value decide their number?"""

    class Root(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            square = x.abs() + 0.5

            def coarse(i: Tensor, r: Tensor) -> Tensor:
                return (i < 10) & ((r * r - square).abs() > 1e-2 * square).any()

            start = (torch.zeros((), dtype=torch.int64), square.clone())
            return while_loop(coarse, lambda i, r: (i + 1, (r + square / r) / 2), start)

    return Root(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("loops", "control flow"))
def three_values_carried() -> Declaration:
    """A counter and two matrices are carried, one becomes the other: are values of the previous iteration used?"""

    class Fibonacci(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
            start = (torch.zeros((), dtype=torch.int64), x, y)
            _, a, b = while_loop(lambda i, a, b: i < 5, lambda i, a, b: (i + 1, b.clone(), a + b), start)
            return a, b

    return Fibonacci(), (tensor("batch", 3), tensor("batch", 3))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("loops", "control flow"))
def cond_in_a_loop() -> Declaration:
    """Each iteration of a `while_loop` runs one of two branches: is the branch decided each time?"""

    class UpAndDown(nn.Module):
        def turn(self, i: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
            return i + 1, torch.cond(x.sum() > 0, lambda x: x - 1, lambda x: x * 0.5 + 1, (x,))

        def forward(self, x: Tensor) -> Tensor:
            return while_loop(lambda i, x: i < 6, self.turn, (torch.zeros((), dtype=torch.int64), x))[1]

    return UpAndDown(), (tensor("batch", 3),)


@case(dims={"prompt": (4, 6, 1, 3)}, topics=("loops", "control flow", "generation"))
def greedy_tokens() -> Declaration:
    """Greedy decoding with a `while_loop` that fills a buffer until token 0 or five tokens: is it in one model?"""

    class Greedy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.head = nn.Embedding(8, 6), nn.Linear(6, 8)

        def forward(self, prompt: Tensor) -> Tensor:
            state = self.embedding(prompt).mean(0)
            start = (torch.zeros((), dtype=torch.int64), prompt[-1].clone(), state, torch.full((5,), -1))
            return while_loop(lambda i, token, state, made: (i < 5) & (token != 0), self.step, start)[3]

        def step(self, i: Tensor, token: Tensor, state: Tensor, made: Tensor) -> tuple[Tensor, ...]:
            state = torch.tanh(state * 0.5 + self.embedding(token))
            token = self.head(state).argmax()
            return i + 1, token, state, torch.where(torch.arange(5) == i, token, made)

    return Greedy(), (integers("prompt", low=1, high=8),)
