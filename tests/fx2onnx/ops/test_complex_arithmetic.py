"""Products, quotients, lengths and angles of complex numbers: right at the export's size, at another, and at the edges of the floats."""

from __future__ import annotations

import pytest
import torch
from inputs import INF, NAN, normal
from operators import Call, as_pairs, check, check_both

from fx2onnx import to_onnx

X, Y = normal(3, 4, 4), normal(3, 4, 4) + 1
EDGES = torch.tensor([0.0, -0.0, 1e-30, -1e-38, 1.0, -2.0, 1e19, -3e30, 3e38])
REAL, IMAG = (part.contiguous() for part in torch.meshgrid(EDGES, EDGES, indexing="ij"))
ENDLESS = torch.tensor([INF, -INF, NAN, 1.0, INF, NAN])

ARITHMETIC = {
    "mul": lambda z: z * (z + 1j),
    "mul by a real tensor": lambda z: z * z.real,
    "mul by a complex number": lambda z: z * (2 - 3j),
    "mul of a real tensor by a complex number": lambda z: z.real * (2 - 3j),
    "mul by integers": lambda z: z * torch.arange(4),
    "matmul": lambda z: z @ z.mT,
    "linear": lambda z: torch.nn.functional.linear(z, z[0], z[0, 0]),
    "linear, real weight": lambda z: torch.nn.functional.linear(z, torch.ones(5, 4) + 0j, torch.arange(5) + 0j),
    "baddbmm": lambda z: torch.baddbmm(z, z, z.mT),
    "einsum of two": lambda z: torch.einsum("bij,bkj->bik", z, z),
    "einsum of one": lambda z: torch.einsum("bij->bji", z),
    "outer": lambda z: torch.outer(z[0, 0], z[0, 1]),
    "vdot": lambda z: torch.vdot(z[0, 0], z[0, 1]),
    "addcmul": lambda z: torch.addcmul(z, z, z + 1, value=2),
    "div": lambda z: z / (z + 3),
    "div by a real tensor": lambda z: z / (z.real.abs() + 1),
    "div of a real tensor": lambda z: z.real / (z + 3),
    "div of a number": lambda z: (2 + 1j) / (z + 3),
    "div by a number": lambda z: z / (1 - 2j),
    "reciprocal": lambda z: z.reciprocal(),
    "conj": lambda z: z.conj() * 1,
    "adjoint": lambda z: z.mH @ z,
    "eq": lambda z: (z == z.conj()) | (z == 0),
    "ne": lambda z: z != z.real,
    "var": lambda z: z.var(-1),
    "std": lambda z: z.std(),
    "vector_norm": lambda z: torch.linalg.vector_norm(z, dim=-1),
    "normalize": lambda z: torch.nn.functional.normalize(z, dim=-1),
}  # fmt: skip
AT_EDGES = {
    "abs": lambda z: z.abs(),
    "angle": lambda z: z.angle(),
    "sgn": lambda z: z.sgn(),
}  # fmt: skip


@pytest.mark.parametrize("name", {**ARITHMETIC, **AT_EDGES})
def test_of_complex_numbers(name: str) -> None:
    check_both(as_pairs({**ARITHMETIC, **AT_EDGES}[name]), X, Y)


@pytest.mark.parametrize("name", AT_EDGES)
def test_at_the_edges_of_the_floats(name: str) -> None:
    check(as_pairs(AT_EDGES[name]), REAL, IMAG)


def test_quotients_do_not_overflow_on_the_way() -> None:
    check(as_pairs(lambda z: z / (z * 0.5)), REAL[4:], IMAG[4:])
    parts = REAL[2:7, 2:7].contiguous(), IMAG[2:7, 2:7].contiguous()
    call = Call(as_pairs(lambda z: 1 / z), parts, {})
    torch.testing.assert_close(to_onnx(call, parts)(*parts)[0], call(*parts))


def test_the_length_of_what_is_infinite_is_infinite() -> None:
    check(as_pairs(lambda z: z.abs()[:2]), ENDLESS, torch.ones(6))


def test_nan_and_infinity_are_told() -> None:
    check(as_pairs(lambda z: torch.stack([z.isnan(), z.isfinite()])), ENDLESS, ENDLESS.flip(0))


def test_the_reciprocal_of_nothing_has_an_infinite_real_part() -> None:
    check(as_pairs(lambda z: torch.view_as_real(z.reciprocal())[..., 0]), torch.zeros(4), torch.zeros(4))


def test_polar_of_lengths_and_angles() -> None:
    check_both(lambda r, a: torch.view_as_real(torch.polar(r, a)), X.abs(), Y)
