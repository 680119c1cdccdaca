"""Models that runs could take for something else: right at sizes that were never run, or refused, not left to the silence of others."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from modules import Of, With
from torch import Tensor, nn
from torch.nn import functional as F

from exportlab import to_onnx
from fx2onnx import ToOnnxError
from fx2onnx.errors import FrozenDimension, MutationError
from fx2onnx.trace.refusal import NoFallback, TraceUnsupported

ROWS = ({0: "rows"},)
NEVER_RUN = (1, 2, 5, 40, 101, 130, 300, 301, 302, 301, 302)


def turned(x: Tensor) -> Tensor:
    """A tensor that becomes a view of itself."""
    square = (x.T @ (x * 2)).cumsum(0)
    square.t_()
    return square * torch.arange(4)


def with_an_axis(x: Tensor) -> Tensor:
    """One that gets another axis, and is written then."""
    y = x * 1
    view = y[:]
    y.unsqueeze_(0).mul_(2)
    return y.sum(1) + view.sum(0)


def residual(x: Tensor) -> Tensor:
    """What a dropout gives back is written: outside of training that is what it was given."""
    hidden = x * 2
    dropped = F.dropout(hidden, 0.5, training=False)
    dropped += x
    return hidden


RIGHT: dict[str, Callable[[Tensor], Any]] = {
    "equal to a size": lambda x: -x if x.shape[0] == 300 else x,
    "sevens": lambda x: x * x.shape[0] if x.shape[0] * 7 == 2100 else x,
    "one of two in a row, moved": lambda x: x * x.shape[0] if x.shape[0] - 250 >= 50 and x.shape[0] < 302 else x,
    "equal to a shape": lambda x: -x if x.shape == (300, 4) else x,
    "one of several sizes": lambda x: -x if x.shape[0] in [100, 300] else x,
    "hundreds": lambda x: -x if x.shape[0] // 100 == 3 else x,
    "bytes": lambda x: -x if x.nbytes > 1000 else x,
    "a size by an operator": lambda x: -x if torch.ops.aten.sym_size.int(x, 0) > 100 else x,
    "elements by an operator": lambda x: -x if torch.ops.aten.sym_numel.default(x) > 450 else x,
    "the least of two sizes": lambda x: torch.diag(x @ torch.ones(4, 40)),
    "turned in place": turned,
    "transposed in place": lambda x: (x * 2)[:, :, None].transpose_(1, 2).squeeze_(1),
    "an axis in place": with_an_axis,
    "a dropout that does nothing": residual,
    "thirds, counted": lambda x: sum(part.sum(0) * part.shape[0] ** 2 for part in x.tensor_split(3)),
    "rows between those that no run has": lambda x: x[20:-20].sum(0) + torch.ones(x[20:-20].shape[0]).sum(),
}


def guessed(x: Tensor) -> Tensor:
    """Too few rows are known by the error that torch raises."""
    try:
        return x[20] + x.sum(0)
    except IndexError:
        return x[0]


def viewed(x: Tensor) -> Tensor:
    """Sevens of rows, where there are some."""
    try:
        return x.view(-1, 7, 4).sum((0, 1))
    except RuntimeError:
        return x.sum(0) * 2


def flattened_and_written(x: Tensor) -> Tensor:
    """Of one row this is a view, of more a copy."""
    y = x * 2
    y.T.reshape(-1).add_(1)
    return y


def seeded(x: Tensor) -> Tensor:
    """The same random numbers in each call."""
    torch.manual_seed(0)
    return x @ torch.rand(4, 4)


def seeded_apart(x: Tensor) -> Tensor:
    """The same, with the seed put back."""
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        weights = torch.rand(4, 4)
    return x @ weights


def copied_and_written(x: Tensor) -> Tensor:
    """A contiguous copy, which at one row is the tensor itself, and is written."""
    hidden = x * 2
    turned = hidden.T.contiguous()
    turned += 1
    return hidden.sum(1)


def resized(x: Tensor) -> Tensor:
    """An `out` of no elements, to which torch gives the size of the result."""
    out = x.new()
    torch.cumsum(x, 1, out=out)
    return out


def other_data(x: Tensor) -> Tensor:
    """A tensor that gets the memory of another."""
    y = x * 2
    y.data = x * 3
    return y * 1


FINAL: dict[str, tuple[Callable[[Tensor], Any], str]] = {
    "an index that fails": (guessed, r"catches an error of PyTorch.*IndexError: index 20 is out of bounds.*in guessed"),
    "a view that fails": (viewed, r"catches an error of PyTorch.*RuntimeError: shape .* in viewed"),
    "a view at one row": (flattened_and_written, r"writes at .* in flattened_and_written into memory .* only at some sizes"),
    "an input that is a view at one row": (lambda x: (x.T.reshape(-1).add_(1), x * 1)[1], "inputs|only at some sizes"),
    "an out that is resized": (resized, r"aten\.cumsum\.out resizes its `out` tensor.*in resized"),
    "a seed": (seeded, "random numbers from a seed that it sets.*in seeded"),
    "a seed for a while": (seeded_apart, "random numbers from a seed that it sets.*in seeded_apart"),
    "other data": (other_data, "assigns to .data of a tensor.*in other_data"),
}


def by_kind(x: Tensor) -> Tensor:
    """A size is an `int` in eager, and none while torch.export traces."""
    return x / x.shape[0] if isinstance(x.shape[0], int) else x * 2


def sometimes(x: Tensor) -> Tensor:
    """A layer that is left out now and then, by a number of Python's."""
    for step in range(40):
        x = x + step if random.random() < 0.5 else x
    return x


NOTED_ONCE: dict[str, tuple[Callable[[Tensor], Any], str]] = {
    "a copy that is none at one row": (
        copied_and_written,
        "contiguous copy",
    ),
    "whether a size is an int": (by_kind, "the program captured by torch.export gives a different result"),
    "a number of Python's that is drawn": (
        lambda x: x * random.random(),
        "two calls of the model with the same arguments gave different results",
    ),
    "steps that are drawn": (sometimes, "two calls of the model with the same arguments gave different results"),
}


def the_fifth(x: Tensor) -> Tensor:
    """The fifth row, or twice the last where there are fewer, by the error that torch raises."""
    try:
        return x[4]
    except IndexError:
        return x[-1] * 2


AT_ONE_ROW = {
    "a layout": (lambda x: x.T * 2 if x.T.is_contiguous() else x.T + 0, "gives a different result at rows = 1"),
    "a column": (lambda x: x[:, 0] * 2 if x[:, 0].is_contiguous() else x[:, 0] + 0, "gives a different result at rows = 1"),
}


@pytest.mark.parametrize("name", AT_ONE_ROW)
def test_what_runs_see_at_one_row_alone_is_held_against_the_program_there(name: str, x: Tensor) -> None:
    function, why = AT_ONE_ROW[name]
    with pytest.raises(NoFallback, match=why):
        to_onnx(Of(function).eval(), (x,), dynamic_shapes=ROWS)


@pytest.mark.parametrize("rows", [3, 6])
def test_a_program_of_torch_export_that_takes_fewer_sizes_is_not_taken_for_right(rows: int) -> None:
    with pytest.raises(NoFallback, match=r"fails where the model runs at rows = \d+: Expected input at"):
        to_onnx(Of(the_fifth).eval(), (torch.rand(rows, 2),), dynamic_shapes=ROWS)


@pytest.mark.parametrize("name", NOTED_ONCE)
def test_what_torch_export_notes_once_is_held_against_the_model(name: str, x: Tensor) -> None:
    function, why = NOTED_ONCE[name]
    with pytest.raises(NoFallback, match=why):
        to_onnx(Of(function).eval(), (x,), dynamic_shapes=ROWS)


@pytest.mark.parametrize("name", ["a number of Python's that is drawn", "steps that are drawn"])
def test_what_differs_from_call_to_call_is_refused_where_no_size_moves(name: str, x: Tensor) -> None:
    function, why = NOTED_ONCE[name]
    with pytest.raises(NoFallback, match=why):
        to_onnx(Of(function).eval(), (x,))


def in_half(x: Tensor) -> Tensor:
    """Computed in bfloat16, as autocast decides."""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return x @ x.T


LEFT_TO_TORCH_EXPORT: dict[str, tuple[Callable[[Tensor], Any], str]] = {
    "autocast": (in_half, "the model runs under autocast, .* in in_half"),
    "a layout that one row has": (
        lambda x: x.T * 2 if x.T.is_contiguous() else x.T + 1,
        r"no condition on sizes explains why the model calls aten\.mul",
    ),
    "a fraction returned": (lambda x: (x, x.shape[0] / 3), "the model returns"),
    "rests of a number that no other size tried has": (lambda x: x * x.shape[0] if x.shape[0] % 97 == 4 else x, "only .* is exported"),
    "another tensor's sizes": (lambda x: -x if x.is_same_size(x[:40]) else x, "returns a Python number|depend on the sizes"),
}


@pytest.fixture
def x() -> Tensor:
    torch.manual_seed(0)
    return torch.rand(3, 4)


def assert_right(model: nn.Module, x: Tensor) -> None:
    """Export a model by running it, and hold the file against eager at sizes that were never run."""
    program = to_onnx(model.eval(), (x,), dynamic_shapes=ROWS, capture="run")
    for rows in NEVER_RUN:
        given = torch.rand(rows, 4)
        with torch.no_grad():
            torch.testing.assert_close(program(given)[0], model(given.clone()), msg=f"{rows} rows")


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_told_by_a_size_is_right_at_sizes_never_run(name: str, x: Tensor) -> None:
    assert_right(Of(RIGHT[name]), x)


@pytest.mark.parametrize("name", FINAL)
@pytest.mark.parametrize("capture", ["run", "auto"])
def test_what_torch_export_does_not_see_is_not_left_to_it(name: str, capture: str, x: Tensor) -> None:
    function, why = FINAL[name]
    with pytest.raises(NoFallback, match=why):
        to_onnx(Of(function).eval(), (x,), dynamic_shapes=ROWS, capture=capture)


@pytest.mark.parametrize("name", LEFT_TO_TORCH_EXPORT)
def test_what_runs_do_not_show_is_left_to_torch_export(name: str, x: Tensor) -> None:
    function, why = LEFT_TO_TORCH_EXPORT[name]
    with pytest.raises((TraceUnsupported, FrozenDimension), match=why):
        to_onnx(Of(function).eval(), (x,), dynamic_shapes=ROWS, capture="run")


def test_an_input_that_is_written_in_some_runs_only_is_refused() -> None:
    """Transposed, as it is given, it is copied by a reshape; what it is run with at other sizes is not."""
    model = Of(lambda x: (x.reshape(-1).add_(1), x * 1)[1]).eval()
    with pytest.raises(NoFallback, match="the inputs that the model writes into depend on the sizes"):
        to_onnx(model, (torch.rand(4, 3).T,), dynamic_shapes=ROWS, capture="run")


def test_an_error_that_is_caught_is_no_matter_where_sizes_stay(x: Tensor) -> None:
    program = to_onnx(Of(guessed).eval(), (x,), capture="run")
    torch.testing.assert_close(program(x)[0], x[0])


@pytest.fixture
def to_bool() -> Iterator[Any]:
    """An operator that gives Python a bool of its own."""
    library = torch.library.Library("nothing_silent", "FRAGMENT")
    library.define("many(Tensor x) -> bool")
    library.impl("many", lambda x: x.shape[0] > 100, "CompositeExplicitAutograd")
    yield torch.ops.nothing_silent.many
    library._destroy()


def test_an_operator_that_gives_python_a_number_is_refused(to_bool: Any, x: Tensor) -> None:
    with pytest.raises(TraceUnsupported, match=r"nothing_silent\.many\.default returns a Python number at .*test_nothing_silent"):
        to_onnx(Of(lambda x: -x if to_bool(x) else x).eval(), (x,), dynamic_shapes=ROWS, capture="run")


def mean_of_the_first(model: Any, x: Tensor) -> Tensor:
    """What the first call was given stays."""
    if model.mean is None:
        model.mean = x.mean(0)
    return x - model.mean


def mean_in_a_buffer(model: Any, x: Tensor) -> Tensor:
    """The same, in a buffer that is made then."""
    if not hasattr(model, "seen"):
        model.register_buffer("seen", x.mean(0))
    return x - model.seen


def counted(model: Any, x: Tensor) -> Tensor:
    """A buffer that becomes another tensor."""
    model.count = model.count + 1
    return x * model.count


def mask_that_grows(model: Any, x: Tensor) -> Tensor:
    """A mask that is kept for the next call, where it is large enough."""
    if model.mask is None or model.mask.shape[0] < x.shape[0]:
        model.mask = torch.ones(x.shape[0], x.shape[0]).tril()
    return model.mask[: x.shape[0], : x.shape[0]] @ x


@pytest.mark.parametrize("function", [mean_of_the_first, mean_in_a_buffer])
@pytest.mark.parametrize("capture", ["run", "auto"])
def test_what_one_run_leaves_is_not_there_in_the_next(function: Callable[[Any, Tensor], Tensor], capture: str, x: Tensor) -> None:
    model = With(function, mean=None).eval()
    with pytest.raises(MutationError, match="depend on the values of the first call"):
        to_onnx(model, (x,), dynamic_shapes=ROWS, capture=capture)
    assert model.mean is None
    assert not hasattr(model, "seen")


def test_a_buffer_that_becomes_another_tensor_is_refused(x: Tensor) -> None:
    model = With(counted)
    model.register_buffer("count", torch.zeros(()))
    with pytest.raises(ToOnnxError, match="the model replaces its buffer count"):
        to_onnx(model.eval(), (x,), dynamic_shapes=ROWS, capture="run")
    assert model.count == 0


def test_what_a_batch_norm_in_training_writes_is_refused(x: Tensor) -> None:
    model = With(lambda model, x: F.batch_norm(x, model.mean, model.variance, training=True))
    model.register_buffer("mean", torch.zeros(4))
    model.register_buffer("variance", torch.ones(4))
    with pytest.raises(TraceUnsupported, match="the model writes into mean"):
        to_onnx(model, (x,), dynamic_shapes=ROWS, capture="run")


@pytest.mark.parametrize("shapes", [None, ROWS], ids=["static", "moving"])
def test_elements_that_are_the_same_in_all_runs_are_no_constant(shapes: Any) -> None:
    model = Of(lambda x: x * torch.tensor([x[0, 0], x[0, 1]])).eval()
    with pytest.raises(TraceUnsupported, match="reads tensor values"):
        to_onnx(model, (torch.ones(3, 2).long(),), dynamic_shapes=shapes, capture="run")


def test_a_mask_that_is_kept_is_made_anew_in_the_file(x: Tensor) -> None:
    assert_right(With(mask_that_grows, mask=None), x)


CUT = {
    "every sixteenth, row by row": lambda x: torch.stack([row * 3 for row in x[::4][::4]]),
    "every thousandth, row by row": lambda x: torch.stack([row * 3 for row in torch.cat([x, x])[::1000]]),
    "every sixteenth, in parts": lambda x: torch.cat([part * 3 for part in x[::4][::4].split(1)]),
}


@pytest.mark.parametrize("capture", ["run", "auto"])
@pytest.mark.parametrize("function", CUT.values(), ids=CUT)
def test_parts_that_are_as_many_in_all_runs_but_not_beyond_are_refused(function: Any, capture: str, x: Tensor) -> None:
    with pytest.raises(ToOnnxError, match=r"1 parts|the operators called depend on the sizes|aten.split.Tensor depends on a condition"):
        to_onnx(Of(function).eval(), (x,), dynamic_shapes=ROWS, capture=capture)


def test_parts_that_are_as_many_at_all_sizes_that_come_are_right(x: Tensor) -> None:
    assert_right(Of(lambda x: torch.stack([row * 3 for row in x[:3]]).amax(0) if x.shape[0] > 3 else x.sum(0)), x)


def test_parts_that_python_takes_apart_are_right_where_it_can(x: Tensor) -> None:
    def unpacked(x: Tensor) -> Tensor:
        a, b, c = x[:3]
        return x * a + b - c

    program = to_onnx(Of(unpacked).eval(), (x,), dynamic_shapes=ROWS, capture="run")
    for rows in (3, 40):
        given = torch.rand(rows, 4)
        torch.testing.assert_close(program(given)[0], unpacked(given))
