"""Equal blocks are noted once in a run, and only where that says all: whatever else a block does, the file is right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from stacks import ALLOW_GROWN_BUFFERS, Block, Stack, X, stack
from torch import Tensor, nn

from exportlab import to_onnx, verify
from fx2onnx.paths import explore
from fx2onnx.structure.equal_blocks import BlocksOfRun
from fx2onnx.trace.run import Tracer

SAMPLES = [(X,), (ALLOW_GROWN_BUFFERS,), (torch.randn(1, 8),), (torch.randn(70, 8),)]


@pytest.fixture
def unseen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The blocks that ran unseen, in the order of their calls in all runs."""
    paths: list[str] = []
    of_class = BlocksOfRun._unseen

    def noted(self: BlocksOfRun, first: Any, call: Any, *rest: Any) -> Any:
        paths.append(call.path)
        return of_class(self, first, call, *rest)

    monkeypatch.setattr(BlocksOfRun, "_unseen", noted)
    return paths


def checked(model: nn.Module) -> Any:
    """The file, right at sizes that were never run."""
    program = to_onnx(model, (X,), dynamic_shapes=({0: "batch"},), capture="run")
    verify(program, model, SAMPLES).check()
    return program


def test_all_but_the_first_run_unseen(unseen: list[str]) -> None:
    checked(stack())
    assert set(unseen) == {"blocks.1", "blocks.2", "blocks.3"}


def test_the_graph_is_that_of_blocks_that_are_all_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = checked(stack())
    monkeypatch.setattr(explore, "EqualBlocks", lambda model: Nothing())
    noted = checked(stack())
    assert nodes(shared) == nodes(noted)
    assert names_of_modules(shared) == names_of_modules(noted)


class Nothing:
    """No block is equal to another."""

    known = ()

    def noted(self, tracer: Tracer) -> Any:
        return torch.no_grad()


def nodes(program: Any) -> list[Any]:
    return [(node.op_type, [value and value.name for value in node.inputs]) for node in program.model.graph]


def names_of_modules(program: Any) -> list[Any]:
    return [dict(node.metadata_props) for node in program.model.graph]


def retuned(model: Stack) -> None:
    model.blocks[2].factor = 3.0


def moved_from_its_class(model: Stack) -> None:
    model.blocks[2].offset = 3.0


def tied_to_another(model: Stack) -> None:
    model.blocks[2].first = model.blocks[1].first


def twice_the_same(model: Stack) -> None:
    model.blocks[2] = model.blocks[1]


def hooked(model: Stack) -> None:
    model.blocks[2].register_forward_hook(lambda module, args, result: result + 1)


@pytest.mark.parametrize("change", [retuned, moved_from_its_class, tied_to_another, twice_the_same, hooked])
def test_a_block_that_differs_is_right(change: Callable[[Stack], None]) -> None:
    model = stack()
    change(model)
    checked(model)


class Of(Block):
    """A block of a function of itself and its input."""

    def __init__(self, function: Callable[[Block, Tensor], Any], index: int = 0) -> None:
        super().__init__(index=index)
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(self, x)


def written_afterwards(block: Block, x: Tensor) -> Tensor:
    """Its input is what another block returned, of which a view is written."""
    x = x.clone() if block.index == 0 else x
    x[:, 0].add_(1)
    return block.first(x)


COUNTED = {"calls": 0}


def third(usual: Any, other: Any) -> Any:
    """What every third call takes, of which no attribute tells."""
    COUNTED["calls"] += 1
    return other if COUNTED["calls"] % 4 == 3 else usual


KEPT: list[Tensor] = []


def past_its_arguments(block: Block, x: Tensor) -> Tensor:
    """It reads what the block before left elsewhere."""
    y = block.first(x) + (KEPT.pop() if KEPT and block.index else 0)
    KEPT[:] = [x * 2] if block.index < 3 else []
    return y


KINDS: dict[str, Callable[[Block, Tensor], Any]] = {
    "a constant of its own": lambda block, x: block.first(x) + torch.tensor([1.0] * 8),
    "a constant of its number": lambda block, x: block.first(x) + torch.tensor([float(block.index)] * 8),
    "a random state read": lambda block, x: nn.functional.dropout(block.first(x), 0.5, block.training),
    "its argument itself": lambda block, x: x,
    "a view of its argument": lambda block, x: x.view(-1, 8),
    "a weight": lambda block, x: x + block.first.weight.sum(0) if block.index == 3 else block.second(x),
    "a temporary written": lambda block, x: block.first(x).mul_(2).add_(x),
    "the other's result written": written_afterwards,
    "a size inside": lambda block, x: block.first(x) * x.shape[0] + torch.arange(x.shape[0])[:, None],
    "several results, one kept": lambda block, x: block.first(x).split(4, dim=1)[0].repeat(1, 2),
    "a test of values": lambda block, x: block.first(x) if x.sum() > 0 else block.second(x),
    "calls with another number": lambda block, x: block.first(x) * third(1, 2),
    "calls with another operator": lambda block, x: third(torch.relu, torch.sigmoid)(block.first(x)),
    "calls that read another tensor": lambda block, x: block.first(x) + third(x, block.second(x)),
    "calls with another constant": lambda block, x: block.first(x) + torch.tensor([third(1.0, 2.0)] * 8),
    "calls that return another tensor": lambda block, x: third(*(block.first(x), block.second(x))),
    "past its arguments": past_its_arguments,
}


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_a_block_does_the_file_is_right(kind: str) -> None:
    COUNTED["calls"] = 0
    KEPT.clear()
    checked(Stack([Of(KINDS[kind], index) for index in range(4)]).eval())


def test_what_is_written_after_a_block_is_not_written_in_its_weights() -> None:
    class Written(Stack):
        def forward(self, x: Tensor) -> Tensor:
            for block in self.blocks:
                x = block(x)
                x[:, :2] = 0
            return x

    checked(Written([Block(index=index) for index in range(4)]).eval())


class Filling(Stack):
    """Its blocks get a list, in which each leaves something for those that follow."""

    def forward(self, x: Tensor) -> Tensor:
        kept: list[Tensor] = []
        for block in self.blocks:
            x = block(x, kept)
        return x + sum(kept)  # type: ignore[return-value]


class Leaving(Block):
    """It leaves what it makes in a list."""

    def forward(self, x: Tensor, kept: list[Tensor]) -> Tensor:
        kept.append(self.second(x))
        return self.first(x)


def test_what_a_block_leaves_in_a_list_is_seen(unseen: list[str]) -> None:
    checked(Filling([Leaving(index=index) for index in range(4)]).eval())
    assert not unseen


class Cache:
    """A container that is not one of Python's own."""

    def __init__(self) -> None:
        self.kept: list[Tensor] = []


class Caching(Stack):
    """Its blocks get a container of the model's own, in which each leaves something."""

    def forward(self, x: Tensor) -> Tensor:
        cache = Cache()
        for block in self.blocks:
            x = block(x, cache)
        return x + sum(cache.kept)  # type: ignore[return-value]


class LeavingInACache(Block):
    """It leaves what it makes in a container of the model's own."""

    def forward(self, x: Tensor, cache: Cache) -> Tensor:
        cache.kept.append(self.second(x))
        return self.first(x)


def test_a_block_that_takes_a_container_of_the_model_s_own_is_noted(unseen: list[str]) -> None:
    checked(Caching([LeavingInACache(index=index) for index in range(4)]).eval())
    assert not unseen


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_a_block_of_a_library_does_the_file_is_right(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls are noted as they are written, and a contiguous copy is a call."""
    monkeypatch.setattr(explore, "is_of_library", lambda model: True)
    COUNTED["calls"] = 0
    KEPT.clear()
    checked(Stack([Of(KINDS[kind], index) for index in range(4)]).eval())


RECORD_CONTIGUOUS_AS_COPY: dict[str, Callable[[Block, Tensor], Any]] = {
    "within": lambda block, x: block.first(x.t().contiguous().t().contiguous()),
    "returned": lambda block, x: block.first(x).contiguous(),
    "written": lambda block, x: block.first(x).contiguous().mul_(2),
    "of what it takes": lambda block, x: x.contiguous(),
}


@pytest.mark.parametrize("kind", RECORD_CONTIGUOUS_AS_COPY)
def test_a_contiguous_copy_in_a_block_of_a_library_is_right(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explore, "is_of_library", lambda model: True)
    checked(Stack([Of(RECORD_CONTIGUOUS_AS_COPY[kind], index) for index in range(4)]).eval())


def test_blocks_of_a_library_run_unseen(unseen: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explore, "is_of_library", lambda model: True)
    checked(stack())
    assert set(unseen) == {"blocks.1", "blocks.2", "blocks.3"}


class UpTo(Block):
    """It takes so many rows apart, which shows in no run that has fewer."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def forward(self, x: Tensor, most: int | None = None) -> Tensor:
        n = min(x.shape[0], most or self.most)
        return torch.cat([self.first(x[:n]), x[n:]])


class Told(Stack):
    """Its blocks are told how many."""

    def forward(self, x: Tensor) -> Tensor:
        for block, most in zip(self.blocks, (3000, 3000, 50), strict=True):
            x = block(x, most)
        return x


@pytest.mark.parametrize("model", [Stack([UpTo(3000), UpTo(3000), UpTo(50)]), Told([UpTo(0), UpTo(0), UpTo(0)])])
def test_a_limit_of_one_block_is_not_that_of_another(model: nn.Module) -> None:
    program = checked(model.eval())
    for rows in (49, 50, 51, 2999, 3001):
        x = torch.randn(rows, 8)
        torch.testing.assert_close(program(x)[0], model(x), rtol=1e-4, atol=1e-4)


def test_what_a_block_keeps_may_be_read_later() -> None:
    class Keeping(Block):
        def forward(self, x: Tensor) -> Tensor:
            self.kept = kept = self.first(x)
            return self.second(kept)

    class Reading(Stack):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x) + self.blocks[2].kept

    checked(Reading([Keeping() for _ in range(4)]).eval())


def test_what_another_block_writes_into_is_seen() -> None:
    class Writing(Stack):
        def forward(self, x: Tensor) -> Tensor:
            first, other = self.blocks
            return first(x.clone()) + other(x)

    program = checked(Writing([Of(written_afterwards, 1) for _ in range(2)]).eval())
    assert program.report.unchanged_inputs == ("x",)


def test_what_no_operator_of_a_block_made_is_noted_where_it_is_made(unseen: list[str]) -> None:
    """Whether `contiguous` copies is the tensor's matter, so what is written later may be another's."""
    checked(Stack([Of(lambda block, x: x.contiguous(), index) for index in range(3)]).eval())
    assert not unseen


def test_the_model_is_left_as_it_was(unseen: list[str]) -> None:
    model = stack()
    before = [dict(vars(module)) for module in model.modules()]
    checked(model)
    assert unseen
    assert [dict(vars(module)) for module in model.modules()] == before


def refused(self: nn.Module, *_: Any) -> Any:
    raise TypeError("this module has no length, no truth value and no parts")


class Guarded(nn.Module):
    """A block that answers nothing that Python asks of a container."""

    __len__ = __bool__ = __iter__ = __contains__ = __getitem__ = __eq__ = refused
    __hash__ = nn.Module.__hash__

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(3, 3))

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(self.inner(x))


@pytest.mark.parametrize("options", [{}, {"capture": "torch.export"}, {"functions": True}], ids=str)
def test_modules_are_asked_for_no_truth_value_and_no_length(options: dict[str, Any]) -> None:
    model = nn.Sequential(nn.Sequential(Guarded()), Guarded(), nn.Sequential(Guarded())).eval()
    program = to_onnx(model, (torch.randn(2, 3),), dynamic_shapes=({0: "rows"},), **options)
    x = torch.randn(5, 3)
    torch.testing.assert_close(program(x)[0], model(x))


def test_a_compiled_block_in_a_list() -> None:
    model = nn.Sequential(nn.ModuleList([torch.compile(nn.Linear(3, 3))])[0], nn.ReLU()).eval()
    program = to_onnx(model, (torch.randn(2, 3),), dynamic_shapes=({0: "rows"},))
    verify(program, model, [(torch.randn(2, 3),), (torch.randn(5, 3),)]).check()
