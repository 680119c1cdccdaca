"""The operator for a recurrent network over packed sequences in a captured graph."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import torch

from ..compat.operators import OpOverload, native_functions

NAMESPACE = "fx2onnx_recurrences"
SCHEMA = (
    "of_lengths(Tensor x, Tensor lengths, Tensor[] states, Tensor[] weights, str kind, bool has_biases, int num_layers, float dropout, "
    "bool train, bool bidirectional) -> Tensor[]"
)


class Recurrences(NamedTuple):
    """The operator, and its library, which must be kept alive."""

    library: torch.library.Library
    of_lengths: OpOverload


@cache
def recurrences() -> Recurrences:
    """Return the operator `of_lengths`. Its x and its first result are (steps, batch, features); results after a length are zero."""
    library = torch.library.Library(NAMESPACE, "DEF")
    library.define(SCHEMA)
    library.impl("of_lengths", _run_packed, "CompositeExplicitAutograd")
    torch.library.register_fake(f"{NAMESPACE}::of_lengths", _make_fake_outputs, lib=library)
    return Recurrences(library, getattr(torch.ops, NAMESPACE).of_lengths.default)


def _run_packed(
    x: torch.Tensor, lengths: torch.Tensor, states: Sequence[torch.Tensor], weights: Sequence[torch.Tensor], kind: str, *settings: Any
) -> list[torch.Tensor]:
    """Compute the results as eager does, by packing. A length beyond the steps, which another size may cause, is cut off."""
    kept, order = lengths.to("cpu", torch.int64).clamp(1, x.shape[0]).sort(descending=True)
    packed, batch_sizes = native_functions._pack_padded_sequence(x.index_select(1, order), kept, False)
    given = [state.index_select(1, order) for state in states]
    network = getattr(native_functions, kind)
    out, *finals = network(packed, batch_sizes, given if kind == "lstm" else given[0], weights, *settings)
    padded, _ = native_functions._pad_packed_sequence(out, batch_sizes, False, 0.0, x.shape[0])
    back = order.argsort()
    return [result.index_select(1, back) for result in (padded, *finals)]


def _make_fake_outputs(
    x: torch.Tensor, lengths: torch.Tensor, states: Sequence[torch.Tensor], weights: Sequence[torch.Tensor], kind: str, *settings: Any
) -> list[torch.Tensor]:
    directions = 1 + settings[-1]
    return [x.new_empty(x.shape[0], x.shape[1], directions * states[0].shape[-1]), *(torch.empty_like(state) for state in states)]
