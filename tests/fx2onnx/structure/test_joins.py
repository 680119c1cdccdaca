"""Paths that part at a test join again behind it: a file is as long as the model, not as its paths, and right on all of them."""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Callable, Iterator
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from modules import Of
from torch import Tensor, nn

from exportlab import verify
from exportlab.outcomes import Outcome
from fx2onnx import ToOnnxError, to_onnx
from fx2onnx.structure.path_combinations import covering

ROWS = ({0: "rows"},)


def nodes_of(graph: onnx.GraphProto) -> int:
    """Count the nodes, those inside others among them."""
    inner = (part.g for node in graph.node for part in node.attribute if part.type == onnx.AttributeProto.GRAPH)
    return len(graph.node) + sum(map(nodes_of, inner))


class Sequential(nn.Module):
    """Makes tests one after another, of values, sizes, or by turns, and then calls some layers."""

    def __init__(self, tests: int, kind: str = "values") -> None:
        super().__init__()
        self.tests, self.kind = tests, kind
        self.tail = nn.Sequential(*(nn.Sequential(nn.Linear(4, 4), nn.ReLU()) for _ in range(5)))

    def forward(self, x: Tensor) -> Tensor:
        for i in range(self.tests):
            is_of_a_size = self.kind == "sizes" or (self.kind == "both" and i % 2)
            x = x * 2 if (x.shape[0] > 2 * i + 2 if is_of_a_size else x.sum() > i) else x - 1
        return self.tail(x)


def exported(model: nn.Module) -> Any:
    return to_onnx(model.eval(), (torch.rand(3, 4),), dynamic_shapes=ROWS, capture="run")


@pytest.mark.parametrize(("kind", "most"), [("values", 8), ("sizes", 5), ("both", 5)])
def test_each_test_adds_the_same_number_of_nodes(kind: str, most: int) -> None:
    counts = [nodes_of(exported(Sequential(tests, kind)).model_proto.graph) for tests in range(1, most)]
    assert max(after - before for before, after in pairwise(counts)) <= 6


def test_twelve_tests_in_a_row_are_right() -> None:
    model = Sequential(12)
    samples = [(torch.randn(rows, 4) * spread + shift,) for rows in (1, 2, 5) for spread in (0.1, 1, 5) for shift in (-1.0, 0.0, 0.5, 2.0)]
    assert verify(exported(model), model, samples).outcome is Outcome.OK


def nested(x: Tensor) -> Tensor:
    h = x * 1
    if x.sum() > 0:
        h = h + 1
        if x[0, 0] > 0.2:
            h = h * 2
            if x[0, 1] > 0:
                h = h - 3
        elif x[0, 2] > 0:
            h = -h
    return torch.relu(h).cumsum(1)


def chain(x: Tensor) -> Tensor:
    if x.sum() > 3:
        h = x * 2
    elif x.sum() > 0:
        h = x * 3
    elif x[0, 0] > 0:
        h = x * 4
    else:
        h = x
    return torch.tanh(h)


def several(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    a, b = (x + 1, x * 2) if x.sum() > 0 else (x * 2, x - 1)
    if x[0, 0] > 0:
        a, b = b, a
    return a + b, a - b, b


def written_in_place(x: Tensor) -> Tensor:
    h = x * 1
    if x.sum() > 0:
        h.add_(1)
    if x[0, 0] > 0:
        h[:, 0] = 2
    else:
        h.mul_(3)
    return h * 2


def a_view_on_one_side(x: Tensor) -> tuple[Tensor, Tensor]:
    h = x * 1
    first = h.view(-1, 4) if x.sum() > 0 else x * 2
    if x[0, 0] > 0:
        first.add_(1)
    return first, h


def one_flag(x: Tensor) -> Tensor:
    is_set, h = False, x * 2
    if x.sum() > 0:
        is_set = True
    if x[0, 0] > 0:
        h = h + 1
    return h * 3 if is_set else h


def two_flags(x: Tensor) -> Tensor:
    one = bool(x.sum() > 0)
    other = bool(x[0, 0] > 0)
    h = x * 2
    if x[0, 1] > 0:
        h = h + 1
    if one and other:
        h = h * 3
    return h - 1


def early(x: Tensor) -> Tensor:
    if x.sum() > 3:
        return x
    h = x * 2 if x[0, 0] > 0 else x + 1
    if h.sum() > 1:
        return h
    return h * 3 if x[0, 1] > 0 else -h


def behind_a_size(x: Tensor) -> Tensor:
    h = x * 2 if x.sum() > 0 else x
    if x.shape[0] > 4:
        h = h + 1 if x[0, 0] > 0 else h - x.shape[0]
    return torch.relu(h) if x.shape[0] > 2 else h.cumsum(0)


MODELS: dict[str, Callable[[Tensor], Any]] = {
    function.__name__: function for function in (nested, chain, several, written_in_place, one_flag, two_flags, early, behind_a_size)
}


@pytest.mark.parametrize("name", MODELS)
def test_all_combinations_are_right(name: str) -> None:
    function = MODELS[name]
    program = exported(Of(function))
    assert program.report.branches
    torch.manual_seed(2)
    for rows, scale, shift in product((1, 2, 3, 5, 9), (0.1, 0.5, 2), (-1.0, 0.0, 0.3, 1.0)):
        x = torch.randn(rows, 4) * scale + shift
        wanted = function(x.clone())
        for found, own in zip(program(x), wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
            torch.testing.assert_close(found, own, rtol=1e-4, atol=1e-5)


def test_a_write_that_reaches_another_tensor_on_one_side_is_refused() -> None:
    with pytest.raises(ToOnnxError, match=r"writes at .* reads a view of it"):
        exported(Of(a_view_on_one_side))


def counted(x: Tensor) -> Tensor:
    number = 0
    for i in range(6):
        if x[0, i % 4] > i / 10:
            number += 1
    return x * 3 if number == 4 else x


def test_what_a_combination_of_decisions_alone_does_is_not_missed() -> None:
    with pytest.raises(ToOnnxError, match="more than 16 paths"):
        exported(Of(counted))


def test_auto_says_the_reason_of_the_runs_first() -> None:
    with pytest.raises(ToOnnxError, match=r"more than 16 paths.*in counted") as refused:
        to_onnx(Of(counted).eval(), (torch.rand(3, 4),), dynamic_shapes=ROWS)
    assert refused.value.__notes__[0].startswith("torch.export also fails")


@pytest.mark.parametrize("number", [3, 5, 9, 30])
def test_combinations_have_every_choice_of_two(number: int) -> None:
    rows = [*covering([{}] * number)]
    pairs = product(range(number), range(number))
    assert all({(row[a], row[b]) for row in rows} == set(product((True, False), repeat=2)) for a, b in pairs if a != b)


def test_combinations_have_every_choice_that_is_reached() -> None:
    rows = [*covering([{}, {0: True}, {}, {2: True}, {2: True, 3: True}])]
    assert {(row[0], row[2]) for row in rows} == set(product((True, False), repeat=2))
    assert any(row[0] and row[1] and row[2] and row[3] and not row[4] for row in rows)


NAMES = "abc"
WRITES = ("{0}.add_(1)", "{0}.mul_(0.5)", "{0}[:, 0] = 0.5", "{0}.copy_({1} * 2)")
CALLS = ("{1} * 2", "{1} + {2}", "{1} - {2} * 0.5", "torch.relu({1})", "{1}.clone()", "-{1}", "{1}", "{1}.view(-1, 4)", "{1}.flip(1)")
OF_VALUES = ("{1}.sum() > {3}", "{1}[0, 0] < {3}", "({1}.mean() > {3}) and ({2}.min() > {3} - 1)")
OF_SIZES = ("x.shape[0] > {4}", "x.shape[0] < {4}")


class Written:
    """The text of a random function."""

    def __init__(self, seed: int) -> None:
        self._drawn = random.Random(seed)
        body = [*self._block(2, 6, 1)]
        self.text = "\n".join(
            ["import torch", "", "def forward(x):", "    f = False", "    a, b, c = x * 1, x + 1, x * 2", *body, "    return a + c, b", ""]
        )

    def _filled(self, texts: tuple[str, ...]) -> str:
        names = (self._drawn.choice(NAMES) for _ in range(3))
        return self._drawn.choice(texts).format(*names, round(self._drawn.uniform(-2, 2), 3), self._drawn.randint(2, 6))

    def _block(self, depth: int, statements: int, indent: int) -> Iterator[str]:
        space = "    " * indent
        for _ in range(statements):
            drawn = self._drawn.random()
            if drawn < 0.35 and depth:
                yield f"{space}if {self._filled(OF_VALUES if self._drawn.random() < 0.8 else OF_SIZES)}:"
                yield from self._block(depth - 1, 2, indent + 1)
                if self._drawn.random() < 0.5:
                    yield f"{space}else:"
                    yield from self._block(depth - 1, 1, indent + 1)
            elif drawn < 0.5:
                yield space + self._filled(WRITES)
            elif drawn < 0.55:
                yield f"{space}f = not f"
            elif drawn < 0.6:
                yield f"{space}a = a + 3 if f else a"
            else:
                yield f"{space}{self._drawn.choice(NAMES)} = {self._filled(CALLS)}"


@pytest.mark.parametrize("seed", range(50))
def test_random_branches_are_right_or_refused(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "random_function.py"
    path.write_text(Written(seed).text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("random_function", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    torch.manual_seed(seed)
    try:
        program = exported(Of(module.forward))
    except ToOnnxError:
        return
    for rows, scale, shift in product((1, 2, 3, 5, 7), (0.3, 1.0, 3.0), (-1.0, 0.0, 1.0)):
        x = torch.randn(rows, 4) * scale + shift
        for found, own in zip(program(x), module.forward(x.clone()), strict=True):
            torch.testing.assert_close(found, own, rtol=1e-4, atol=1e-4)
