"""Why two module calls are not calls of one function, for the report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from ..errors import op_title
from ..ir.expressions import sizes_of
from ..match import Event, Match, Value, events_of_nodes, match
from ..trace.source_location import line_in

Node = torch.fx.Node


def describe_difference(first: Sequence[Node], other: Sequence[Node], shape_of: Callable[[Any], Any]) -> str:
    """Return the first difference between the nodes of two calls.

    Args:
        shape_of: returns sizes in the names that axes have in the model.
    """
    return next(_list_differences(match(events_of_nodes(first), events_of_nodes(other)), shape_of), "graphs inside it differ")


def _list_differences(found: Match, shape_of: Callable[[Any], Any]) -> Iterator[str]:
    for gap in found.gaps:
        called, instead = ([_format_call(event) for event in events[:1]] for events in (gap.other, gap.one))
        if called and instead and gap.other[0].signature[1] is gap.one[0].signature[1]:
            yield f"{called[0]} takes other arguments"
        else:
            yield f"it calls {', not '.join(called + instead)}" if called else f"it does not call {instead[0]}"
    tensors = []
    for hole in found.holes:
        leaves = tuple(_format_leaf(leaf, shape_of) for leaf in (hole.other, hole.one))
        if isinstance(hole.one, Value) and isinstance(hole.other, Value):
            tensors.append(hole)
            if leaves[0] != leaves[1]:
                yield f"{hole.other.name} is {leaves[0]}, not {leaves[1]}"
            continue
        event = found.pattern[hole.places[0][0]]
        assert isinstance(event, Event)
        other = replace(event, results=tuple(found.renaming[result] for result in event.results))
        yield f"{_format_call(other)} takes {leaves[0]}, not {leaves[1]}"
    if any(len(set(names)) < len(tensors) for names in zip(*((hole.one, hole.other) for hole in tensors), strict=True)):
        yield "its inputs or weights are tied differently"


def _format_call(event: Event) -> str:
    [node] = event.results
    assert isinstance(node, Node)
    return f"{op_title(node.target)} at {line_in(node.meta.get('stack_trace') or '')}"


def _format_leaf(leaf: Any, shape_of: Callable[[Any], Any]) -> str:
    if not isinstance(leaf, Value):
        return str(leaf)
    assert isinstance(leaf.name, Node)
    value = leaf.name.meta.get("val")
    return f"a {value.dtype} tensor of shape {shape_of(sizes_of(value))}" if isinstance(value, torch.Tensor) else "another value"
