"""Replace `associative_scan` by a sequential `scan`, because PyTorch's version halves the length recursively."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from inspect import getclosurevars
from typing import Any

import torch

from ..compat import trees as pytree
from ..compat.dispatch import DisableTorchFunction, disable_current_modes, mode_stack_state_for_pre_dispatch
from ..compat.fake_tensors import FakeTensor
from ..compat.operators import generic_associative_scan, wrap_combine_fn_flat
from ..patches.operator_dispatch import PLACE
from ..patches.registry import register_patch

Function = Callable[..., Any]
Tensors = Sequence[torch.Tensor]
CLOSE = {"rtol": 1e-3, "atol": 1e-5}


def scan_left_to_right(operator: Function, leaves: Tensors, dim: int = 0, additional_inputs: Tensors = ()) -> list[torch.Tensor]:
    """Return the result of `generic_associative_scan`, computed by one call of `scan` along the first axis.

    Raises:
        TraceUnsupported: If the function is not associative, so that the result depends on torch's order of evaluation.
    """
    keywords = operator.keywords  # type: ignore[attr-defined]  # torch's partial, with the function vmapped
    flat = partial(wrap_combine_fn_flat, **(keywords | {"combine_fn": getclosurevars(keywords["combine_fn"]).nonlocals["func"]}))

    def combine(*operands: torch.Tensor) -> list[torch.Tensor]:
        return pytree.tree_leaves(flat(*operands))

    _check_associative(operator, combine, leaves)
    count = len(leaves)

    def step(*operands: torch.Tensor) -> list[torch.Tensor]:
        state, row, later = operands[:count], operands[count : 2 * count], operands[2 * count]
        outputs = [torch.where(later, new, first) for new, first in zip(combine(*state, *row), row, strict=True)]
        return [*outputs, *(value.clone() for value in outputs)]

    later = torch.arange(leaves[0].shape[0], device=leaves[0].device) > 0
    outputs = torch.ops.higher_order.scan(step, [leaf[0].clone() for leaf in leaves], [*leaves, later], ())
    return list(outputs[count:])


@register_patch(
    "associative",
    "torch._higher_order_ops.associative_scan.generic_associative_scan",
    reason="torch halves the length as often as it is long, so the calls depend on a dynamic length",
)
def _scan_in_order(original: Function) -> Function:
    return scan_left_to_right


def _check_associative(operator: Function, combine: Function, leaves: Tensors) -> None:
    tracer: Any = mode_stack_state_for_pre_dispatch().get(PLACE)
    if any(isinstance(leaf, FakeTensor) for leaf in leaves):
        raise tracer.refusal("the function of associative_scan cannot be checked without tensor values,")
    with torch.no_grad(), DisableTorchFunction(), disable_current_modes():
        halved = generic_associative_scan(operator, list(leaves))
        state = [leaf[0] for leaf in leaves]
        for number in range(1, len(leaves[0])):
            state = combine(*state, *(leaf[number] for leaf in leaves))
        is_alike = all(torch.allclose(one[-1], other, **CLOSE, equal_nan=True) for one, other in zip(halved, state, strict=True))
    if not is_alike:
        raise tracer.refusal("the function of associative_scan is not associative, so its result depends on the order of evaluation,")
