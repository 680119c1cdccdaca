"""Operators that torch does not have."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor, nn

from exportlab.cases import Declaration, case
from exportlab.specs import tensor

CUBED = """
#include <ATen/ops/mul.h>
#include <torch/library.h>
at::Tensor cubed(const at::Tensor& x) { return at::mul(at::mul(x, x), x); }
TORCH_LIBRARY_FRAGMENT(exportlab, library) { library.def("cubed(Tensor x) -> Tensor"); }
TORCH_LIBRARY_IMPL(exportlab, CPU, library) { library.impl("cubed", &cubed); }
"""


@cache
def scaled_sine() -> Callable[[Tensor, float], Tensor]:
    """Register the operator `exportlab::scaled_sine` at the first call and return it."""

    @torch.library.custom_op("exportlab::scaled_sine", mutates_args=())
    def scaled_sine(x: Tensor, scale: float) -> Tensor:
        return torch.sin(x) * scale

    scaled_sine.register_fake(lambda x, scale: torch.empty_like(x))
    return scaled_sine


@cache
def softened() -> Callable[[Tensor, float], None]:
    """Register the operator `exportlab::softened_`, which writes into its argument, at the first call and return it."""

    @torch.library.custom_op("exportlab::softened_", mutates_args=("x",))
    def softened_(x: Tensor, by: float) -> None:
        x.copy_(x.sign() * (x.abs() - by).clamp(min=0))

    softened_.register_fake(lambda x, by: None)
    return softened_


@cache
def without_fake() -> Callable[[Tensor], Tensor]:
    """Register the operator `exportlab::without_fake`, whose output shape is unknown, at the first call and return it."""

    @torch.library.custom_op("exportlab::without_fake", mutates_args=())
    def without_fake(x: Tensor) -> Tensor:
        return x.flip(0) * 2

    return without_fake


@cache
def split_by_sign() -> Callable[[Tensor, Tensor | None, list[Tensor]], tuple[Tensor, Tensor]]:
    """Register `exportlab::split_by_sign`, with an optional argument, a list and two outputs, at the first call and return it."""

    @torch.library.custom_op("exportlab::split_by_sign", mutates_args=())
    def split_by_sign(x: Tensor, weight: Tensor | None, more: list[Tensor]) -> tuple[Tensor, Tensor]:
        total = (x if weight is None else x * weight) + torch.stack(more).sum(0)
        return total.clamp(min=0), total.clamp(max=0)

    split_by_sign.register_fake(lambda x, weight, more: (torch.empty_like(x), torch.empty_like(x)))
    return split_by_sign


@cache
def positives() -> Callable[[Tensor], Tensor]:
    """Register the operator `exportlab::positives`, whose length depends on values, at the first call and return it."""

    @torch.library.custom_op("exportlab::positives", mutates_args=())
    def positives(x: Tensor) -> Tensor:
        return x[x > 0]

    positives.register_fake(lambda x: x.new_empty(torch.library.get_ctx().new_dynamic_size()))
    return positives


@cache
def composed() -> Callable[[Tensor, Tensor], Tensor]:
    """Register the operator `exportlab::composed`, made of torch's operators, at the first call and return it."""
    torch.library.define("exportlab::composed", "(Tensor x, Tensor gate) -> Tensor")
    torch.library.impl("exportlab::composed", "CompositeImplicitAutograd", lambda x, gate: x * torch.sigmoid(gate) + gate)
    return torch.ops.exportlab.composed.default


@cache
def cubed() -> Callable[[Tensor], Tensor]:
    """Return the C++ operator `exportlab::cubed`. It is compiled once per machine and loaded once per process.

    Raises:
        RuntimeError: it cannot be compiled.
    """
    name = hashlib.sha256(f"{CUBED}{torch.__version__}".encode()).hexdigest()[:16]
    library = Path.home() / ".cache" / "exportlab" / f"cubed_{name}.so"
    if not library.exists():
        compile_cubed(library)
    torch.ops.load_library(library)
    torch.library.register_fake("exportlab::cubed", torch.empty_like)
    return torch.ops.exportlab.cubed.default


def compile_cubed(library: Path) -> None:
    """Compile the operator atomically."""
    from torch.utils import cpp_extension

    library.parent.mkdir(parents=True, exist_ok=True)
    folders = [f"-I{folder}" for folder in cpp_extension.include_paths()] + [f"-L{folder}" for folder in cpp_extension.library_paths()]
    flags = ["-shared", "-fPIC", "-std=c++20", "-O0", f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}"]
    with TemporaryDirectory(dir=library.parent) as folder:
        source, built = Path(folder) / "cubed.cpp", Path(folder) / library.name
        source.write_text(CUBED)
        try:
            subprocess.run(["c++", *flags, *folders, source, "-lc10", "-ltorch_cpu", "-o", built], check=True, capture_output=True)
        except (subprocess.CalledProcessError, OSError) as error:
            raise RuntimeError("the operator of the case cpp_op cannot be compiled: it needs a C++ compiler, c++") from error
        os.replace(built, library)


class StraightThrough(torch.autograd.Function):
    """Rounds to a grid. Its gradient is that of the identity."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, step: float) -> Tensor:
        """Return the values, rounded to the grid."""
        ctx.save_for_backward(x)
        return torch.round(x / step) * step

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        """Return the gradient unchanged."""
        return grad, None


@case(dims={"batch": (4, 7, 1, 0)}, topics=("custom ops",))
def custom_op() -> Declaration:
    """A custom operator without a translation: what does the error message say?"""
    op = scaled_sine()

    class ScaledSine(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return op(x, 0.5) + x

    return ScaledSine(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("custom ops", "mutation"))
def custom_op_in_place() -> Declaration:
    """A custom operator returns nothing and writes into a copy: is the new value read afterwards?"""
    soften = softened()

    class Softened(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            made = x * 2
            soften(made, 0.5)
            return made + x

    return Softened(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("custom ops",))
def custom_op_without_fake() -> Declaration:
    """A custom operator without a fake kernel: which exporters refuse it, and do they name the missing kernel?"""
    op = without_fake()

    class WithoutFake(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return op(x) + x

    return WithoutFake(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("custom ops", "signature"))
def custom_op_of_many() -> Declaration:
    """A custom operator with an optional argument, a list of tensors and two outputs: is its signature supported?"""
    split = split_by_sign()

    class Split(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            above, below = split(x, None, [y, x, y])
            return above - split(below, y, [x])[1]

    return Split(), (tensor("batch", 3), tensor("batch", 3))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("custom ops", "data-dependent"))
def custom_op_of_unknown_length() -> Declaration:
    """The output length of a custom operator depends on values: can it become a symbolic size?"""
    op = positives()

    class Positives(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return op(x) * 2

    return Positives(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("custom ops",))
def custom_op_composed() -> Declaration:
    """A custom operator made of torch's operators: does the exporter decompose it?"""
    op = composed()

    class Composed(nn.Module):
        def forward(self, x: Tensor, gate: Tensor) -> Tensor:
            return op(x, gate) - x

    return Composed(), (tensor("batch", 3), tensor("batch", 3))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("custom ops",))
def cpp_op() -> Declaration:
    """A C++ operator with a fake kernel but without Python code: can it be exported?"""
    op = cubed()

    class Cubed(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return op(x) - x

    return Cubed(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("custom ops", "autograd"))
def autograd_function() -> Declaration:
    """A `torch.autograd.Function` whose gradient isn't needed: is its forward captured?"""

    class Rounded(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(3, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.linear(StraightThrough.apply(x, 0.25))

    return Rounded(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("custom ops", "silence"))
def numpy_inside() -> Declaration:
    """`forward` converts to numpy and back: does the result become a constant of the exported model?"""
    import numpy

    class ThroughNumpy(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.from_numpy(numpy.tanh(x.detach().numpy() * 2)) + x

    return ThroughNumpy(), (tensor("batch", 3),)
