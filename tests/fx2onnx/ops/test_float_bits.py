"""The bits of floats, and the floats of bits: exact for all 65,536 of two bytes, at each power of two and beside it for wider ones."""

from __future__ import annotations

import pytest
import torch
from inputs import NAN, OWN, normal
from operators import Call, check, check_both, nodes_of

from fx2onnx import to_onnx
from fx2onnx.errors import UnsupportedOps

TYPES = [(torch.float16, torch.int16), (torch.bfloat16, torch.int16), (torch.float32, torch.int32), (torch.float64, torch.int64)]


def patterns(dtype: torch.dtype) -> torch.Tensor:
    """Integers of all kinds of bits: all that there are of two bytes, random ones, and those next to powers of two of either sign."""
    width = torch.iinfo(dtype).bits
    if width == 16:
        return torch.arange(-(2**15), 2**15).to(dtype)
    near = [sign * 2**bit + by for bit in range(width - 1) for by in (-1, 0, 1) for sign in (1, -1)]
    infinity = 0x7F800000 if width == 32 else 0x7FF << 52
    drawn = torch.randint(-(2 ** (width - 1)), 2 ** (width - 1) - 1, (20_000,), generator=torch.Generator().manual_seed(0))
    return torch.cat([drawn, torch.tensor([*near, infinity, torch.iinfo(dtype).min])]).to(dtype)


def viewed(given: torch.Tensor, dtype: torch.dtype, opset: int) -> torch.Tensor:
    """What a file says that was exported with five elements."""
    example = given[:5].contiguous()
    call = Call(lambda x: x.view(dtype), (example,), {})
    return torch.as_tensor(to_onnx(call, (example,), dynamic_shapes=(({0: "n"},),), opset_version=opset, **OWN)(given)[0])


@pytest.mark.parametrize("opset", [18, 20, 25, 26])
@pytest.mark.parametrize(("floats", "integers"), TYPES, ids=str)
def test_each_number_has_its_bits_in_both_directions(floats: torch.dtype, integers: torch.dtype, opset: int) -> None:
    bits = patterns(integers)
    numbers = bits.view(floats)
    kept = ~numbers.isnan()
    assert torch.equal(viewed(numbers, integers, opset)[kept], bits[kept])
    back = viewed(bits, floats, opset)
    assert torch.equal(back.view(integers)[kept], bits[kept])
    assert back[~kept].isnan().all()
    assert torch.equal(viewed(torch.full((5,), NAN, dtype=floats), integers, opset), torch.full((5,), NAN, dtype=floats).view(integers))


def test_a_nan_keeps_its_own_bits_by_the_operator_of_opset_26() -> None:
    odd = torch.tensor([0x7FC00001, -1, 0x7F800001], dtype=torch.int32).repeat(2)
    assert torch.equal(viewed(odd.view(torch.float32), torch.int32, 26), odd)
    assert nodes_of(lambda x: x.view(torch.int32), normal(3), opset_version=26) == ["BitCast"]


def test_a_root_by_its_bits() -> None:
    def inverse_root(x: torch.Tensor) -> torch.Tensor:
        guess = (0x5F3759DF - (x.view(torch.int32) >> 1)).view(torch.float32)
        return guess * (1.5 - 0.5 * x * guess * guess)

    check_both(inverse_root, normal(3, 4).abs() + 0.1, options=OWN)
    check_both(lambda x: (x.view(torch.uint32), x.view(torch.int32).view(torch.uint32).view(torch.float32)), normal(3, 4), options=OWN)
    check_both(lambda x: x.view(torch.int32), torch.zeros(0, 3), options=OWN)


@pytest.mark.parametrize(("given", "wanted"), [(torch.float32, torch.int16), (torch.float32, torch.uint8), (torch.int8, torch.bool)])
def test_bits_are_not_read_as_more_or_fewer_numbers(given: torch.dtype, wanted: torch.dtype) -> None:
    with pytest.raises(UnsupportedOps, match="cannot reinterpret the bits of"):
        check(lambda x: x.view(wanted), normal(3, 4).to(given))


@pytest.mark.parametrize("wanted", [torch.int64, torch.float64, torch.uint64])
def test_a_write_by_another_type_is_refused(wanted: torch.dtype) -> None:
    def written(x: torch.Tensor) -> torch.Tensor:
        copy = x.clone()
        copy.view(wanted)[0] = 5
        return copy

    with pytest.raises(UnsupportedOps, match="through a view of another dtype"):
        check(written, normal(3, 4).to(torch.float64 if wanted == torch.int64 else torch.int64))
