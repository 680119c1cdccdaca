"""State in Python that the next call would find is refused; what is the same after every call is exported."""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from modules import With
from torch import Tensor, nn

from exportlab import to_onnx, verify
from fx2onnx.errors import MutationError

X = torch.randn(4, 3)
HERE = r"tests/fx2onnx/trace/test_hidden_state\.py:\d+ in "


class Holder:
    """Something that is no module."""

    def __init__(self) -> None:
        self.calls = 0


def count(self: Any, x: Tensor) -> Tensor:
    self.calls += 1
    return x * 2 if self.calls > 5 else x


def collect(self: Any, x: Tensor) -> Tensor:
    self.sums.append(x.sum())
    return x + torch.stack(self.sums).sum()


def compare_with_the_last(self: Any, x: Tensor) -> Tensor:
    last, self.last = self.last, x.sum(0)
    return x - last


def normalise_by_the_first(self: Any, x: Tensor) -> Tensor:
    if not hasattr(self, "mean"):
        self.mean = x.mean(0)
    return x - self.mean


def count_in_an_object(self: Any, x: Tensor) -> Tensor:
    self.held.calls += 1
    return x * self.held.calls


REMEMBERS = [
    (count, "calls", {"calls": 0}, "each call changes it again"),
    (collect, "sums", {"sums": []}, "a second call with the same inputs returns a different result"),
    (compare_with_the_last, "last", {"last": torch.zeros(3)}, "a second call with the same inputs returns a different result"),
    (normalise_by_the_first, "mean", {}, "depend on the values of the first call"),
    (count_in_an_object, "held", {"held": Holder()}, "a second call with the same inputs returns a different result"),
]


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(("function", "name", "attributes", "why"), REMEMBERS[:1] + REMEMBERS[2:])
def test_what_the_next_call_would_find_is_refused(
    function: Callable[..., Any], name: str, attributes: dict[str, Any], why: str, strict: bool
) -> None:
    module = With(function, **attributes)
    with pytest.raises(MutationError, match=f"the model changes {name} at {HERE}{function.__name__}, .*{why}"):
        to_onnx(module, (X,), strict=strict)


def test_what_a_submodule_collects_is_refused_with_its_path() -> None:
    module = nn.Sequential(nn.ReLU(), With(collect, sums=[]))
    for functions in ((), (With,)):
        with pytest.raises(MutationError, match=f"the model changes 1.sums at {HERE}collect"):
            to_onnx(module, (X,), functions=functions)
    assert module[1].sums == []


def keep(self: Any, x: Tensor) -> Tensor:
    self.hidden = x * 2
    return self.hidden + 1


def make_once(self: Any, x: Tensor) -> Tensor:
    if self.table is None or len(self.table) < x.shape[0]:
        self.table = torch.arange(x.shape[0]).float()
    return x + self.table[: x.shape[0], None]


def make_for_each_width(self: Any, x: Tensor) -> Tensor:
    if x.shape[1] not in self.tables:
        self.tables[x.shape[1]] = torch.arange(x.shape[1]).float()
    return x + self.tables[x.shape[1]]


def note_the_size(self: Any, x: Tensor) -> Tensor:
    self.size = x.shape[0]
    return x * self.size


EVERY_TIME = [(keep, {}), (make_once, {"table": None}), (make_for_each_width, {"tables": {}}), (note_the_size, {"size": 0})]


@pytest.mark.parametrize(("function", "attributes"), EVERY_TIME)
def test_what_is_the_same_after_every_call_is_exported(function: Callable[..., Any], attributes: dict[str, Any]) -> None:
    module = With(function, **attributes)
    names = set(vars(module))
    program = to_onnx(module, (X,), dynamic_shapes=({0: "batch"},))
    assert set(vars(module)) == names
    verify(program, With(function, **attributes), [(X,), (torch.randn(7, 3),), (X[:1],)]).check()


def test_a_model_that_cannot_be_called_again_is_refused_when_it_changes_itself() -> None:
    class Once(With):
        def __deepcopy__(self, memo: dict[int, Any]) -> Any:
            raise RuntimeError("there is only one of me")

    with pytest.raises(MutationError, match="could not be checked: there is only one of me"):
        to_onnx(Once(keep), (X,))


class Table(nn.Module):
    """Makes its table anew where it is too short, as FSMT of transformers does with its positions."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(8, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] > self.table.shape[0]:
            self.table = nn.Parameter(torch.arange(float(x.shape[0]))[:, None].expand(-1, 3).contiguous())
        return x + self.table[: x.shape[0]]


class Grows(nn.Module):
    """Puts another parameter in the place of its own at each call."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.weight = nn.Parameter(self.weight + 1)
        return x * self.weight


def test_a_parameter_that_a_run_replaces_is_put_back() -> None:
    model = Table().eval()
    table, x = model.table, torch.randn(2, 3)
    program = to_onnx(model, (x,), dynamic_shapes=({0: "rows"},))
    assert model.table is table
    for rows in (2, 8, 9, 20):
        x = torch.randn(rows, 3)
        torch.testing.assert_close(program(x)[0], copy.deepcopy(model)(x))


@pytest.mark.parametrize("capture", ["run", "torch.export"])
def test_a_parameter_that_each_call_replaces_is_refused(capture: str) -> None:
    with pytest.raises(MutationError, match="the model changes weight"):
        to_onnx(Grows().eval(), (torch.randn(2, 3),), dynamic_shapes=({0: "rows"},), capture=capture)


class Hooked(nn.Module):
    """Doubles what its layer returns by a hook, which stays where the call ends in an error; or always."""

    def __init__(self, always: bool) -> None:
        super().__init__()
        self.always, self.layer = always, nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        handle = self.layer.register_forward_hook(lambda module, args, output: output * 2)
        y = self.layer(x)
        assert x.shape[0] <= 10, "too many"
        if not self.always:
            handle.remove()
        return y


@pytest.mark.parametrize("capture", ["run", "auto"])
def test_a_hook_that_a_failed_run_leaves_is_taken_off(capture: str) -> None:
    model, x = Hooked(always=False).eval(), torch.randn(2, 3)
    program = to_onnx(model, (x,), dynamic_shapes=({0: "rows"},), capture=capture)
    assert not model.layer._forward_hooks
    for rows in (2, 1, 9):
        x = torch.randn(rows, 3)
        torch.testing.assert_close(program(x)[0], model(x))


@pytest.mark.parametrize("capture", ["run", "torch.export"])
def test_a_hook_that_each_call_leaves_is_refused(capture: str) -> None:
    model = Hooked(always=True).eval()
    with pytest.raises(MutationError, match=r"the model changes layer\._forward_hooks"):
        to_onnx(model, (torch.randn(2, 3),), capture=capture)
    assert not model.layer._forward_hooks


class Counted(nn.Module):
    """Keeps how deep it is in an object of its own, and in a list of that; both stay where the call ends in an error."""

    def __init__(self) -> None:
        super().__init__()
        self.context = SimpleNamespace(depth=0, seen=[])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.context.depth += 1
        self.context.seen.append(1)
        y = x * self.context.depth + len(self.context.seen)
        assert x.shape[0] <= 10, "too many"
        self.context.depth -= 1
        self.context.seen.pop()
        return y


def test_what_an_object_holds_is_put_back_after_a_failed_run() -> None:
    model = Counted().eval()
    program = to_onnx(model, (torch.randn(2, 3),), dynamic_shapes=({0: "rows"},), capture="run")
    assert model.context == SimpleNamespace(depth=0, seen=[])
    x = torch.randn(5, 3)
    torch.testing.assert_close(program(x)[0], model(x))


class HookedOnce(nn.Module):
    """Hooks its layer at the first call and notes that it did, as models of transformers do that return what layers gave."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        given: list[torch.Tensor] = []
        if not getattr(self, "_all_hooks_installed", False):
            self.layer.register_forward_hook(lambda module, args, output: GIVEN[-1].append(output))
            self._all_hooks_installed = True
        GIVEN.append(given)
        return self.layer(x) + given[-1]


GIVEN: list[list[torch.Tensor]] = []


@pytest.mark.parametrize("capture", ["run", "torch.export"])
def test_a_model_that_hooks_itself_once_is_right(capture: str) -> None:
    model = HookedOnce().eval()
    program = to_onnx(model, (torch.randn(2, 3),), dynamic_shapes=({0: "rows"},), capture=capture)
    x = torch.randn(5, 3)
    torch.testing.assert_close(program(x)[0], model(x))
