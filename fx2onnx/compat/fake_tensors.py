"""Tensors without values, their mode, and the function that reads a value from a tensor."""

from __future__ import annotations

import types

from torch._subclasses import FakeTensor, FakeTensorMode, UnsupportedFakeTensorException, fake_impls
from torch._subclasses.fake_tensor import unset_fake_temporarily

__all__ = ["READ_OF_A_VALUE", "FakeTensor", "FakeTensorMode", "UnsupportedFakeTensorException", "unset_fake_temporarily"]

READ_OF_A_VALUE: types.CodeType = fake_impls.local_scalar_dense.__code__  # the code that `item()` of a fake tensor ends in
