"""Arguments that nothing sane can be made of: each is refused in a line that says what to write instead."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch._subclasses import FakeTensorMode

from exportlab import export
from fx2onnx import ToOnnxError, to_onnx
from fx2onnx.errors import CaptureError, UnsupportedArgument
from fx2onnx.trace.refusal import TraceUnsupported

MODEL, X = nn.Linear(3, 2).eval(), torch.ones(4, 3)


@pytest.mark.parametrize("exporter", ["to_onnx", "dynamo", "torchscript"])
@pytest.mark.parametrize("argument", ["input_names", "output_names"])
@pytest.mark.parametrize("names", [[1], [""], "x", 3, {"x"}])
def test_names_that_are_none(exporter: str, argument: str, names: Any) -> None:
    with pytest.raises(UnsupportedArgument, match=rf"{argument}={re.escape(repr(names))}: pass a list of names that are not empty"):
        export(exporter, MODEL, (X,), **{argument: names})


@pytest.mark.parametrize(
    ("axis", "said"),
    [
        (9, r"axis 9 is not an axis of input, which has 2 axes, counted from 0$"),
        (-2, r"axis -2 is not an axis of input, which has 2 axes, counted from 0; write 0 instead$"),
        ("0", r"axis '0' is not an axis of input"),
        (True, r"axis True is not an axis of input"),
    ],
)
def test_an_axis_that_a_tensor_has_not(axis: Any, said: str) -> None:
    with pytest.raises(CaptureError, match=f"^dynamic_shapes does not match the arguments: {said}"):
        to_onnx(MODEL, (X,), dynamic_shapes=({axis: "b"},))


def test_a_part_that_is_scripted() -> None:
    with pytest.raises(
        CaptureError, match=r"Exporting a ScriptModule is not supported: 0 is a ScriptModule; use the nn.Module that it was scripted from"
    ):
        to_onnx(nn.Sequential(torch.jit.script(nn.Linear(3, 2))), (X,))


def test_a_sparse_tensor() -> None:
    with pytest.raises(
        TraceUnsupported, match=r"^an argument is a tensor of layout torch\.sparse_coo; only strided tensors are supported$"
    ):
        to_onnx(MODEL, (X.to_sparse(),), capture="run")


def test_a_fake_mode_around_the_call() -> None:
    with FakeTensorMode(), pytest.raises(UnsupportedArgument, match="inside a FakeTensorMode, where tensors have no values"):
        to_onnx(MODEL, (X,))


def test_weights_without_numbers() -> None:
    with pytest.raises(UnsupportedArgument, match=r"^0\.weight, 0\.bias: weights on the meta device"):
        to_onnx(nn.Sequential(nn.Linear(3, 2, device="meta")), (X,))


def test_a_tensor_as_dynamic_shapes() -> None:
    with pytest.raises(CaptureError, match=r"^dynamic_shapes is a Tensor: pass a tuple"):
        to_onnx(MODEL, (X,), dynamic_shapes=X)


@pytest.mark.parametrize("names", [None, "rows", [1], 3])
def test_accepted_ranges_that_are_no_names(names: Any) -> None:
    with pytest.raises(UnsupportedArgument, match="pass a sequence of names of dynamic dimensions"):
        to_onnx(MODEL, (X,), accept_ranges=names)


ANY = st.one_of(st.none(), st.integers(-9, 9), st.text(max_size=3), st.booleans(), st.just(X), st.binary(max_size=2))
ANYTHING = st.recursive(
    ANY, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.integers(-3, 3) | st.text(max_size=2), inner, max_size=3)
)
ARGUMENTS = dict.fromkeys(("input_names", "output_names", "dynamic_shapes", "opset_version", "mutations", "accept_ranges"), ANYTHING)


@given(name=st.sampled_from(sorted(ARGUMENTS)), value=ANYTHING)
def test_any_argument_ends_in_an_error_of_ours_or_a_file(name: str, value: Any) -> None:
    try:
        to_onnx(MODEL, (X,), **{name: value})
    except ToOnnxError as error:
        assert str(error)  # noqa: PT017 - which arguments are refused is not what is asked
