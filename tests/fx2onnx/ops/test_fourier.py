"""Fourier transforms: right at lengths that are even, odd, prime and one, cut and filled, in each scaling, static and moving."""

from __future__ import annotations

from typing import Any

import onnx
import onnxruntime
import pytest
import torch
from inputs import normal, whole
from operators import Call, as_pairs, check, check_both
from torch import fft

from fx2onnx import to_onnx

X, Y = normal(3, 5, 8), normal(3, 5, 8) + 1
NORMS = (None, "backward", "ortho", "forward")
OF_COMPLEX = {
    "fft": lambda z: fft.fft(z),
    "ifft": lambda z: fft.ifft(z),
    "fft along the first axis": lambda z: fft.fft(z, dim=0),
    "fft of the first elements": lambda z: fft.fft(z, n=3),
    "fft of more elements": lambda z: fft.fft(z, n=11),
    "ifft of more elements": lambda z: fft.ifft(z, n=9, dim=1),
    "fft2": lambda z: fft.fft2(z),
    "ifft2": lambda z: fft.ifft2(z, norm="ortho"),
    "fft2 of sizes": lambda z: fft.fft2(z, s=(4, 9)),
    "fftn": lambda z: fft.fftn(z),
    "ifftn": lambda z: fft.ifftn(z, dim=(0, 2)),
    "fftn of sizes": lambda z: fft.fftn(z, s=(4, 6), dim=(2, 0)),
    "irfft": lambda z: fft.irfft(z),
    "irfft of an odd length": lambda z: fft.irfft(z, n=13),
    "irfft of the first frequencies": lambda z: fft.irfft(z, n=9),
    "irfft of more frequencies": lambda z: fft.irfft(z, n=20, dim=1),
    "irfft2": lambda z: fft.irfft2(z),
    "irfftn": lambda z: fft.irfftn(z, dim=(1, 0)),
    "hfft": lambda z: fft.hfft(z),
    "hfft of an odd length": lambda z: fft.hfft(z, n=13, norm="ortho"),
    "there and back": lambda z: fft.ifft(fft.fft(z, dim=1), dim=1),
    "shift": lambda z: fft.ifftshift(fft.fftshift(z, dim=-1) * torch.arange(8), dim=-1),
}  # fmt: skip
OF_REAL = {
    "fft": lambda x: fft.fft(x),
    "ifft": lambda x: fft.ifft(x),
    "rfft": lambda x: fft.rfft(x),
    "rfft of the first elements": lambda x: fft.rfft(x, n=5),
    "rfft of more elements": lambda x: fft.rfft(x, n=11, dim=1),
    "rfft2": lambda x: fft.rfft2(x),
    "rfftn": lambda x: fft.rfftn(x, dim=(2, 0)),
    "rfftn of sizes": lambda x: fft.rfftn(x, s=(4, 6)),
    "ihfft": lambda x: fft.ihfft(x),
    "ihfft of more elements": lambda x: fft.ihfft(x, n=12, norm="forward"),
    "fftn": lambda x: fft.fftn(x),
}  # fmt: skip


def real_parts(function: Any) -> Any:
    """The function of a real tensor, whose complex result is pairs."""
    return lambda x: torch.view_as_real(function(x).resolve_conj())


@pytest.mark.parametrize("name", OF_COMPLEX)
def test_of_complex_numbers(name: str) -> None:
    check_both(as_pairs(OF_COMPLEX[name]), X, Y)


@pytest.mark.parametrize("name", OF_REAL)
def test_of_real_numbers(name: str) -> None:
    check_both(real_parts(OF_REAL[name]), X)


def test_of_real_numbers_that_are_taken_for_complex_ones() -> None:
    check_both(lambda x: fft.irfft(x) + fft.hfft(x), X)
    check_both(lambda x: fft.irfft2(x) + fft.irfftn(x, dim=(0, 1))[:, :, :1].sum(), X)


@pytest.mark.parametrize("norm", NORMS)
def test_in_each_scaling(norm: str | None) -> None:
    check(as_pairs(lambda z: fft.fft(z, norm=norm) + fft.ifft(z, norm=norm)), X, Y, dynamic=True)
    check(as_pairs(lambda z: fft.irfft(z, norm=norm)), X, Y, dynamic=True)
    check(as_pairs(lambda z: fft.hfft(z, norm=norm)), X, Y)
    check(lambda x: torch.view_as_real((fft.ihfft(x, norm=norm) + fft.rfft(x, norm=norm)).resolve_conj()), X, dynamic=True)
    check(lambda x: fft.irfft2(fft.rfft2(x, norm=norm), norm=norm), X)


@pytest.mark.parametrize("length", [1, 2, 3, 7, 16, 97, 100])
def test_of_each_length(length: int) -> None:
    x = normal(2, length)
    check(real_parts(fft.fft), x)
    check(real_parts(fft.rfft), x)
    check(lambda x: fft.irfft(fft.rfft(x), n=x.shape[-1]), x)


@pytest.mark.parametrize("capture", ["run", "torch.export"])
@pytest.mark.parametrize("name", ["fft", "rfft", "there and back", "to twice the length"])
def test_of_lengths_never_seen(name: str, capture: str) -> None:
    functions = {
        "fft": lambda x: fft.fft(x).abs(),
        "rfft": lambda x: fft.rfft(x, norm="ortho").real,
        "there and back": lambda x: fft.irfft(fft.rfft(x) * 2, n=x.shape[-1]),
        "to twice the length": lambda x: fft.irfft(fft.rfft(x, n=2 * x.shape[-1]).square(), n=2 * x.shape[-1]),
    }
    call = Call(functions[name], (X[0],), {})
    program = to_onnx(call, (X[0],), dynamic_shapes=(({0: "rows", 1: "length"},),), capture=capture)
    for sizes in ((4, 2), (2, 3), (5, 13), (2, 64), (3, 101)):
        x = normal(*sizes)
        torch.testing.assert_close(program(x)[0], call(x), rtol=1e-4, atol=1e-4)


def test_a_long_transform_is_as_exact_as_that_of_eager_where_the_operator_of_onnx_is_not() -> None:
    x = normal(4, 1000)
    exact = torch.view_as_real(fft.fft(x.double()))
    file = to_onnx(Call(lambda x: torch.view_as_real(fft.fft(x)), (x,), {}), (x,))(x)[0]
    text = """<ir_version: 10, opset_import: ["": 20]>
        g (float[4, 1000, 1] x) => (float[4, 1000, 2] y) { axis = Constant<value_int = 1>() y = DFT(x, , axis) }"""
    session = onnxruntime.InferenceSession(onnx.parser.parse_model(text).SerializeToString(), providers=["CPUExecutionProvider"])
    operator = torch.from_numpy(session.run(None, {"x": x[..., None].numpy()})[0])
    off, off_by_operator = (float((made.double() - exact).abs().max() / exact.abs().max()) for made in (file, operator))
    assert off < 1e-6
    assert off_by_operator > 1e-4, "ONNX Runtime's DFT is exact now: time it against the product again"


def test_of_float64_and_of_integers() -> None:
    check(as_pairs(lambda z: fft.fft(z)), X.double(), Y.double())
    check(as_pairs(lambda z: fft.irfft(z, n=13)), X.double(), Y.double(), dynamic=True)
    check(real_parts(fft.rfft), whole(3, 6))


@pytest.mark.parametrize("n", [1, 8, 9])
def test_frequencies(n: int) -> None:
    check(lambda x: x * fft.fftfreq(n, 0.5)[:1] + fft.rfftfreq(n, d=2.0)[0], X)
    check(lambda x: torch.cat([fft.fftfreq(n), fft.rfftfreq(n), x[0, 0]]), X)


class Primitives(torch.nn.Module):
    """Transforms that torch takes apart into its three kernels."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        spectrum = fft.rfft2(x, norm="ortho") * fft.fft(x)[..., :5]
        return fft.irfftn(spectrum, dim=(1, 2), norm="forward")


def test_of_a_program_that_was_decomposed() -> None:
    program = torch.export.export(Primitives(), (X,)).run_decompositions()
    assert any("_fft_r2c" in str(node.target) for node in program.graph.nodes)
    torch.testing.assert_close(to_onnx(program)(X)[0], Primitives()(X), rtol=1e-4, atol=1e-4)
