"""An axis that was asked to move moves, or the export is refused with its name and the line that holds it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim

from exportlab import to_onnx, verify
from fx2onnx.errors import CaptureError, FrozenDimension, ToOnnxError

X = torch.randn(4, 3)
APART = ({0: "batch"}, {0: "other"})
BOTH = ({0: "batch"}, {0: "batch"})
BATCH = ({0: "batch"},)
HERE = r"tests/fx2onnx/guards/test_dynamic_shapes\.py:\d+ in "


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


class Op(nn.Module):
    """A module of one function."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def any_batch(count: int = 1) -> dict[str, Any]:
    return {"args": tuple({0: "batch"} for _ in range(count))}


ASKED = '"batch" was asked to be dynamic but '
FROZEN = {
    "a loop over the rows": (
        lambda x: sum(row.sin() for row in x),
        ASKED + r"is the constant 4 after " + HERE,
    ),
    "a branch on the size": (
        lambda x: x * 2 if x.shape[0] > 3 else x,
        ASKED + r"only batch > 3 .* " + HERE,
    ),
    "a size as a number": (lambda x: x if int(0.5 * x.shape[0]) == 2 else x + 1, ASKED + r"only math\.trunc\(0\.5\*float\(batch\)\) == 2"),
}


@pytest.mark.parametrize("name", FROZEN)
def test_a_frozen_dimension_is_refused_with_its_name_and_line(name: str) -> None:
    function, said = FROZEN[name]
    with pytest.raises(FrozenDimension, match=said):
        to_onnx(Op(function), (X,), dynamic_shapes=any_batch(), capture="torch.export")


def test_a_test_for_one_row_is_refused_where_the_caller_wrote_it() -> None:
    with pytest.raises(FrozenDimension, match="only batch != 1 is exported"):
        to_onnx(Op(lambda x: x * 3 if x.shape[0] == 1 else x), (X,), dynamic_shapes=any_batch(), capture="torch.export")


def test_code_without_a_file_is_watched_as_well() -> None:
    namespace: dict[str, Any] = {"nn": nn}
    exec("class Branching(nn.Module):\n    def forward(self, x):\n        return x if x.shape[0] > 3 else -x", namespace)
    with pytest.raises(FrozenDimension, match="only batch > 3 is exported: the test at a forward without a source file"):
        to_onnx(namespace["Branching"](), (X,), dynamic_shapes=BATCH, capture="torch.export")


def test_a_frozen_dimension_can_be_accepted() -> None:
    function, _ = FROZEN["a branch on the size"]
    program = to_onnx(Op(function), (X,), dynamic_shapes=any_batch(), accept_ranges=("batch",))
    verify(program, Op(function), [(X,), (torch.randn(9, 3),)]).check()


def test_two_names_for_sizes_that_must_be_equal_are_refused() -> None:
    shapes = {"args": ({0: "rows"}, {0: "others"})}
    with pytest.raises(FrozenDimension, match=r'"rows" .* made it equal to "others": .*accept_ranges=\("rows", "others"\)'):
        to_onnx(Op(lambda x, y: (x + y).sum(0)), (X, X + 1), dynamic_shapes=shapes)


def test_shapes_that_do_not_fit_the_arguments_are_refused() -> None:
    with pytest.raises(CaptureError, match="dynamic_shapes does not match the arguments"):
        to_onnx(nn.Linear(3, 5), (X,), dynamic_shapes=BOTH)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda x, y: x * y if x.shape[0] > 2 else x, "only batch > 2"),
        (lambda x, y: x * y if y.shape[0] > 2 else x, "only batch > 2"),
        (lambda x, y: x * y if x.shape[0] + y.shape[0] > 5 else x, r"only 2\*batch > 5"),
        (lambda x, y: x * y + sum(part.sum() for part in x.split(2)), "only sizes that give 2 parts"),
    ],
)
def test_a_test_of_an_axis_that_becomes_equal_to_another_is_seen(function: Callable[..., Any], said: str) -> None:
    with pytest.raises(FrozenDimension, match=f'"batch" was asked to be dynamic but {said}.* {HERE}'):
        to_onnx(Two(function), (X, X + 1), dynamic_shapes=BOTH, capture="torch.export")


def test_a_strict_capture_keeps_no_branch_silently_either() -> None:
    module = Two(lambda x, y: x * y if x.shape[0] > 2 else x)
    with pytest.raises(FrozenDimension, match=r'"batch" .* only batch > 2 is exported: the test at test_dynamic_shapes\.py:\d+ in '):
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
        to_onnx(Two(function), (X, X[:2]), dynamic_shapes=APART, capture="torch.export")
    to_onnx(Two(function), (X, X[:2]), dynamic_shapes=APART, accept_ranges=("batch", "other"))


OF_TWO_AXES: dict[str, tuple[Callable[..., bool], tuple[int, int]]] = {
    "a difference": (lambda x, y: x.shape[0] == y.shape[0] + 7, (11, 4)),
    "a sum": (lambda x, y: x.shape[0] + 2 * y.shape[0] == 50, (10, 20)),
    "rows of both": (lambda x, y: torch.cat([x, y]).shape[0] == 40, (31, 9)),
    "a product": (lambda x, y: x.shape[0] * y.shape[0] == 30, (3, 10)),
    "the smaller": (lambda x, y: x[: y.shape[0]].shape[0] == 4, (4, 9)),
    "the smaller, one of two": (lambda x, y: x[: y.shape[0]].shape[0] in (7, 28), (28, 30)),
}


def exported_at_5_and_9(name: str, capture: str) -> Any:
    tested = OF_TWO_AXES[name][0]
    module = Two(lambda x, y: -x if tested(x, y) else x)
    return to_onnx(module, (torch.rand(5, 4), torch.rand(9, 4)), dynamic_shapes=APART, capture=capture)


@pytest.mark.parametrize(
    ("name", "capture"), [*((name, "torch.export") for name in OF_TWO_AXES), *((name, "run") for name in list(OF_TWO_AXES)[3:])]
)
def test_a_test_of_two_axes_that_holds_at_few_sizes_is_seen(name: str, capture: str) -> None:
    with pytest.raises(
        ToOnnxError, match=f"were asked to be dynamic but only .* is exported: .* {HERE}|the operators called depend on the sizes"
    ):
        exported_at_5_and_9(name, capture)


@pytest.mark.parametrize("name", list(OF_TWO_AXES)[:3])
def test_a_line_in_two_axes_is_taken_by_running(name: str) -> None:
    tested, where = OF_TWO_AXES[name]
    x, y = (torch.rand(size, 4) for size in where)
    assert tested(x, y)
    torch.testing.assert_close(exported_at_5_and_9(name, "run")(x, y)[0], -x)
    torch.testing.assert_close(exported_at_5_and_9(name, "run")(x[:3], y)[0], x[:3])


def test_an_axis_that_is_twice_another_by_request_may_be() -> None:
    half = Dim("half")
    module = Two(lambda x, y: x * y.repeat(2, 1) if x.shape[0] == 2 * y.shape[0] else x)
    verify(to_onnx(module, (X, X[:2]), dynamic_shapes=({0: 2 * half}, {0: half})), module, [(X, X[:2]), (X[:2], X[:1])]).check()
    with pytest.raises(FrozenDimension, match=r"only 2\*half > 3"):
        to_onnx(Two(lambda x, y: x if x.shape[0] > 3 else x + y), (X, X[:2]), dynamic_shapes=({0: 2 * half}, {0: half}))


@pytest.mark.parametrize(
    ("parts", "capture"),
    [(lambda x: x.split(2), "torch.export"), (lambda x: x.chunk(3), "auto"), (lambda x: x.split(x.shape[0] // 2), "auto")],
)
def test_a_number_of_parts_that_moves_is_refused(parts: Callable[..., Any], capture: str) -> None:
    module = With(lambda _, x: torch.stack([part.sum() for part in parts(x)]))
    with pytest.raises(FrozenDimension, match=f"only sizes that give . parts are exported: it is split at {HERE}"):
        to_onnx(module, (X,), dynamic_shapes=({0: "batch"},), capture=capture)


def test_a_loop_over_every_seventh_row_is_refused_by_torch_export_too() -> None:
    module = With(lambda _, x: torch.stack([row * 3 for row in x[::7]]))
    with pytest.raises(FrozenDimension, match=f"only sizes that give 1 parts are exported: it is split at {HERE}"):
        to_onnx(module, (X,), dynamic_shapes=({0: "batch"},), capture="torch.export")


SQUEEZES = [lambda x: x.squeeze(0), lambda x: x.squeeze(), lambda x: x.squeeze((0, 1)), lambda x: (x + 1).squeeze_(0)]


@pytest.mark.parametrize("squeeze", SQUEEZES)
def test_a_squeeze_that_takes_a_moving_axis_away_is_refused(squeeze: Callable[..., Any]) -> None:
    module = With(lambda _, x: squeeze(x) * 2)
    with pytest.raises(FrozenDimension, match=f'"batch" .* only sizes at which `squeeze` removes no axis .* {HERE}'):
        to_onnx(module, (X,), dynamic_shapes=({0: "batch"},))
    assert to_onnx(module, (X,), dynamic_shapes=({0: "batch"},), accept_ranges=("batch",))
    verify(to_onnx(module, (X,), dynamic_shapes=({0: Dim("batch", min=2)},)), module, [(X,), (X[:2],)]).check()


@pytest.mark.parametrize("capture", ["run", "torch.export"])
def test_a_squeeze_of_a_number_is_exported(capture: str) -> None:
    program = to_onnx(With(lambda _, x: x * x.mean().squeeze(0)), (X,), dynamic_shapes=({0: "batch"},), capture=capture)
    given = torch.rand(7, *X.shape[1:])
    torch.testing.assert_close(program(given)[0], given * given.mean())


def test_a_squeeze_of_other_axes_is_exported() -> None:
    module = With(lambda _, x: x.sum(1, keepdim=True).squeeze(1))
    verify(to_onnx(module, (X,), dynamic_shapes=({0: "batch"},)), module, [(X,), (X[:1],)]).check()


@pytest.mark.parametrize("capture", ["auto", "torch.export"])
def test_an_axis_that_is_frozen_is_told_where_only_its_size_is_read(capture: str) -> None:
    windows = Two(lambda x, y: x.T.reshape(-1).unfold(0, y.shape[1], 1))
    axes = {0: "rows", 1: "columns"}
    with pytest.raises(FrozenDimension, match='"columns" was asked to be dynamic but is the constant 6'):
        to_onnx(windows, (torch.randn(4, 6), torch.randn(4, 6)), dynamic_shapes=(axes, axes), capture=capture)
