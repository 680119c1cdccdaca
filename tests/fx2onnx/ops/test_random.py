"""Random numbers have the sizes, dtypes and moments of torch's."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from inputs import OWN, normal
from operators import Call
from torch import nn
from torch.export import Dim

from fx2onnx import to_onnx

DRAWN = {
    "rand": lambda x: (torch.rand(x.shape), torch.rand_like(x), torch.randn(x.shape, dtype=torch.float64), torch.randn_like(x).half()),
    "normal": lambda x: (torch.normal(x, 2.0), torch.normal(1.0, x), torch.normal(x, x), torch.normal(1.0, 2.0, x.shape)),
    "integers": lambda x: (torch.randint(3, 9, x.shape), torch.randint_like(x, 9), torch.randint(5, x.shape, dtype=torch.int32)),
    "bernoulli": lambda x: (torch.bernoulli(x), torch.bernoulli(x, 0.3), torch.zeros(x.shape).bernoulli_(0.3)),
    "dropout": lambda x: (F.dropout(x, 0.3), F.dropout(x, 1.0), F.alpha_dropout(x, 0.3, True), torch.native_dropout(x, 0.3, True)[0]),
    "channel dropout": lambda x: F.dropout1d(x.reshape(-1, 20, 1), 0.3),
    "in place": lambda x: (torch.zeros(x.shape).uniform_(1, 3), torch.zeros(x.shape).normal_(2, 3), torch.zeros(x.shape).exponential_(2)),
    "multinomial": lambda x: (torch.multinomial(x, 50), torch.multinomial(x, 60, True)),
    "order": lambda x: torch.randperm(x.shape[0] * x.shape[1]),
}


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("dynamic", [False, True])
def test_random_numbers_have_the_sizes_dtypes_and_moments_of_torch(name: str, dynamic: bool) -> None:
    x = torch.rand(40, 50, generator=torch.Generator().manual_seed(1))  # not the numbers that are drawn below
    shapes = (({0: Dim.AUTO, 1: Dim.AUTO},),) if dynamic else None
    expected = DRAWN[name](x)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for made, wanted in zip(to_onnx(Call(DRAWN[name], (x,), {}), (x,), dynamic_shapes=shapes, **OWN)(x), expected, strict=True):
        assert (made.shape, made.dtype) == (wanted.shape, wanted.dtype)
        assert abs(made.double().mean() - wanted.double().mean()) < 0.15 * (1 + wanted.double().std())
        assert abs(made.double().std() - wanted.double().std()) < 0.15 * (1 + wanted.double().std())


def test_a_permutation_is_one_and_samples_without_replacement_differ() -> None:
    x = torch.rand(3, 30) + 0.1
    order, samples = to_onnx(Call(lambda x: (torch.randperm(30), torch.multinomial(x, 30)), (x,), {}), (x,), **OWN)(x)
    assert order.sort().values.tolist() == list(range(30))
    assert samples.sort(-1).values.tolist() == [list(range(30))] * 3


def test_dropout_in_evaluation_leaves_no_node() -> None:
    program = to_onnx(nn.Sequential(nn.ReLU(), nn.Dropout(), nn.Dropout2d(), nn.AlphaDropout()).eval(), (normal(2, 3, 4),), **OWN)
    assert [node.op_type for node in program.model.graph] == ["Relu"]
