"""Positions that count only where a mask is true: those outside of the tensor as well."""

from __future__ import annotations

import torch
from inputs import OWN, ints, normal
from operators import check_both

aten = torch.ops.aten
ROWS, MASK = ints(0, 7, -9, 2, 3), torch.tensor([True, False, False, True, True])


def test_what_is_read_where_the_mask_is_true() -> None:
    for x in (normal(5, 4), normal(5, 4).half(), torch.arange(20).view(5, 4)):
        check_both(lambda x, m, i: aten._unsafe_masked_index(x, m[:, None], [i, None], 7), x, MASK, ROWS, options=OWN)
        check_both(lambda x, m, i: aten._unsafe_masked_index(x, m, [i, i], 7), x[:, :4].repeat(1, 2), MASK, ROWS, options=OWN)


def test_what_is_added_where_the_mask_is_true() -> None:
    for x in (normal(5, 4), torch.arange(20).view(5, 4)):
        for values in (x[:, 0].contiguous() + 1,):
            check_both(lambda x, m, i, v: aten._unsafe_masked_index_put_accumulate(x, m, [i, i % 3], v), x, MASK, ROWS, values, options=OWN)


def test_of_a_tensor_without_elements() -> None:
    check_both(lambda x, m, i: aten._unsafe_masked_index(x, m, [i], 7), torch.zeros(0), MASK, ROWS, options=OWN)
    check_both(lambda x, m, i: aten._unsafe_masked_index_put_accumulate(x, m, [i], m + 0.0), torch.zeros(0), MASK, ROWS, options=OWN)
