"""Copies of modules that hold tensors computed from others, as `torch.nn.utils.weight_norm` leaves them."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import torch
from torch import Tensor, nn
from torch.nn.utils import weight_norm

from fx2onnx import to_onnx
from fx2onnx.copies import copied_whole, copy_sharing_parameters

X = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))


def normed() -> nn.Module:
    """A layer after a forward with gradients: its weight is no leaf, and `copy.deepcopy` refuses it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        layer = weight_norm(nn.Linear(3, 4)).eval()
    layer(X)
    assert not layer.weight.is_leaf
    return layer


class Keeps(nn.Module):
    """Keeps its last result inside an object, twice."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.kept = SimpleNamespace(last=None)

    def forward(self, x: Tensor) -> Tensor:
        self.kept.last = self.linear(x)
        self.again = {"last": self.kept.last}
        return self.kept.last


def test_a_copy_of_a_normed_layer_computes_the_same_and_shares_its_parameters() -> None:
    layer = normed()
    copy = copy_sharing_parameters(layer)
    assert torch.equal(copy(X), layer(X))
    assert copy.weight_g is layer.weight_g
    assert copy.weight is not layer.weight


def test_what_a_module_keeps_of_a_call_is_copied_wherever_it_is_and_once() -> None:
    module = Keeps()
    module(X)
    copy = copy_sharing_parameters(module)
    assert torch.equal(copy.kept.last, module.kept.last)
    assert copy.again["last"] is copy.kept.last
    assert copy.kept.last is not module.kept.last


def test_a_leaf_keeps_its_need_of_gradients_and_a_computed_tensor_loses_it() -> None:
    leaf = torch.ones(2, requires_grad=True)
    copies = copied_whole([leaf, leaf * 2])
    assert [tensor.requires_grad for tensor in copies] == [True, False]


def test_a_normed_layer_is_exported_and_verified() -> None:
    assert to_onnx(normed(), (X,), dynamic_shapes=({0: "batch"},), verify=True).report.limits == ()
