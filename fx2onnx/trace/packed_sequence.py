"""Represent packed sequences by the padded tensor and the lengths, which ONNX's recurrent operators accept."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral
from types import CodeType, FunctionType
from typing import Any, NoReturn

import torch
from torch import nn
from torch.nn.utils import rnn

from ..compat import trees as pytree
from ..compat.dispatch import is_any_autocast_enabled
from ..compat.exporting import check_condition
from ..compat.trees import children_of
from ..ir.expressions import expression
from ..ir.recurrences import recurrences
from ..patches.registry import apply_patches, register_patch
from .refusal import TraceUnsupported
from .source_location import line_of

KINDS = {"LSTM": "lstm", "GRU": "gru", "RNN_TANH": "rnn_tanh", "RNN_RELU": "rnn_relu"}
USES = "its number of rows depends on the lengths, so an exported model can only pass it to recurrent layers and pad_packed_sequence"
_UNCHECKED: list[dict[str, None]] = []  # the checks that the exported model omits, for each active capture


class PackedSequenceProxy(rnn.PackedSequence):
    """A packed sequence that stores the padded tensor, because the number of packed rows depends on values.

    Attributes:
        steps: (steps, batch, …), with any padding.
        lengths: (batch,).
        longest: the largest length, if it is a constant.
        is_clear: whether the padding is zero.
    """

    steps: torch.Tensor
    lengths: torch.Tensor
    longest: int | None
    is_clear: bool
    _make = None  # type: ignore[assignment]  # pytree would flatten it as a named tuple

    def __new__(cls, steps: torch.Tensor, lengths: torch.Tensor, longest: int | None, is_clear: bool = False) -> PackedSequenceProxy:
        """Create one; as a tuple it contains only None."""
        sequence = tuple.__new__(cls, (None,) * 4)
        sequence.steps, sequence.lengths, sequence.longest, sequence.is_clear = steps, lengths, longest, is_clear
        return sequence

    def __iter__(self) -> NoReturn:
        _refuse("unpacked by Python")

    def __getitem__(self, place: Any) -> NoReturn:
        _refuse("unpacked by Python")

    def to(self, *args: Any, **kwargs: Any) -> PackedSequenceProxy:
        """Return a sequence with another dtype or device."""
        return PackedSequenceProxy(self.steps.to(*args, **kwargs), self.lengths, self.longest, self.is_clear)


def _refuse(use: str) -> NoReturn:
    """Raise the error for an unsupported use of a packed sequence.

    Raises:
        TraceUnsupported: Always.
    """
    raise TraceUnsupported(f"a PackedSequence is {use} at {line_of(sys._getframe(2))}: {USES}")


def _refusing(name: str) -> property:
    return property(lambda self: _refuse(f"accessed by its attribute {name}"))


for _name in rnn.PackedSequence._fields:
    setattr(PackedSequenceProxy, _name, _refusing(_name))
pytree.register_pytree_node(  # so that it can be an input or output of blocks
    PackedSequenceProxy,
    lambda sequence: ([sequence.steps, sequence.lengths], (sequence.longest, sequence.is_clear)),
    lambda tensors, rest: PackedSequenceProxy(*tensors, *rest),
)


def check_no_result_is_packed(results: pytree.TreeSpec) -> None:
    """Refuse a model that returns a packed sequence.

    Raises:
        TraceUnsupported: If one is among its results.
    """
    if results.type is PackedSequenceProxy:
        raise TraceUnsupported(f"the model returns a PackedSequence: {USES}")
    for part in children_of(results):
        check_no_result_is_packed(part)


@contextmanager
def trace_packed_sequences() -> Iterator[dict[str, None]]:
    """Replace packing and padding by `PackedSequenceProxy`, and yield the lines whose checks the exported model omits."""
    unchecked: dict[str, None] = {}
    _UNCHECKED.append(unchecked)
    try:
        with apply_patches("packed"):
            yield unchecked
    finally:
        _UNCHECKED.pop()


def _pack_padded_sequence(input: Any, lengths: Any, batch_first: Any, enforce_sorted: Any) -> Any:
    """Replaces the code of torch's function, so it runs with the globals of torch's module."""
    from fx2onnx.trace.packed_sequence import pack_steps

    return pack_steps(input, lengths, batch_first, enforce_sorted)


def _pad_packed_sequence(sequence: Any, batch_first: Any, padding_value: Any, total_length: Any) -> Any:
    from fx2onnx.trace.packed_sequence import pad_steps

    return pad_steps(sequence, batch_first, padding_value, total_length)


@register_patch(
    "packed",
    "torch.nn.utils.rnn.pack_padded_sequence.__code__",
    "torch.nn.utils.rnn.pad_packed_sequence.__code__",
    reason="the number of rows of a packed sequence depends on values; a module may have imported the function by its name",
    issue="pytorch#171978",
)
def _replace_code(own: CodeType, holder: FunctionType) -> CodeType:
    ours = {"pack_padded_sequence": _pack_padded_sequence, "pad_packed_sequence": _pad_packed_sequence}
    return ours[holder.__name__].__code__


_PADDED = FunctionType(rnn.pad_packed_sequence.__code__, rnn.__dict__, argdefs=rnn.pad_packed_sequence.__defaults__)


def pack_steps(x: torch.Tensor, lengths: Any, batch_first: bool, enforce_sorted: bool) -> PackedSequenceProxy:
    """Return the proxy of a packed sequence."""
    longest = None
    if not isinstance(lengths, torch.Tensor):
        longest = _largest(lengths)
        lengths = torch.tensor(lengths)
    _record_unchecked(f"lengths are 1 or more{', and in descending order' if enforce_sorted else ''}")
    return PackedSequenceProxy(x.transpose(0, 1) if batch_first else x, lengths.to(torch.int64), longest)


def _largest(lengths: Sequence[Any]) -> int:
    """Return the largest of the lengths in a Python list.

    Raises:
        TraceUnsupported: If they are not constants.
    """
    if not all(issubclass(type(length), Integral) for length in lengths):
        line = line_of(sys._getframe(2))
        raise TraceUnsupported(
            f"pack_padded_sequence gets a list of lengths that are not constants at {line}: pass the lengths as a tensor"
        )
    return int(max(lengths))


def pad_steps(
    sequence: rnn.PackedSequence, batch_first: bool, padding_value: float, total_length: int | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the padded steps of a packed sequence, up to `total_length` or the longest length, and its lengths."""
    if not isinstance(sequence, PackedSequenceProxy):
        return _PADDED(sequence, batch_first, padding_value, total_length)
    steps, lengths = sequence.steps, sequence.lengths
    if not sequence.is_clear or padding_value != 0:
        is_padding = torch.arange(steps.shape[0], device=steps.device)[:, None] >= lengths.to(steps.device)
        steps = steps.masked_fill(is_padding.reshape(*is_padding.shape, *(1,) * (steps.dim() - 2)), padding_value)
    if total_length is None:
        steps = steps[: _longest(sequence)]
    elif expression(total_length) != expression(sequence.steps.shape[0]):
        _record_unchecked("no length exceeds total_length")
        steps = _pad_or_cut(steps, total_length, padding_value)
    return steps.transpose(0, 1) if batch_first else steps, lengths


def _longest(sequence: PackedSequenceProxy) -> Any:
    if sequence.longest is not None:
        return sequence.longest
    longest = sequence.lengths.max().item()
    check_condition(longest >= 1)
    check_condition(longest <= sequence.steps.shape[0])
    return longest


def _pad_or_cut(steps: torch.Tensor, length: Any, padding_value: float) -> torch.Tensor:
    """Cut or pad the steps to this length, without a test of which is needed."""
    further = steps.new_full((length, *steps.shape[1:]), padding_value)
    return torch.cat([steps, further])[:length]


@register_patch(
    "packed",
    *(f"torch.nn.{layer}.forward" for layer in ("LSTM", "GRU", "RNN")),
    reason="the layer gets a packed sequence as padded steps and lengths",
    issue="pytorch#171978",
)
def _wrap_forward(forward: Callable[..., Any]) -> Callable[..., Any]:
    def of_either(self: nn.RNNBase, input: Any, hx: Any = None) -> Any:
        return _run(self, input, hx) if isinstance(input, PackedSequenceProxy) else forward(self, input, hx)

    return of_either


def _run(layer: nn.RNNBase, sequence: PackedSequenceProxy, hx: Any) -> tuple[PackedSequenceProxy, Any]:
    """Return the results of a recurrent layer for a packed sequence: another one, and the final states."""
    layer._update_flat_weights()
    x, has_cells = sequence.steps, layer.mode == "LSTM"
    if is_any_autocast_enabled():
        raise TraceUnsupported(
            f"a recurrent layer runs under autocast on a PackedSequence, which is not supported, at {line_of(sys._getframe(2))}"
        )
    layer.check_input(x, None)
    states = _zeros(layer, x) if hx is None else _check_states(layer, x, list(hx) if has_cells else [hx])
    settings = layer.bias, layer.num_layers, float(layer.dropout), layer.training, layer.bidirectional
    weights = list(layer._flat_weights)
    out, *finals = recurrences().of_lengths(x, sequence.lengths, states, weights, KINDS[layer.mode], *settings)
    result = PackedSequenceProxy(out, sequence.lengths, sequence.longest, is_clear=True)
    return result, tuple(finals) if has_cells else finals[0]


def _zeros(layer: nn.RNNBase, x: torch.Tensor) -> list[torch.Tensor]:
    return [x.new_zeros(size) for size in _sizes_of_states(layer, x)]


def _check_states(layer: nn.RNNBase, x: torch.Tensor, states: list[torch.Tensor]) -> list[torch.Tensor]:
    for state, size in zip(states, _sizes_of_states(layer, x), strict=True):
        layer.check_hidden_size(state, size)
    return states


def _sizes_of_states(layer: nn.RNNBase, x: torch.Tensor) -> list[tuple[int, int, int]]:
    hidden = [layer.proj_size or layer.hidden_size, *([layer.hidden_size] if layer.mode == "LSTM" else [])]
    return [(layer.num_layers * (2 if layer.bidirectional else 1), x.shape[1], size) for size in hidden]


def _record_unchecked(what: str) -> None:
    _UNCHECKED[-1][f"{line_of(sys._getframe(2))}: torch checks that {what}; the exported model does not"] = None
