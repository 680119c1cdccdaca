"""What moves, chooses or adds up elements of complex tensors does so with both parts, at the export's size and at another."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from inputs import normal
from operators import Call, as_pairs, check, check_both
from torch.export import Dim

from fx2onnx import to_onnx
from fx2onnx.errors import MutationError, UnsupportedArgument, UnsupportedOps

X, Y = normal(2, 3, 4), normal(2, 3, 4) + 1
aten = torch.ops.aten


def atomic_write(z: torch.Tensor) -> torch.Tensor:
    z = z * 1
    z += 1 - 2j
    return z


def written_in_part(z: torch.Tensor) -> torch.Tensor:
    z = z * 1
    z[:, 1] *= 1j
    z.mT[..., 0] = 3
    return z


def written_through_a_view(z: torch.Tensor) -> torch.Tensor:
    z = z * 1
    view = z.transpose(0, 2)[1:]
    view.mul_(2 + 1j)
    return z + z.flip(0)


MOVED = {
    "view": lambda z: z.reshape(z.shape[0], -1),
    "permute": lambda z: z.permute(2, 0, 1),
    "transpose": lambda z: z.mT,
    "slice": lambda z: z[:, 1:, ::2],
    "select": lambda z: z[:, -1],
    "split": lambda z: z.split(2, -1)[1] * z.chunk(2, -1)[0],
    "unbind": lambda z: z[:, :2].unbind(1)[1],
    "indices": lambda z: z[:, torch.tensor([2, 0, 0])],
    "gather": lambda z: z.gather(1, torch.zeros_like(z.real, dtype=torch.int64) + 1),
    "mask": lambda z: z.masked_fill(z.real > 0, 0),
    "number in a mask": lambda z: z.masked_fill(z.real > 0, 2 - 1j),
    "expand": lambda z: z[:, :1].expand(-1, 5, -1),
    "repeat": lambda z: z.repeat(1, 2, 1),
    "roll": lambda z: z.roll(1, -1),
    "flip": lambda z: z.flip(1),
    "sum": lambda z: z.sum(1),
    "sum of all": lambda z: z.sum(),
    "cumsum": lambda z: z.cumsum(1),
    "tril": lambda z: z.tril(),
    "pad": lambda z: torch.nn.functional.pad(z, (1, 2), value=3.0),
    "neg": lambda z: -z,
    "clone": lambda z: z.clone().contiguous(),
}  # fmt: skip
TOGETHER = {
    "add": lambda z: z + z.mT.mT,
    "add a real tensor": lambda z: z + z.real,
    "real tensor with further axes": lambda z: z[0] + z.real,
    "add integers": lambda z: z + torch.arange(4),
    "add a number": lambda z: z + 2,
    "add a complex number": lambda z: z - (2 + 3j),
    "a number less it": lambda z: 1j - z,
    "alpha": lambda z: torch.add(z, z.real, alpha=3),
    "cat": lambda z: torch.cat([z, z.real, z.imag + 0j], 1),
    "stack": lambda z: torch.stack([z, z * 2], 1),
    "where": lambda z: torch.where(z.real > 0, z, z.imag),
    "where with a number": lambda z: torch.where(z.real > 0, z, 0),
    "index_put": lambda z: z.index_put((torch.tensor([0]),), z[1] * 2),
    "slice_scatter": lambda z: z.slice_scatter(z[:, :1] * 2, 1, 0, 1),
    "full_like": lambda z: torch.full_like(z, 2 - 1j) + z,
    "zeros_like": lambda z: torch.zeros_like(z) + z,
    "ones_like": lambda z: torch.ones_like(z) * z,
    "new_zeros": lambda z: z.new_zeros(z.shape) - z,
    "real ones": lambda z: torch.ones_like(z, dtype=torch.float32) * z,
}  # fmt: skip
BETWEEN = {
    "to complex": lambda z: z.real.to(torch.complex64) * 1j,
    "integers to complex": lambda z: (z.real > 0).to(torch.complex64) + z,
    "to the type of another": lambda z: z.real.type_as(z) + z,
    "to real": lambda z: z.to(torch.float32),
    "to the other width": lambda z: z.to(torch.complex128),
    "real and imag": lambda z: torch.complex(z.imag, z.real),
    "complex of two sizes": lambda z: torch.complex(z.real, z.imag[:1, :1]),
    "pairs and back": lambda z: torch.view_as_complex(torch.view_as_real(z.mT.contiguous()).flip(-1).contiguous()),
}  # fmt: skip
WRITES = {"whole": atomic_write, "in part": written_in_part, "through a view": written_through_a_view}
ALL = {**MOVED, **TOGETHER, **BETWEEN, **WRITES}


@pytest.mark.parametrize("name", ALL)
def test_of_complex_numbers(name: str) -> None:
    check_both(as_pairs(ALL[name]), X, Y)


@pytest.mark.parametrize("name", ["transpose", "sum", "add a real tensor", "where", "in part"])
def test_of_double_width(name: str) -> None:
    check(as_pairs(ALL[name]), X.double(), Y.double(), dynamic=True)


def test_of_a_mean_whose_axes_torch_export_does_not_move() -> None:
    check(as_pairs(lambda z: z.mean(-1)), X, Y)


@pytest.mark.parametrize("name", ["view", "cat", "in part", "through a view", "mean"])
def test_by_running(name: str) -> None:
    call = Call(as_pairs({**ALL, "mean": lambda z: z.mean(-1)}[name]), (X, Y), {})
    axes = {0: "a", 1: "b", 2: "c"}
    program = to_onnx(call, (X, Y), dynamic_shapes=((axes, axes),), capture="run")
    for sizes in ((5, 4, 3), (2, 2, 7)):
        parts = normal(*sizes), normal(*sizes) - 1
        torch.testing.assert_close(program(*parts)[0], call(*parts))


class Weighed(torch.nn.Module):
    """A complex parameter, and a complex buffer that is conjugated where it lies."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(4, dtype=torch.complex64))
        self.register_buffer("shift", torch.tensor([1j, 2, 3, 4 - 1j]).conj())

    def forward(self, x: torch.Tensor) -> Any:
        return torch.view_as_real(x * self.weight + self.shift)


def test_weights_and_buffers_are_both_parts_under_their_names() -> None:
    module = Weighed()
    program = to_onnx(module, (X[0],), dynamic_shapes=({0: Dim.DYNAMIC},))
    assert {"weight/real", "weight/imag", "shift/real", "shift/imag"} <= set(program.model.graph.initializers)
    torch.testing.assert_close(program(X[1])[0], module(X[1]).detach())


def test_a_complex_argument_and_a_complex_result_are_refused_with_what_to_do() -> None:
    call = torch.nn.Module()
    call.forward = lambda z: torch.view_as_real(z * 2)  # type: ignore[method-assign]
    with pytest.raises(UnsupportedArgument, match=r"complex64.*torch\.view_as_real"):
        to_onnx(call, (torch.complex(X, Y),))
    call.forward = lambda x: torch.fft.rfft(x)  # type: ignore[method-assign]
    with pytest.raises(UnsupportedArgument, match=r"the output \w+ is torch\.complex64.*torch\.view_as_real"):
        to_onnx(call, (X,))


class RetryFacts(torch.nn.Module):
    """A complex buffer that each call changes."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("last", torch.zeros(4, dtype=torch.complex64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.last.mul_(2).add_(x.sum())
        return torch.view_as_real(self.last)


def test_a_complex_buffer_that_is_changed_is_refused() -> None:
    with pytest.raises(MutationError, match="last"):
        to_onnx(RetryFacts(), (X[0],))
    with pytest.raises(MutationError, match=r"last, which is complex.*view_as_real"):
        to_onnx(RetryFacts(), (X[0],), mutations="outputs")


def test_what_writes_into_one_part_is_refused() -> None:
    def call(real: torch.Tensor, imag: torch.Tensor) -> torch.Tensor:
        z = torch.complex(real, imag)
        torch.view_as_real(z)[..., 0].mul_(2)
        return z.abs()

    with pytest.raises(UnsupportedOps, match="part of complex numbers"):
        check(call, X, Y)


def test_an_operator_without_a_translation_for_complex_numbers_says_so() -> None:
    with pytest.raises(UnsupportedOps, match=r"aten\.prod"):
        check(lambda x, y: torch.complex(x, y).prod(1).abs(), X, Y)
