"""Ops that torch does not have."""

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
    """The op `exportlab::scaled_sine`, registered at the first call."""

    @torch.library.custom_op("exportlab::scaled_sine", mutates_args=())
    def scaled_sine(x: Tensor, scale: float) -> Tensor:
        return torch.sin(x) * scale

    scaled_sine.register_fake(lambda x, scale: torch.empty_like(x))
    return scaled_sine


@cache
def softened() -> Callable[[Tensor, float], None]:
    """The op `exportlab::softened_`, which writes into its argument, registered at the first call."""

    @torch.library.custom_op("exportlab::softened_", mutates_args=("x",))
    def softened_(x: Tensor, by: float) -> None:
        x.copy_(x.sign() * (x.abs() - by).clamp(min=0))

    softened_.register_fake(lambda x, by: None)
    return softened_


@cache
def without_fake() -> Callable[[Tensor], Tensor]:
    """The op `exportlab::without_fake`, of which nobody knows the shape of the result, registered at the first call."""

    @torch.library.custom_op("exportlab::without_fake", mutates_args=())
    def without_fake(x: Tensor) -> Tensor:
        return x.flip(0) * 2

    return without_fake


@cache
def split_by_sign() -> Callable[[Tensor, Tensor | None, list[Tensor]], tuple[Tensor, Tensor]]:
    """The op `exportlab::split_by_sign`: an optional argument, a list, two results; registered at the first call."""

    @torch.library.custom_op("exportlab::split_by_sign", mutates_args=())
    def split_by_sign(x: Tensor, weight: Tensor | None, more: list[Tensor]) -> tuple[Tensor, Tensor]:
        total = (x if weight is None else x * weight) + torch.stack(more).sum(0)
        return total.clamp(min=0), total.clamp(max=0)

    split_by_sign.register_fake(lambda x, weight, more: (torch.empty_like(x), torch.empty_like(x)))
    return split_by_sign


@cache
def positives() -> Callable[[Tensor], Tensor]:
    """The op `exportlab::positives`, as long as there are positive values, registered at the first call."""

    @torch.library.custom_op("exportlab::positives", mutates_args=())
    def positives(x: Tensor) -> Tensor:
        return x[x > 0]

    positives.register_fake(lambda x: x.new_empty(torch.library.get_ctx().new_dynamic_size()))
    return positives


@cache
def composed() -> Callable[[Tensor, Tensor], Tensor]:
    """The op `exportlab::composed`, made of ops that torch has for any device, registered at the first call."""
    torch.library.define("exportlab::composed", "(Tensor x, Tensor gate) -> Tensor")
    torch.library.impl("exportlab::composed", "CompositeImplicitAutograd", lambda x, gate: x * torch.sigmoid(gate) + gate)
    return torch.ops.exportlab.composed.default


@cache
def cubed() -> Callable[[Tensor], Tensor]:
    """The op `exportlab::cubed`, written in C++, compiled at the first call on a machine and loaded at the first of each process.

    Raises:
        RuntimeError: it cannot be compiled here.
    """
    name = hashlib.sha256(f"{CUBED}{torch.__version__}".encode()).hexdigest()[:16]
    library = Path.home() / ".cache" / "exportlab" / f"cubed_{name}.so"
    if not library.exists():
        compile_cubed(library)
    torch.ops.load_library(library)
    torch.library.register_fake("exportlab::cubed", torch.empty_like)
    return torch.ops.exportlab.cubed.default


def compile_cubed(library: Path) -> None:
    """Compiles the op, whole or not at all."""
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
            raise RuntimeError("the op of the case cpp_op cannot be compiled here: it needs a C++ compiler, c++") from error
        os.replace(built, library)


class StraightThrough(torch.autograd.Function):
    """Rounds to a grid; its gradient is that of the identity."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, step: float) -> Tensor:
        """The values on the grid."""
        ctx.save_for_backward(x)
        return torch.round(x / step) * step

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        """The gradient, unchanged."""
        return grad, None


@case(dims={"batch": (4, 7, 1, 0)}, topics=("custom ops",))
def custom_op() -> Declaration:
    """An op that the exporter has never heard of: what does it say?"""
    op = scaled_sine()

    class ScaledSine(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return op(x, 0.5) + x

    return ScaledSine(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("custom ops", "mutation"))
def custom_op_in_place() -> Declaration:
    """An op of one's own that returns nothing and writes into a copy: is the written value read afterwards?"""
    soften = softened()

    class Softened(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            made = x * 2
            soften(made, 0.5)
            return made + x

    return Softened(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("custom ops",))
def custom_op_without_fake() -> Declaration:
    """Nobody wrote down which shape this op returns: who refuses, and does it say what is missing?"""
    op = without_fake()

    class WithoutFake(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return op(x) + x

    return WithoutFake(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("custom ops", "signature"))
def custom_op_of_many() -> Declaration:
    """An op with an argument that may be missing, a list of tensors, and two results: is its signature understood?"""
    split = split_by_sign()

    class Split(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            above, below = split(x, None, [y, x, y])
            return above - split(below, y, [x])[1]

    return Split(), (tensor("batch", 3), tensor("batch", 3))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("custom ops", "data-dependent"))
def custom_op_of_unknown_length() -> Declaration:
    """How long the result of this op is, its values decide: can a size be given a name before there is one?"""
    op = positives()

    class Positives(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return op(x) * 2

    return Positives(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("custom ops",))
def custom_op_composed() -> Declaration:
    """An op of one's own made of ops of torch: does the exporter look inside?"""
    op = composed()

    class Composed(nn.Module):
        def forward(self, x: Tensor, gate: Tensor) -> Tensor:
            return op(x, gate) - x

    return Composed(), (tensor("batch", 3), tensor("batch", 3))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("custom ops",))
def cpp_op() -> Declaration:
    """An op from a C++ library, with a shape but no Python behind it: what remains for an exporter?"""
    op = cubed()

    class Cubed(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return op(x) - x

    return Cubed(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("custom ops", "autograd"))
def autograd_function() -> Declaration:
    """A `torch.autograd.Function`, whose gradient nobody needs any more: is its forward traced through?"""

    class Rounded(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(3, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.linear(StraightThrough.apply(x, 0.25))

    return Rounded(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("custom ops", "silence"))
def numpy_inside() -> Declaration:
    """In the middle of `forward` the values go through numpy: is what it computed a constant of the file?"""
    import numpy

    class ThroughNumpy(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.from_numpy(numpy.tanh(x.detach().numpy() * 2)) + x

    return ThroughNumpy(), (tensor("batch", 3),)
