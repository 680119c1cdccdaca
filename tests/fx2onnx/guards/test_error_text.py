"""What the model raises while it is captured is told with its line, and with what to do where torch's words say nothing of it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy
import pytest
import torch
from modules import Of
from torch import Tensor, nn
from torch.export import Dim

from exportlab import to_onnx, verify
from fx2onnx.errors import CaptureError

X = torch.randn(2, 5)
ROWS = ({0: Dim("rows")},)
STEPS = ({1: Dim("steps")},)
HERE = r"tests/fx2onnx/guards/test_error_text\.py:\d+ in "
TABLE = {3: 1.0, 7: 2.0}


@dataclass
class Unregistered:
    """Two results, whose class torch does not know."""

    sum: Tensor
    double: Tensor


@dataclass
class Registered(Unregistered):
    """The same, known to torch."""


torch.export.register_dataclass(Registered)


class Plain:
    """A result that is no dataclass."""

    def __init__(self, x: Tensor) -> None:
        self.x = x


@functools.lru_cache
def positions(number: int) -> Tensor:
    return torch.arange(number, dtype=torch.float32)


class RetryFacts(nn.Module):
    """Keeps a tensor for each size that it has met."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[int, Tensor] = {}

    def forward(self, x: Tensor) -> Tensor:
        steps = x.shape[1]
        if steps not in self.kept:
            self.kept[steps] = torch.arange(steps, dtype=torch.float32)
        return x + self.kept[steps]


KEYED: dict[str, nn.Module] = {
    "a dict of its own": RetryFacts(),
    "a table": Of(lambda x: x * TABLE.get(x.shape[1], 0.5)),
    "a cached function": Of(lambda x: x + positions(x.shape[1])),
    "a set": Of(lambda x: x * 2 if x.shape[1] in {3, 5} else x),
    "a shape": Of(lambda x: x * len({x.shape: 1})),
}


@pytest.mark.parametrize("name", KEYED)
@pytest.mark.parametrize("by", ["auto", "run", "torch.export"])
def test_a_size_as_a_key_is_refused_with_its_line_and_what_to_do(name: str, by: str) -> None:
    positions.cache_clear()
    with pytest.raises(CaptureError, match=f"at {HERE}.*: a dynamic size is used as a key of a dict, .*. Compute the value") as caught:
        to_onnx(KEYED[name], (X,), dynamic_shapes=STEPS, capture=by)
    assert not getattr(caught.value, "__notes__", ())


NUMPY: dict[str, Callable[[Tensor], Tensor]] = {
    "numpy": lambda x: torch.from_numpy(numpy.sin(x.numpy())),
    "asarray": lambda x: torch.from_numpy(numpy.asarray(x)),
    "array": lambda x: torch.as_tensor(numpy.array(x.detach())),
    "a function of a tensor": lambda x: torch.as_tensor(numpy.sin(x)),
    "a function that is written in Python": lambda x: x @ torch.from_numpy(numpy.linalg.pinv(x)),
    "a function of a size": lambda x: x * numpy.sqrt(x.shape[1]),
    "an array of sizes": lambda x: x + torch.from_numpy(numpy.arange(x.shape[1])),
}


@pytest.mark.parametrize("name", NUMPY)
@pytest.mark.parametrize("by", ["auto", "torch.export"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_leaves_torch_for_numpy_is_refused_with_its_line_and_what_to_do(name: str, by: str) -> None:
    with pytest.raises(CaptureError, match=f" at {HERE}.*: A tensor or a size is passed to NumPy there.*Use PyTorch functions"):
        to_onnx(Of(NUMPY[name]), (X,), dynamic_shapes=STEPS, capture=by)


@pytest.mark.parametrize("name", ["numpy", "asarray"])
def test_runs_refuse_it_in_the_same_words(name: str) -> None:
    with pytest.raises(CaptureError, match=f"reads tensor values at {HERE}.*: A tensor or a size is passed to NumPy there"):
        to_onnx(Of(NUMPY[name]), (X,), dynamic_shapes=STEPS, capture="run")


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + torch.arange(x.shape[1], dtype=torch.float32),
        lambda x: x * (0.5 if x.shape[1] > 4 else 2.0),
        lambda x: x * torch.tensor([0.5, 1.0, 2.0, 3.0] * 10)[x.shape[1]],
    ],
    ids=["without the cache", "a test", "a tensor"],
)
def test_what_is_to_be_done_instead_is_taken(function: Callable[[Tensor], Any]) -> None:
    model = Of(function)
    verify(to_onnx(model, (X,), dynamic_shapes=STEPS), model, [(torch.randn(2, size),) for size in (5, 3, 8)]).check()


class Energy(nn.Module):
    """The gradient of a sum, with respect to an input that requires one or not."""

    def __init__(self, requires_grad: bool) -> None:
        super().__init__()
        self.layer = nn.Linear(5, 3)
        self.requires_grad = requires_grad

    def forward(self, x: Tensor) -> Tensor:
        with torch.enable_grad():
            x = x.detach().requires_grad_() if self.requires_grad else x
            return torch.autograd.grad((self.layer.weight.detach() @ x.T).sin().sum(), x)[0]


class Backward(Energy):
    """The same by `backward`, of which parameters keep gradients, too."""

    def forward(self, x: Tensor) -> Any:
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            self.layer(x).sin().sum().backward()
            return x.grad


@pytest.mark.parametrize("shapes", [None, ROWS], ids=["static", "moving"])
@pytest.mark.parametrize("by", ["auto", "run", "torch.export"])
def test_a_gradient_that_cannot_be_computed_has_its_line_and_what_to_do(by: str, shapes: Any) -> None:
    told = f"element 0 of tensors does not require grad .* at {HERE}forward: .* Start with x = x.detach"
    with pytest.raises(CaptureError, match=told):
        to_onnx(Energy(requires_grad=False), (X,), dynamic_shapes=shapes, capture=by)
    model = Energy(requires_grad=True)
    (found,) = to_onnx(model, (X,), dynamic_shapes=shapes, capture=by)(given := torch.randn(2, 5))
    torch.testing.assert_close(found, model(given))


@pytest.mark.parametrize("shapes", [None, ROWS], ids=["static", "moving"])
@pytest.mark.parametrize("by", ["auto", "run", "torch.export"])
def test_backward_into_parameters_is_refused_with_its_line_and_leaves_no_gradients(by: str, shapes: Any) -> None:
    model = Backward(requires_grad=True)
    with pytest.raises(CaptureError, match=f"adds gradients to the parameters of the model at {HERE}forward, which .*autograd.grad"):
        to_onnx(model, (X,), dynamic_shapes=shapes, capture=by)
    assert model.layer.weight.grad is None


def test_gradients_that_torch_export_does_not_follow_have_their_line() -> None:
    layer = nn.Linear(5, 3)
    model = Of(lambda x: torch.autograd.grad(layer(x := x.clone().requires_grad_()).sum(), x))
    with pytest.raises(CaptureError, match=f"The model computes gradients at {HERE}"):
        to_onnx(model, (X,), capture="torch.export")


@pytest.mark.parametrize("shapes", [None, STEPS], ids=["static", "moving"])
@pytest.mark.parametrize("by", ["auto", "run", "torch.export"])
def test_a_result_whose_class_is_not_registered_is_refused_with_what_to_do(by: str, shapes: Any) -> None:
    made: dict[str, Callable[[Tensor], Any]] = {
        "Unregistered": lambda x: {"both": [Unregistered(x.sum(), x * 2)]},
        "Plain": lambda x: Plain(x + 1),
    }
    for kind, function in made.items():
        told = rf"the model returns a {kind}, which is not registered as a pytree\. .* torch\.export\.register_dataclass\({kind}\)"
        with pytest.raises(CaptureError, match=told) as caught:
            to_onnx(Of(function), (X,), dynamic_shapes=shapes, capture=by)
        assert not getattr(caught.value, "__notes__", ())


@pytest.mark.parametrize("by", ["run", "torch.export"])
def test_a_result_whose_class_is_registered_is_taken(by: str) -> None:
    model = Of(lambda x: Registered(x.sum(), x * 2))
    verify(to_onnx(model, (X,), dynamic_shapes=STEPS, capture=by), model, [(torch.randn(2, size),) for size in (5, 8)]).check()


class Crf(nn.Module):
    """The sum over all paths of tags, as a conditional random field has it: a mask that is tested, and a loop over the steps."""

    def __init__(self) -> None:
        super().__init__()
        self.transitions = nn.Parameter(torch.randn(5, 5))

    def forward(self, scores: Tensor, mask: Tensor) -> Tensor:
        if not mask[0].all():
            raise ValueError("the mask of the first step must be on")
        total = scores[0]
        for step in range(1, scores.shape[0]):
            longer = torch.logsumexp(total[:, :, None] + self.transitions + scores[step][:, None], dim=1)
            total = torch.where(mask[step][:, None], longer, total)
        return torch.logsumexp(total, dim=1)


def test_a_mask_that_is_tested_before_a_loop_is_a_limit() -> None:
    args = torch.randn(6, 2, 5), torch.ones(6, 2, dtype=torch.bool)
    model = Crf()
    program = to_onnx(model, args, dynamic_shapes=({0: "steps"}, {0: "steps"}))
    assert any("ValueError: the mask of the first step must be on" in limit for limit in program.report.limits)
    for steps in (1, 2, 3, 9):
        scores, mask = torch.randn(steps, 2, 5), torch.rand(steps, 2) > 0.4
        mask[0] = True
        torch.testing.assert_close(program(scores, mask)[0], model(scores, mask))
