"""Random numbers and dropout: shapes, dtypes and distributions are as in torch, but the numbers are from ONNX Runtime."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import onnx_ir as ir
import torch

from ..compat.operators import aten
from ..errors import Untranslated
from ..ir.dtypes import BOOL, DOUBLE, FLOAT, INT64
from ..ir.expressions import Size
from ..ir.graph import Graph, Tensor
from ..ir.tensor import Operand
from ..translate.registry import translates

UNIFORM, NORMAL = "RandomUniform", "RandomNormal"


def append_random(g: Graph, kind: str, sizes: Sequence[Size], dtype: ir.DataType, **parameters: float) -> Tensor:
    """Append RandomUniform or RandomNormal in these sizes, by Random…Like if they are dynamic: float64, or float32 for other dtypes."""
    attributes: dict[str, Any] = dict(parameters)
    if sizes and dtype != DOUBLE and all(isinstance(size, int) for size in sizes):
        return g.set_sizes(g.op(kind, shape=list(sizes), **attributes), sizes)
    like = g.op("ConstantOfShape", g.ints(sizes))
    return g.set_sizes(g.op(f"{kind}Like", g.cast(like, DOUBLE) if dtype == DOUBLE else like, **attributes), sizes)


@translates(
    aten.rand.default, aten.rand.generator, aten.rand_like.default, aten.randn.default, aten.randn.generator, aten.randn_like.default
)
def rand(g: Graph, *_: object, dtype: torch.dtype | None = None, generator: None = None) -> Tensor:
    """rand(size), randn_like(x), … → RandomUniform or RandomNormal."""
    return append_random(g, NORMAL if "randn" in g.overload._schema.name else UNIFORM, g.sizes, g.dtype)


@translates(aten.uniform.default, aten.uniform_.default)
def uniform(g: Graph, x: Tensor, low: float = 0.0, high: float = 1.0, generator: torch.Generator | None = None, **named: float) -> Tensor:
    """uniform(x, from, to) → RandomUniform."""
    low, high = named.get("from", low), named.get("to", high)
    return g.cast(append_random(g, UNIFORM, x.sizes, x.dtype, low=float(low), high=float(high)), x.dtype)


@translates(aten.normal_.default, aten.normal_functional.default)
def normal(g: Graph, x: Tensor, mean: float = 0.0, std: float = 1.0, generator: torch.Generator | None = None) -> Tensor:
    """normal_(x, mean, std) → RandomNormal."""
    return g.cast(append_random(g, NORMAL, x.sizes, x.dtype, mean=float(mean), scale=float(std)), x.dtype)


@translates(aten.normal.Tensor_float, aten.normal.float_Tensor, aten.normal.Tensor_Tensor, aten.normal.float_float)
def normal_by(
    g: Graph,
    mean: Operand,
    std: Operand = 1.0,
    size: Sequence[Size] = (),
    dtype: torch.dtype | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """normal(mean, std, size?) → RandomNormal·std + mean: Mul, Add."""
    made = append_random(g, NORMAL, g.sizes, g.dtype)
    return g.Add(g.Mul(made, g.cast(std, made.dtype)), g.cast(mean, made.dtype))


@translates(aten.exponential.default)
def exponential(g: Graph, x: Tensor, lambd: float = 1.0, generator: torch.Generator | None = None) -> Tensor:
    """exponential(x, λ) → −log(1 − RandomUniform)/λ: Sub, Log, Div."""
    made = append_random(g, UNIFORM, x.sizes, x.dtype)
    return g.cast(g.Div(g.Log(g.Sub(g.scalar(1, made.dtype), made)), -lambd), x.dtype)


@translates(aten.bernoulli.default)
def bernoulli(g: Graph, p: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """bernoulli(p) → RandomUniform, Less."""
    made = append_random(g, UNIFORM, p.sizes, p.dtype)
    return g.cast(g.Less(made, g.cast(p, made.dtype)), p.dtype)


@translates(aten.bernoulli.p, aten.bernoulli_.float, aten.bernoulli.Tensor)
def bernoulli_p(g: Graph, x: Tensor, p: Operand = 0.5, generator: torch.Generator | None = None) -> Tensor:
    """bernoulli(x, p) → RandomUniform of the sizes of x, Less."""
    made = append_random(g, UNIFORM, x.sizes, x.dtype)
    return g.cast(g.Less(made, g.cast(p, made.dtype)), x.dtype)


@translates(aten.randint.default, aten.randint.generator, aten.randint_like.default)
def randint(g: Graph, sized: Operand, high: Operand, dtype: torch.dtype | None = None, **_: object) -> Tensor:
    """randint(high, size), randint_like(x, high) → ⌊RandomUniform·high⌋: Mul, Floor, Cast."""
    return _integers(g, 0, high if isinstance(sized, Tensor) else sized)


@translates(aten.randint.low, aten.randint.low_generator)
def randint_low(g: Graph, low: Size, high: Size, size: Sequence[Size], dtype: torch.dtype | None = None, generator: None = None) -> Tensor:
    """randint(low, high, size) → ⌊RandomUniform·(high − low)⌋ + low."""
    return _integers(g, low, high)


@translates(aten.randint_like.low_dtype)
def randint_like_low(g: Graph, x: Tensor, low: Size, high: Size, dtype: torch.dtype | None = None) -> Tensor:
    """randint_like(x, low, high) → ⌊RandomUniform·(high − low)⌋ + low."""
    return _integers(g, low, high)


@translates(aten.random.to)
def random_to(g: Graph, x: Tensor, to: int, generator: torch.Generator | None = None) -> Tensor:
    """random_(x, to) → ⌊RandomUniform·to⌋."""
    return g.cast(_integers(g, 0, to), x.dtype)


def _integers(g: Graph, low: Size, high: Size) -> Tensor:
    made = g.cast(g.Floor(g.Mul(append_random(g, UNIFORM, g.sizes, DOUBLE), g.scalar(high - low, DOUBLE))), INT64)
    return g.cast(made if low == 0 else g.Add(made, low), g.dtype)


@translates(aten.randperm.default, aten.randperm.generator)
def randperm(g: Graph, n: Size, dtype: torch.dtype | None = None, generator: None = None) -> Tensor:
    """randperm(n) → the order that sorts RandomUniform: TopK."""
    return g.op("TopK", append_random(g, UNIFORM, [n], DOUBLE), [n], outputs=2)[1]


@translates(aten.multinomial.default)
def multinomial(g: Graph, p: Tensor, samples: Size, replacement: bool = False, generator: torch.Generator | None = None) -> Tensor:
    """multinomial(p, samples, replacement) → Multinomial of Log; without replacement, TopK of log p − log(−log u)."""
    logs = g.Log(p)
    if not replacement:
        noise = append_random(g, UNIFORM, p.sizes, p.dtype)
        gumbel = g.Neg(g.Log(g.Neg(g.Log(g.Max(noise, 1e-20)))))
        return g.op("TopK", g.Add(logs, g.cast(gumbel, p.dtype)), [samples], axis=-1, outputs=2)[1]
    if not isinstance(samples, int):
        raise Untranslated("with replacement, the number of samples must not depend on the input")
    rows = logs if p.rank == 2 else g.Unsqueeze(logs, [0])
    made = g.Multinomial(g.cast(rows, FLOAT), sample_size=samples)
    return made if p.rank == 2 else g.Squeeze(made, [0])


@translates(aten.dropout.default)
def dropout(g: Graph, x: Tensor, p: float, train: bool) -> Tensor:
    """dropout(x, p, train) → Dropout in training mode; nothing in evaluation."""
    return native_dropout(g, x, p, train)[0] if train and p > 0 else x


@translates(aten.native_dropout.default)
def native_dropout(g: Graph, x: Tensor, p: float, train: bool | None) -> list[Tensor]:
    """native_dropout(x, p, train) → Dropout with its mask."""
    if train is False or p == 0:
        return [x, g.Expand(g.const(True, BOOL), list(x.sizes))]
    if p == 1:
        return [g.Mul(x, 0), g.Expand(g.const(False, BOOL), list(x.sizes))]
    made, mask = g.op("Dropout", x, g.const(p, FLOAT), g.const(True, BOOL), outputs=2, merged=False)
    mask.type = ir.TensorType(BOOL)
    return [made, mask]


@translates(aten.feature_dropout.default)
def feature_dropout(g: Graph, x: Tensor, p: float, train: bool) -> Tensor:
    """feature_dropout(x, p, train) → RandomUniform for each channel, Less, Mul, Where; nothing in evaluation."""
    if not train or p == 0:
        return x
    if p == 1:
        return g.Mul(x, 0)
    noise = append_random(g, UNIFORM, [*x.sizes[:2], *[1] * (x.rank - 2)], x.dtype)
    return g.Where(g.Less(noise, 1 - p), g.Mul(x, 1 / (1 - p)), g.scalar(0, x.dtype))


@translates(aten.alpha_dropout.default, aten.feature_alpha_dropout.default)
def alpha_dropout(g: Graph, x: Tensor, p: float, train: bool) -> Tensor:
    """alpha_dropout(x, p, train) → a·(x if kept, else α′) + b, with the same mean and variance; nothing in evaluation."""
    if not train or p == 0:
        return x
    if p == 1:
        return g.Mul(x, 0)
    alpha = -1.7580993408473766
    scale = 1 / math.sqrt((alpha * alpha * p + 1) * (1 - p))
    by_feature = g.at.target is aten.feature_alpha_dropout.default
    noise = append_random(g, UNIFORM, [*x.sizes[:2], *[1] * (x.rank - 2)] if by_feature else x.sizes, x.dtype)
    kept = g.Where(g.Less(noise, 1 - p), x, g.scalar(alpha, x.dtype))
    return g.Add(g.Mul(kept, scale), -scale * p * alpha)
