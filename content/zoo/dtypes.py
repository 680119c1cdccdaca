"""Data types: narrow, wide, mixed, cast, and edge values. Quantised models are in quantized, complex numbers in spectral."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from exportlab.cases import Declaration, case
from exportlab.specs import flags, integers, tensor


@case(dims={"batch": (4, 7, 1, 0)}, topics=("dtypes", "layers"))
def half_precision_block() -> Declaration:
    """A block of layers in float16: does every kernel of the runtime support it?"""
    layers = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4), nn.Softmax(dim=-1))
    return layers.half(), (tensor("batch", 16, dtype=torch.float16),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("dtypes", "layers"))
def bfloat16_linear() -> Declaration:
    """A linear layer in bfloat16: can the exported model run on a CPU?"""
    return nn.Linear(16, 4).bfloat16(), (tensor("batch", 16, dtype=torch.bfloat16),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("dtypes", "layers"))
def double_precision() -> Declaration:
    """Float64 throughout: is any part computed in float32?"""

    class DoublePrecision(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(8, 8).double()

        def forward(self, x: Tensor) -> Tensor:
            return torch.erf(F.gelu(self.linear(x))) + torch.tan(x / 3) / 3

    return DoublePrecision(), (tensor("batch", 8, dtype=torch.float64),)


@case(dims={"batch": (2, 3, 1, 0), "height": (8, 11, 5)}, topics=("dtypes", "layers"))
def double_precision_convnet() -> Declaration:
    """Convolution, pooling and resizing in float64: are kernels available?"""
    layers = nn.Sequential(nn.Conv2d(2, 4, 3), nn.MaxPool2d(2), nn.Upsample(scale_factor=2.0), nn.AdaptiveAvgPool2d(1))
    return layers.double(), (tensor("batch", 2, "height", 8, dtype=torch.float64),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("dtypes", "silence"))
def int8_wraps_around() -> Declaration:
    """Int8 sums and products beyond 127 wrap around: do they in the exported model?"""

    class Int8Arithmetic(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            return x + y, x * y, -x

    x, y = (integers("batch", 5, low=-128, high=128, dtype=torch.int8) for _ in range(2))
    return Int8Arithmetic(), (x, y)


@case(dims={"batch": (3, 5, 1, 0)}, topics=("dtypes", "silence"))
def uint8_image() -> Declaration:
    """A uint8 image is brightened, inverted and normalised: does it wrap around and convert to float as in eager?"""

    class Bytes(nn.Module):
        def forward(self, image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            return image + 100, 50 - image, image / 255 - 0.5

    return Bytes(), (integers("batch", 3, 4, low=0, high=256, dtype=torch.uint8),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("dtypes", "silence"))
def int32_overflow() -> Declaration:
    """The square of a large int32 overflows: is the result the same?"""

    class Hash(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return (x * x * 31 + 17) % 1009

    return Hash(), (integers("batch", 5, low=50_000, high=90_000, dtype=torch.int32),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("dtypes", "silence"))
def big_integers() -> Declaration:
    """Neighbouring integers beyond 2**53 are equal in float64: do they stay distinct?"""

    class BigIntegers(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            big = x + 2**53
            return big, big // 3, big.clamp(max=2**53 + 5)

    return BigIntegers(), (integers("batch", 5),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("dtypes", "promotion"))
def integers_with_float_scalars() -> Declaration:
    """An integer tensor and a Python float: is the result always a float?"""

    class Scaled(nn.Module):
        def forward(self, n: Tensor) -> tuple[Tensor, ...]:
            return n * 0.5, 2.5 - n, n > 1.5, n.clamp(min=2.5), torch.where(n > 4, n, -0.5), n**0.5

    return Scaled(), (integers("batch", 5),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("dtypes", "promotion"))
def one_minus_mask() -> Declaration:
    """`(1.0 - mask) * -1e4` with an integer mask, as in many models: is it exported?"""

    class OneMinusMask(nn.Module):
        def forward(self, x: Tensor, mask: Tensor) -> Tensor:
            return x + (1.0 - mask) * -1e4

    return OneMinusMask(), (tensor("batch", 5), integers("batch", 5, high=2))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("dtypes", "promotion"))
def sums_of_flags() -> Declaration:
    """Sums, running sums and products of booleans and int8 are int64: are they in the exported model?"""

    class Counts(nn.Module):
        def forward(self, kept: Tensor, x: Tensor) -> tuple[Tensor, ...]:
            return kept.sum(-1), kept.cumsum(0), x.sum(), x.prod(-1), kept.sum(-1, dtype=torch.float32)

    return Counts(), (flags("batch", 5), integers("batch", 5, low=-128, high=128, dtype=torch.int8))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("dtypes", "promotion"))
def arithmetic_with_flags() -> Declaration:
    """Booleans are added, multiplied and compared: which results stay boolean?"""

    class FlagArithmetic(nn.Module):
        def forward(self, a: Tensor, b: Tensor, x: Tensor) -> tuple[Tensor, ...]:
            return a + b, a * x, a ^ b, a * 2, a < b, ~a & b, 1 - x * a

    return FlagArithmetic(), (flags("batch", 5), flags("batch", 5), tensor("batch", 5))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("dtypes", "silence"))
def integer_division() -> Declaration:
    """Quotients and remainders of negative integers: are they rounded down or towards zero as in eager?"""

    class Division(nn.Module):
        def forward(self, n: Tensor, by: Tensor) -> tuple[Tensor, ...]:
            return n // by, n % by, torch.fmod(n, by), n / by, torch.div(n, by, rounding_mode="trunc"), n // -4, -7 % by

    return Division(), (integers("batch", 5, low=-20, high=20), integers("batch", 5, low=-5, high=0))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("dtypes", "silence"))
def integer_powers_and_shifts() -> Declaration:
    """Powers, shifts and bit operations of integers, some negative: are they computed as integers?"""

    class Bits(nn.Module):
        def forward(self, n: Tensor, m: Tensor) -> tuple[Tensor, ...]:
            return n**3, 2**m, n >> 1, n << m, n & m, n | 8, n ^ m, ~n

    return Bits(), (integers("batch", 5, low=-20, high=20), integers("batch", 5))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("dtypes", "promotion"))
def half_with_float() -> Declaration:
    """Float16 with float32, as a tensor and as a zero-dimensional tensor: is the dtype of the result right?"""

    class Mixed(nn.Module):
        def forward(self, half: Tensor, full: Tensor, one: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            return half * full, half * one, torch.cat([half, full])

    return Mixed(), (tensor("batch", 5, dtype=torch.float16), tensor("batch", 5), tensor())


@case(dims={"batch": (4, 7, 1, 0)}, topics=("dtypes", "layers"))
def integers_through_layers() -> Declaration:
    """`relu`, `clamp`, `where`, `topk` and a matrix product of integers: are kernels available?"""

    class IntegerLayers(nn.Module):
        def forward(self, n: Tensor) -> tuple[Tensor, ...]:
            kept = n.relu().clamp(max=7)
            return kept @ n.mT, torch.where(kept > 0, kept, -1), n.topk(2).values, n.argmax(-1), n.abs().max(-1).values

    return IntegerLayers(), (integers("batch", 5, low=-9, dtype=torch.int32),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("dtypes", "promotion"))
def mixed_integers() -> Declaration:
    """Int8, uint8, int32 and int64 in one expression: is the dtype of the result right?"""

    class MixedIntegers(nn.Module):
        def forward(self, a: Tensor, b: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            return a + b, a * c, torch.maximum(b, c)

    a = integers("batch", 5, low=-128, high=128, dtype=torch.int8)
    return MixedIntegers(), (a, integers("batch", 5, high=256, dtype=torch.uint8), integers("batch", 5, low=-9, dtype=torch.int32))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("dtypes", "casts", "silence"))
def casts_of_floats() -> Declaration:
    """Float to integer casts truncate, and casts to boolean compare with zero: do they in the exported model?"""

    class Casts(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, ...]:
            return (x * 10).long(), (x * 10).to(torch.int8), (x / 3).round().bool(), x.half(), (x * 10).abs().to(torch.uint8)

    return Casts(), (tensor("batch", 5),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("dtypes", "casts"))
def cast_to_the_dtype_of_another() -> Declaration:
    """`x.to(other.dtype)` with a parameter, an input and a result as `other`: is the cast exported?"""

    class Followed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(5, 5)

        def forward(self, n: Tensor, half: Tensor) -> tuple[Tensor, Tensor]:
            made = self.linear(n.to(self.linear.weight.dtype))
            return made.to(half.dtype) * half, (half * 10).type_as(n)

    return Followed(), (integers("batch", 5), tensor("batch", 5, dtype=torch.float16))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("dtypes", "casts"))
def autocast_inside() -> Declaration:
    """`torch.autocast` within `forward`: is the product computed in the narrow dtype?"""

    class Autocast(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(16, 4)

        def forward(self, x: Tensor) -> Tensor:
            with torch.autocast("cpu", dtype=torch.float16):
                return self.linear(x)

    return Autocast(), (tensor("batch", 16),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("dtypes", "casts"))
def float8_round_trip() -> Declaration:
    """Values pass through float8 and back: are they rounded, and do overflows become NaN?"""

    class Float8(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            return (x * 300).to(torch.float8_e4m3fn).float(), x.to(torch.float8_e5m2).float()

    return Float8(), (tensor("batch", 5),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("dtypes", "casts"))
def bits_of_floats() -> Declaration:
    """`x.view(torch.int32)` reads the bits of floats: does the exported model cast instead?"""

    class SignBit(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return (x.view(torch.int32) >> 31) & 1

    return SignBit(), (tensor("batch", 5),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("dtypes", "casts"))
def softmax_in_float32() -> Declaration:
    """`softmax(dtype=float32)` of float16 scores: is it computed in float32?"""

    class WideSoftmax(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            wide = F.softmax(x, dim=-1, dtype=torch.float32)
            return wide, wide.to(x.dtype) @ x.transpose(-1, -2)

    return WideSoftmax(), (tensor("batch", 5, dtype=torch.float16),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("dtypes", "rounding", "silence"))
def rounded_halves() -> Declaration:
    """Halves are rounded to even, also with `decimals` and for negative values: are they in the exported model?"""

    class Rounded(nn.Module):
        def forward(self, n: Tensor) -> tuple[Tensor, ...]:
            halves = n / 2
            return halves.round(), (n / 80).round(decimals=1), halves.trunc(), halves.floor(), halves.frac()

    return Rounded(), (integers("batch", 5, low=-9, high=10),)


@case(dims={"batch": (4, 7, 1)}, topics=("dtypes", "nan", "silence"))
def nan_propagates() -> Declaration:
    """The input contains a NaN: which operators propagate it, and which ignore it?"""

    class WithNan(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
            x = torch.sqrt(x)
            return torch.maximum(x, y), torch.fmax(x, y), x.amax(0), x.clamp(min=0.5), torch.relu(x), x.sum(-1)

    return WithNan(), (tensor("batch", 5), tensor("batch", 5))


@case(dims={"batch": (4, 7, 1)}, topics=("dtypes", "nan", "silence"))
def place_of_nan() -> Declaration:
    """NaN counts as the largest value: do `argmax` and the index of `max` point to it?"""

    class PlaceOfNan(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            x = torch.sqrt(x)
            return x.argmax(-1), x.max(0).indices, x.isnan().sum(-1)

    return PlaceOfNan(), (tensor("batch", 5),)


@case(dims={"batch": (4, 7, 1)}, topics=("dtypes", "nan", "silence"))
def nan_is_found() -> Declaration:
    """NaN and infinities are detected, replaced and sorted: are the results and positions right?"""

    class Cleaned(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, ...]:
            odd = x.round().log()
            return odd.isnan(), odd.isinf(), (-odd).nan_to_num(nan=0.5, posinf=9.0), odd.sort(-1).values, odd != odd, odd.nansum(-1)

    return Cleaned(), (tensor("batch", 5),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("dtypes", "special functions", "silence"))
def tails_of_the_normal() -> Declaration:
    """`log_ndtr` and `erfcx` in the far tails, where the naive formula underflows: are they finite?"""

    class Tails(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            return torch.special.log_ndtr(x * 8), torch.special.erfcx(x * 4 + 4)

    return Tails(), (tensor("batch", 5),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("dtypes", "promotion", "silence"))
def floats_of_integers() -> Declaration:
    """Functions that return floats for integers, including `angle`: is the dtype of the result right?"""

    class FloatsOfIntegers(nn.Module):
        def forward(self, n: Tensor) -> tuple[Tensor, ...]:
            return torch.angle(n), torch.sqrt(n.abs()), torch.sigmoid(n), torch.exp(n), n.abs().log1p(), n.sign()

    return FloatsOfIntegers(), (integers("batch", 5, low=-5, high=6),)
