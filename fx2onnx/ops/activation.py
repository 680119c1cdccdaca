"""Activation functions, which mostly become the ONNX operator of the same name. Softmax is in norm_softmax.py."""

from __future__ import annotations

import math

from ..compat.operators import aten
from ..errors import Untranslated
from ..ir import float64_math
from ..ir.dtypes import DOUBLE, FLOATS
from ..ir.float64_math import expm1_of
from ..ir.graph import Graph, Tensor
from ..translate.registry import translates
from .pointwise import append_clip, larger, where, wide


@translates(aten.relu.default)
def relu(g: Graph, x: Tensor) -> Tensor:
    """relu(x) → Relu; Max for integers, Where for int64."""
    return g.Relu(x) if x.dtype in FLOATS else larger(g, x, g.const(0, x.dtype))


@translates(aten.relu6.default)
def relu6(g: Graph, x: Tensor) -> Tensor:
    """relu6(x) → Clip between 0 and 6."""
    return append_clip(g, x, 0, 6)


@translates(aten.hardtanh.default)
def hardtanh(g: Graph, x: Tensor, low: float = -1, high: float = 1) -> Tensor:
    """hardtanh(x, low=-1, high=1) → Clip."""
    return append_clip(g, x, low, high)


@translates(aten.leaky_relu.default)
def leaky_relu(g: Graph, x: Tensor, slope: float = 0.01) -> Tensor:
    """leaky_relu(x, slope) → LeakyRelu."""
    if x.dtype == DOUBLE:
        return g.Where(g.Greater(x, 0), x, g.Mul(x, slope))
    return g.LeakyRelu(x, alpha=float(slope))


@translates(aten.rrelu.default)
def rrelu(g: Graph, x: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False) -> Tensor:
    """rrelu(x, lower, upper) → LeakyRelu with the mean slope, in evaluation."""
    if training:
        raise Untranslated("in training mode, its slopes are random: export it in evaluation mode")
    return leaky_relu(g, x, (lower + upper) / 2)


@translates(aten.prelu.default, aten._prelu_kernel.default)
def prelu(g: Graph, x: Tensor, slope: Tensor) -> Tensor:
    """prelu(x, slope) → PRelu, the slopes along axis 1; Where in float64."""
    if slope.rank == 1 and x.rank != 1:
        slope = g.reshape_to(slope, [slope.sizes[0], *[1] * (x.rank - 2)] if x.rank else [])
    return g.Where(g.Greater(x, 0), x, g.Mul(x, slope)) if x.dtype == DOUBLE else g.PRelu(x, slope)


@translates(aten.elu.default)
def elu(g: Graph, x: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Tensor:
    """elu(x, α, scale, s) → Elu; with scales, or in float64, scale·x where x > 0, else scale·α·(exp(s·x) - 1)."""
    if scale == input_scale == 1 and x.dtype != DOUBLE:
        return g.Elu(x, alpha=float(alpha))
    x, *_ = wide(g, x)
    return g.Where(g.Greater(x, 0), g.Mul(x, scale), g.Mul(expm1_of(g, g.Mul(x, input_scale)), alpha * scale))


@translates(aten.celu.default)
def celu(g: Graph, x: Tensor, alpha: float = 1.0) -> Tensor:
    """celu(x, α) → Celu."""
    x, *_ = wide(g, x)
    return elu(g, x, alpha, 1, 1 / alpha) if x.dtype == DOUBLE or alpha < 0 else g.Celu(x, alpha=float(alpha))


@translates(aten.selu.default)
def selu(g: Graph, x: Tensor) -> Tensor:
    """selu(x) → Selu, whose default constants are torch's."""
    return elu(g, x, 1.6732632423543772, 1.0507009873554805) if x.dtype == DOUBLE else g.Selu(x)


@translates(aten.gelu.default)
def gelu(g: Graph, x: Tensor, approximate: str = "none") -> Tensor:
    """gelu(x, approximate="none") → Gelu from opset 20 on; before, and in float64, x·(1 + erf(x/√2))/2 or the formula with tanh."""
    if g.opset >= 20 and x.dtype != DOUBLE:
        return g.Gelu(x, approximate=approximate)
    x, *_ = wide(g, x)
    if approximate == "tanh":
        inner = g.Mul(g.Add(x, g.Mul(g.Pow(x, 3), 0.044715)), math.sqrt(2 / math.pi))
        return g.Mul(g.Mul(x, 0.5), g.Add(g.Tanh(inner), 1))
    if x.dtype == DOUBLE:
        return float64_math.gelu(g, x)
    return g.Mul(g.Mul(x, g.Add(g.Erf(g.Div(x, math.sqrt(2))), 1)), 0.5)


@translates(aten.silu.default)
def silu(g: Graph, x: Tensor) -> Tensor:
    """silu(x) → x · Sigmoid(x)."""
    return g.Mul(x, g.Sigmoid(x))


@translates(aten.mish.default)
def mish(g: Graph, x: Tensor) -> Tensor:
    """mish(x) → Mish."""
    x, *_ = wide(g, x)
    return g.Mul(x, g.Tanh(float64_math.softplus(g, x))) if x.dtype == DOUBLE else g.Mish(x)


@translates(aten.hardsigmoid.default)
def hardsigmoid(g: Graph, x: Tensor) -> Tensor:
    """hardsigmoid(x) → HardSigmoid with α = 1/6."""
    return g.Div(g.Clip(g.Add(x, 3), 0, 6), 6) if x.dtype == DOUBLE else g.HardSigmoid(x, alpha=1 / 6, beta=0.5)


@translates(aten.hardswish.default)
def hardswish(g: Graph, x: Tensor) -> Tensor:
    """hardswish(x) → HardSwish."""
    x, *_ = wide(g, x)
    return g.Mul(x, hardsigmoid(g, x)) if x.dtype == DOUBLE else g.HardSwish(x)


@translates(aten.hardshrink.default)
def hardshrink(g: Graph, x: Tensor, lambd: float = 0.5) -> Tensor:
    """hardshrink(x, λ) → Where |x| ≤ λ, 0, else x: Shrink would lose NaN."""
    return where(g, g.LessOrEqual(g.Abs(x), lambd), 0, x)


@translates(aten.softshrink.default)
def softshrink(g: Graph, x: Tensor, lambd: float = 0.5) -> Tensor:
    """softshrink(x, λ) → x - Clip(x, -λ, λ): Shrink would lose NaN."""
    return g.Sub(x, g.Clip(x, -lambd, lambd))


@translates(aten.threshold.default)
def threshold(g: Graph, x: Tensor, threshold: float, value: float) -> Tensor:
    """threshold(x, t, v) → Where x ≤ t, v, else x."""
    return where(g, g.LessOrEqual(x, threshold), value, x)


@translates(aten.softplus.default)
def softplus(g: Graph, x: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    """softplus(x, β, t) → Softplus(β·x) / β, and Where β·x > t, x; for t ≥ 20 without Where, because both are equal."""
    scaled = x if beta == 1 else g.Mul(x, beta)
    smooth = softplus_of(g, scaled)
    smooth = smooth if beta == 1 else g.Div(smooth, beta)
    return smooth if threshold >= 20 and x.dtype != DOUBLE else g.Where(g.Greater(scaled, threshold), x, smooth)


def softplus_of(g: Graph, x: Tensor) -> Tensor:
    """Return log(1 + exp(x)) without overflow, or loss of small values: Softplus, or its formula in float64."""
    return float64_math.softplus(g, x) if x.dtype == DOUBLE else g.Softplus(x)


@translates(aten.log_sigmoid.default)
def log_sigmoid(g: Graph, x: Tensor) -> Tensor:
    """log_sigmoid(x) → -Softplus(-x)."""
    return g.Neg(softplus_of(g, g.Neg(x)))


@translates(aten.glu.default)
def glu(g: Graph, x: Tensor, dim: int = -1) -> Tensor:
    """glu(x, dim) → the first half · Sigmoid of the second: Split, Sigmoid, Mul."""
    value, gate = g.Split(x, axis=dim, num_outputs=2, outputs=2)
    return g.Mul(value, g.Sigmoid(gate))
