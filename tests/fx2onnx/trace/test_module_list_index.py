"""Layers at a number that a value decides: the file has all of them and calls the one of the call, from the end where it is negative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from exportlab.cases import Sample
from exportlab.verification.verify import verify
from fx2onnx import ToOnnxError, to_onnx
from fx2onnx.patches.registry import apply_patches
from fx2onnx.trace.symbolic_scalars import ScalarProxy

NUMBERS = (1, 0, 2, -1, -3)
BATCHES = (4, 7, 1, 2, 0)


class Chosen(nn.Module):
    """What a function makes of lists of layers and a number."""

    def __init__(self, function: Callable[..., Any], layers: int = 3) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(layers))
        self.sequence = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Tanh())
        self.scales = nn.ParameterList(torch.randn(3) for _ in range(3))
        self.register_buffer("third", torch.tensor(2))
        self.function = function

    def forward(self, x: Tensor, number: Tensor) -> Any:
        return self.function(self, x, number)


def bound_first(self: Chosen, x: Tensor, number: Tensor) -> Tensor:
    place = int(number)
    return self.layers[place](x) + self.layers[place](x * 2)


def within_a_test(self: Chosen, x: Tensor, number: Tensor) -> Tensor:
    place = int(number)
    return x.sin() if place < 0 else self.layers[place](x)


TAKEN = {
    "int()": lambda self, x, number: self.layers[int(number)](x).relu() + x[:1],
    "item()": lambda self, x, number: self.layers[number.item()](x),
    "a tensor": lambda self, x, number: self.layers[number](x),
    "a number of few bits": lambda self, x, number: self.layers[int(number.to(torch.int8))](x),
    "a sequence": lambda self, x, number: self.sequence[int(number)](x),
    "parameters": lambda self, x, number: x * self.scales[int(number)],
    "what tensors say": lambda self, x, number: self.layers[int((number + 6) % 3)](x),
    "twice": bound_first,
    "two lists": lambda self, x, number: self.layers[int(number)](x) + self.sequence[int(number)](x),
    "a buffer": lambda self, x, number: self.layers[int(self.third)](x) + number,
    "behind a test": within_a_test,
}


def exported(function: Callable[..., Any], layers: int = 3) -> tuple[Any, Chosen, list[Sample]]:
    module = Chosen(function, layers).eval()
    samples = [Sample((torch.randn(batch, 3), torch.tensor(number))) for batch, number in zip(BATCHES, NUMBERS, strict=True)]
    return to_onnx(module, samples[0].args, dynamic_shapes=({0: "batch"}, None), capture="run"), module, samples


@pytest.mark.parametrize("name", TAKEN)
def test_the_file_calls_the_layer_of_the_call(name: str) -> None:
    program, module, samples = exported(TAKEN[name])
    verify(program, module, samples).check()


def test_a_number_of_an_input_is_an_if_and_beyond_the_list_the_last_layer_is_called() -> None:
    program, module, samples = exported(TAKEN["int()"])
    x, _ = samples[0].args
    assert [node.op_type for node in program.model.graph].count("If") == 1
    assert [line.partition(": ")[2] for line in program.report.limits] == ["IndexError: index is out of range of 3"]
    for beyond in (3, -4):
        with pytest.raises(IndexError):
            module(x, torch.tensor(beyond))
        torch.testing.assert_close(program(x, torch.tensor(beyond))[0], module(x, torch.tensor(2)))


def test_a_comparison_of_an_int_is_a_test() -> None:
    program, module, samples = exported(lambda self, x, number: x.sin() if int(number) > 0 else x.cos())
    verify(program, module, samples).check()
    assert program.report.limits == ()


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda self, x, number: self.layers[int(number) - 1](x), r"aten\.linear\.default"),
        (lambda self, x, number: [self.layers[0], self.layers[1]][int(number)](x), r"aten\.linear\.default"),
        (lambda self, x, number: self.layers[: int(number)][0](x), "the condition u0.*"),
        (lambda self, x, number: self.layers[int(number * 1.0)](x), "a tensor value is read"),
    ],
)
def test_what_else_is_done_with_an_int_is_refused_with_the_line(function: Callable[..., Any], said: str) -> None:
    with pytest.raises(ToOnnxError, match=rf"{said} at .*test_module_list_index\.py:\d+"):
        exported(function)


def test_more_layers_than_a_file_may_have_sides_are_refused() -> None:
    exported(TAKEN["int()"], 16)
    with pytest.raises(ToOnnxError, match=r"passed to a list of 17 layers.* at .*test_module_list_index\.py:\d+"):
        exported(TAKEN["int()"], 17)


def test_lists_and_int_are_as_before() -> None:
    exported(TAKEN["int()"])
    assert "int" not in globals()
    assert isinstance(Chosen(bound_first).layers[1], nn.Linear)
    with pytest.raises(IndexError, match="index 5 is out of range"):
        Chosen(bound_first).layers[5]


def test_layers_are_chosen_also_after_many_captures() -> None:
    lists = nn.ModuleList([nn.ReLU(), nn.Tanh()]), nn.Sequential(nn.ReLU(), nn.Tanh()), nn.ParameterList([torch.ones(1), torch.ones(2)])
    number = ScalarProxy(torch.tensor(1), Refusing(), None)
    number.chosen[2] = 1
    for _ in range(600):
        for layers in lists:
            assert at(layers, 0) is not at(layers, 1)
            with apply_patches("chosen_layers"):
                assert at(layers, number) is at(layers, 1)
            with pytest.raises(TypeError):
                at(layers, number)


def test_a_layer_is_set_at_no_number_that_a_value_decides() -> None:
    number = ScalarProxy(torch.tensor(1), Refusing(), None)
    number.chosen[2] = 1
    with apply_patches("chosen_layers"), pytest.raises(TypeError):
        nn.ModuleList([nn.ReLU(), nn.Tanh()])[number] = nn.ReLU()


class Refusing:
    """In the place of a recorder."""

    def refusal(self, why: str) -> Exception:
        return TypeError(why)

    def is_constant(self, tensor: Tensor) -> bool:
        return False


def at(layers: Any, place: Any) -> Any:
    return layers[place]
