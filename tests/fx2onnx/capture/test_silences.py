"""What `to_onnx` must not keep silent about: tests that chose a branch, axes that come and go, state in Python. Not here: the rest."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from exportlab import Sample, to_onnx, verify
from fx2onnx.errors import CaptureError, FrozenDimension, MutationError

X = torch.randn(4, 3)
BOTH = ({0: "batch"}, {0: "batch"})
HERE = r"tests/fx2onnx/capture/test_silences\.py:\d+ in "


class Two(nn.Module):
    """A function of two inputs."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor, y: Tensor) -> Any:
        return self.function(x, y)


class With(nn.Module):
    """A function of the module, which has these attributes, and of one input."""

    def __init__(self, function: Callable[..., Any], **attributes: Any) -> None:
        super().__init__()
        self.function = function
        for name, value in attributes.items():
            setattr(self, name, value)

    def forward(self, x: Tensor) -> Any:
        return self.function(self, x)


class Holder:
    """Something that is no module."""

    def __init__(self) -> None:
        self.calls = 0


def in_try(_: nn.Module, x: Tensor) -> Tensor:
    try:
        return x * (2 if x.sum() > 0 else 3)
    except RuntimeError:
        return x * 5


def suppressed(_: nn.Module, x: Tensor) -> Tensor:
    factor = 5
    with contextlib.suppress(RuntimeError):
        factor = 2 if x.sum() > 0 else 3
    return x * factor


def counted(_: nn.Module, x: Tensor) -> Tensor:
    try:
        return x * (2 if x.nonzero().shape[0] > 3 else 3)
    except Exception:  # noqa: BLE001 - what a model may do
        return x * 5


@pytest.mark.parametrize("function", [in_try, suppressed, counted])
def test_an_error_of_the_capture_that_the_model_catches_is_refused(function: Callable[..., Any]) -> None:
    before = GuardOnDataDependentSymNode.__init__
    with pytest.raises(CaptureError, match=f"tests a value at {HERE}{function.__name__}, and catches the error"):
        to_onnx(With(function), (X,))
    assert GuardOnDataDependentSymNode.__init__ is before


def test_an_error_that_eager_has_as_well_may_be_caught() -> None:
    def reshaped(_: nn.Module, x: Tensor) -> Tensor:
        try:
            return x.view(5, 5)
        except RuntimeError:
            return x.view(-1)

    verify(to_onnx(With(reshaped), (X,)), With(reshaped), [(X,)]).check()


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda x, y: x * y if x.shape[0] > 2 else x, "only batch > 2"),
        (lambda x, y: x * y if y.shape[0] > 2 else x, "only batch > 2"),
        (lambda x, y: x * y if x.shape[0] + y.shape[0] > 5 else x, r"only 2\*batch > 5"),
        (lambda x, y: x * y + sum(part.sum() for part in x.split(2)), "only sizes that make 2 parts"),
    ],
)
def test_a_test_of_an_axis_that_becomes_equal_to_another_is_seen(function: Callable[..., Any], said: str) -> None:
    with pytest.raises(FrozenDimension, match=f'"batch" was asked to be dynamic but {said}.* {HERE}'):
        to_onnx(Two(function), (X, X + 1), dynamic_shapes=BOTH)


def test_a_strict_capture_keeps_no_branch_silently_either() -> None:
    module = Two(lambda x, y: x * y if x.shape[0] > 2 else x)
    with pytest.raises(FrozenDimension, match=r'"batch" .* only batch > 2 is exported: the test at test_silences\.py:\d+ in '):
        to_onnx(module, (X, X + 1), dynamic_shapes=BOTH, strict=True)


def test_two_axes_of_one_name_may_be_compared() -> None:
    module = Two(lambda x, y: x * y if x.shape[0] == y.shape[0] else x)
    verify(to_onnx(module, (X, X + 1), dynamic_shapes=BOTH), module, [(X, X + 1), (X[:1], X[:1])]).check()


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda x, y: x + y.sum() if x.shape[0] > y.shape[0] else x, "batch > other"),
        (lambda x, y: x * y.repeat(2, 1) if x.shape[0] == 2 * y.shape[0] else x, r"batch == \(2\*other\)"),
    ],
)
def test_a_test_that_compares_axes_is_seen(function: Callable[..., Any], said: str) -> None:
    with pytest.raises(FrozenDimension, match=f'"batch" and "other" were asked to be dynamic but only {said} is exported: .* {HERE}'):
        to_onnx(Two(function), (X, X[:2]), dynamic_shapes=({0: "batch"}, {0: "other"}))
    to_onnx(Two(function), (X, X[:2]), dynamic_shapes=({0: "batch"}, {0: "other"}), accept_ranges=("batch", "other"))


def test_an_axis_that_is_twice_another_by_request_may_be() -> None:
    half = Dim("half")
    module = Two(lambda x, y: x * y.repeat(2, 1) if x.shape[0] == 2 * y.shape[0] else x)
    verify(to_onnx(module, (X, X[:2]), dynamic_shapes=({0: 2 * half}, {0: half})), module, [(X, X[:2]), (X[:2], X[:1])]).check()
    with pytest.raises(FrozenDimension, match=r"only 2\*half > 3"):
        to_onnx(Two(lambda x, y: x if x.shape[0] > 3 else x + y), (X, X[:2]), dynamic_shapes=({0: 2 * half}, {0: half}))


@pytest.mark.parametrize("parts", [lambda x: x.split(2), lambda x: x.chunk(3), lambda x: x.split(x.shape[0] // 2)])
def test_a_number_of_parts_that_moves_is_refused(parts: Callable[..., Any]) -> None:
    module = With(lambda _, x: torch.stack([part.sum() for part in parts(x)]))
    with pytest.raises(FrozenDimension, match=f"only sizes that make . parts are exported: it is cut at {HERE}"):
        to_onnx(module, (X,), dynamic_shapes=({0: "batch"},))


SQUEEZES = [lambda x: x.squeeze(0), lambda x: x.squeeze(), lambda x: x.squeeze((0, 1)), lambda x: (x + 1).squeeze_(0)]


@pytest.mark.parametrize("squeeze", SQUEEZES)
def test_a_squeeze_that_takes_a_moving_axis_away_is_refused(squeeze: Callable[..., Any]) -> None:
    module = With(lambda _, x: squeeze(x) * 2)
    with pytest.raises(FrozenDimension, match=f'"batch" .* only sizes at which `squeeze` takes no axis away .* {HERE}'):
        to_onnx(module, (X,), dynamic_shapes=({0: "batch"},))
    assert to_onnx(module, (X,), dynamic_shapes=({0: "batch"},), accept_ranges=("batch",))
    verify(to_onnx(module, (X,), dynamic_shapes=({0: Dim("batch", min=2)},)), module, [(X,), (X[:2],)]).check()


def test_a_squeeze_of_other_axes_is_exported() -> None:
    module = With(lambda _, x: x.sum(1, keepdim=True).squeeze(1))
    verify(to_onnx(module, (X,), dynamic_shapes=({0: "batch"},)), module, [(X,), (X[:1],)]).check()


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
    (count, "calls", {"calls": 0}, "each call changes it further"),
    (collect, "sums", {"sums": []}, "the second call returns something else"),
    (compare_with_the_last, "last", {"last": torch.zeros(3)}, "the second call returns something else"),
    (normalise_by_the_first, "mean", {}, "made of the values of the first call"),
    (count_in_an_object, "held", {"held": Holder()}, "the second call returns something else"),
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

    with pytest.raises(MutationError, match="could not be tried: there is only one of me"):
        to_onnx(Once(keep), (X,))


class Scaled(nn.Module):
    """Everything but the first input by keyword."""

    def forward(self, x: Tensor, **others: Tensor) -> Tensor:
        return x * others["scale"] + others["offset"]


def test_keywords_that_a_forward_does_not_name_may_move() -> None:
    module, others = Scaled(), {"scale": X + 1, "offset": X - 1}
    moving = {0: "batch"}
    program = to_onnx(module, (X,), others, dynamic_shapes={"x": moving, "others": {"scale": moving, "offset": moving}})
    seven = torch.randn(7, 3)
    verify(program, module, [Sample((X,), others), Sample((seven,), {"scale": seven + 1, "offset": seven - 1})]).check()
    assert "forward" not in vars(module)


def test_a_keyword_that_cannot_be_a_parameter_is_refused() -> None:
    class Odd(nn.Module):
        def forward(self, x: Tensor, **others: Tensor) -> Tensor:
            return x * others["my scale"]

    with pytest.raises(CaptureError, match=r"cannot reach \['my scale'\], which \*\*others takes"):
        to_onnx(Odd(), (X,), {"my scale": X}, dynamic_shapes={"x": {0: "batch"}, "others": {"my scale": {0: "batch"}}})


class Rows(nn.Module):
    """A function of one row, over all of them."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.vmap(lambda row: row.softmax(0) * row.shape[0])(x)


@pytest.mark.parametrize("functions", [(), (Rows,)])
def test_vmap_is_resolved(functions: tuple[type, ...]) -> None:
    module = nn.Sequential(Rows(), Rows())
    program = to_onnx(module, (X,), dynamic_shapes=({0: "batch"},), functions=functions)
    verify(program, module, [(X,), (torch.randn(7, 3),), (X[:1],)]).check()
    assert len(program.model.functions) == bool(functions)


def test_vmap_in_a_program_that_was_captured_before_is_resolved() -> None:
    verify(to_onnx(torch.export.export(Rows(), (X,))), Rows(), [(X,)]).check()
