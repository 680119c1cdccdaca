"""A function converted with translations of a test's choice, and an operator that nobody translates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import onnx_ir as ir
import torch
from operators import Call
from torch.export import Dim

from exportlab.cases import Sample
from exportlab.verification.report import Report
from exportlab.verification.verify import verify
from fx2onnx.lower.conversion import Conversion, ConversionOptions
from fx2onnx.ops import own_translations
from fx2onnx.translate.dispatch import Dispatch
from fx2onnx.translate.sources import dispatch_of

X = torch.linspace(-2, 3, 12).reshape(3, 4)


@torch.library.custom_op("exportlab_test::mix", mutates_args=())
def mix(x: torch.Tensor, y: torch.Tensor, by: float) -> torch.Tensor:
    """2x + by·y."""
    return 2 * x + by * y


@mix.register_fake
def _(x: torch.Tensor, y: torch.Tensor, by: float) -> torch.Tensor:
    return torch.empty_like(x)


MIX = torch.ops.exportlab_test.mix


def converted(function: Callable[..., Any], *args: Any, found: Dispatch, opset: int = 20, dynamic: bool = True) -> tuple[ir.Model, Report]:
    """Return the model of a function with these translations, and its verification at the size of the example and at another."""
    module = Call(function, args, {})
    shapes = (tuple(dict.fromkeys(range(a.dim()), Dim.AUTO) for a in args),) if dynamic else None
    program = torch.export.export(module, args, dynamic_shapes=shapes)
    model = Conversion(program, ConversionOptions(opset), {}, found).model()
    samples = [Sample(args)] + ([Sample(tuple(torch.cat([a, a]) for a in args))] if dynamic else [])
    return model, verify(torch.onnx.ONNXProgram(model, program), module, samples)


def without_own(*operators: Any, opset: int = 20) -> Dispatch:
    """Return what finds translations when there are none of our own for these operators."""
    rest = {target: made for target, made in own_translations().items() if target not in operators}
    return dispatch_of({}, rest, opset, True)


def dispatch(table: Mapping[Any, Any], opset: int = 20, fallback: bool = True) -> Dispatch:
    """Return what finds translations with this table of the caller's."""
    return dispatch_of(table, own_translations(), opset, fallback)
