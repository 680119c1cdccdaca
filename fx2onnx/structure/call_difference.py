"""Why two module calls are not calls of one function, for the report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from ..errors import op_title
from ..match import Event, Match, Value, events_of_nodes, match
from ..trace.source_location import line_in

Node = torch.fx.Node


def describe_difference(first: Sequence[Node], other: Sequence[Node]) -> str:
    """Return the first difference between the nodes of two calls."""
    differences = _list_differences(match(events_of_nodes(first), events_of_nodes(other)))
    return next(differences, "the sizes or the graphs inside it are different")


def _list_differences(found: Match) -> Iterator[str]:
    for gap in found.gaps:
        called, instead = (_format_call(events[0]) if events else "nothing" for events in (gap.other, gap.one))
        yield f"it calls {called}, not {instead}"
    tensors = []
    for hole in found.holes:
        if isinstance(hole.one, Value) and isinstance(hole.other, Value):
            tensors.append(hole)
            continue
        event = found.pattern[hole.places[0][0]]
        assert isinstance(event, Event)
        called = _format_call(Event(None, (), tuple(found.renaming[result] for result in event.results)))
        yield f"{called} takes {_format_leaf(hole.other)}, not {_format_leaf(hole.one)}"
    for hole in tensors:
        one, other = (_format_leaf(leaf) for leaf in (hole.one, hole.other))
        if one != other:
            yield f"{hole.other.name} is {other}, not {one}"
    if any(len(set(names)) < len(tensors) for names in zip(*((hole.one, hole.other) for hole in tensors), strict=True)):
        yield "its inputs or weights are tied differently"


def _format_call(event: Event) -> str:
    [node] = event.results
    assert isinstance(node, Node)
    return f"{op_title(node.target)} at {line_in(node.meta.get('stack_trace') or '')}"


def _format_leaf(leaf: Any) -> str:
    if not isinstance(leaf, Value):
        return str(leaf)
    assert isinstance(leaf.name, Node)
    value = leaf.name.meta.get("val")
    return f"a {value.dtype} tensor of shape ({', '.join(map(str, value.shape))})" if isinstance(value, torch.Tensor) else "another value"
