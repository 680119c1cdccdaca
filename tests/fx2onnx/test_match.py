"""What two call sequences have in common is found whatever their values are called, and the holes are where the differences are."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch import Tensor, nn

from fx2onnx.match import (
    Event,
    Gap,
    Hole,
    Match,
    Value,
    Variable,
    align,
    canonical,
    events_of_nodes,
    match,
    number_by_first_use,
    same_constant,
)
from fx2onnx.trace.events import Ref, events_of
from fx2onnx.trace.run import trace

CONSTANTS = st.one_of(st.integers(-2, 2), st.booleans(), st.sampled_from([None, "sum", 0.0, -0.0, 1.0, math.nan, torch.float32]))
FREE = ("x", "weight")


@st.composite
def sequences(draw: st.DrawFn, least: int = 0) -> list[Event]:
    """Random calls, each of which reads earlier results and free values; operators repeat."""
    events: list[Event] = []
    names: list[Any] = list(FREE)
    for number in range(draw(st.integers(least, 12))):
        value = st.sampled_from(names).map(Value)
        leaves = draw(st.lists(st.one_of(value, CONSTANTS), max_size=3))
        results = tuple((number, part) for part in range(draw(st.integers(0, 2))))
        events.append(Event(draw(st.sampled_from(["add", "mul", "view"])), tuple(leaves), results))
        names += results
    return events


def renamed(events: list[Event], name: Any) -> list[Event]:
    """The same calls, with other names for what they make."""
    made = {result for event in events for result in event.results}

    def other(result: Any) -> Any:
        return (name, result) if result in made else result

    def leaf(one: Any) -> Any:
        return Value(other(one.name)) if isinstance(one, Value) else one

    return [Event(event.signature, tuple(map(leaf, event.leaves)), tuple(map(other, event.results))) for event in events]


def same(one: list[Event], other: list[Event]) -> bool:
    """Whether calls are the same, where NaN is NaN."""
    pairs = list(zip(one, other, strict=False))
    return len(one) == len(other) and all(
        a.signature == b.signature
        and a.results == b.results
        and len(a.leaves) == len(b.leaves)
        and all(map(same_constant, a.leaves, b.leaves))
        for a, b in pairs
    )


def mirrored(found: Match) -> list[Any]:
    """The pattern as the second sequence would have it, with the leaves of holes in the other order."""
    holes = [(hole.other, hole.one) for hole in found.holes]
    return [[*map(str, holes)], [str(Gap(gap.other, gap.one)) for gap in found.gaps]]


@given(sequences())
def test_a_sequence_matches_itself_whatever_its_values_are_called(events: list[Event]) -> None:
    found = match(events, renamed(events, "other"))
    assert found.is_exact
    assert found.renaming == {result: ("other", result) for event in events for result in event.results}
    assert same(found.first(), events)
    assert str(canonical(events)) == str(canonical(renamed(events, "other")))


@given(sequences(), sequences())
def test_what_fills_the_holes_gives_back_both(one: list[Event], other: list[Event]) -> None:
    other = renamed(other, "other")
    found = match(one, other)
    assert same(found.first(), one)
    assert same(found.second(), other)
    assert found.is_exact == (str(canonical(one)) == str(canonical(other)) and free_in_order(one) == free_in_order(other))


def free_in_order(events: list[Event]) -> list[Any]:
    return [leaf.name for event in events for leaf in event.leaves if isinstance(leaf, Value) and leaf.name in FREE]


@given(sequences(), sequences())
def test_a_match_is_the_same_from_both_sides(one: list[Event], other: list[Event]) -> None:
    other = renamed(other, "other")
    found, back = match(one, other), match(other, one)
    assert mirrored(back) == [[str((hole.one, hole.other)) for hole in found.holes], list(map(str, found.gaps))]
    assert {a: b for b, a in back.renaming.items()} == found.renaming


@given(sequences(least=1), st.data())
def test_a_hole_is_where_a_leaf_differs_and_nowhere_else(events: list[Event], data: st.DataObject) -> None:
    places = [(i, j) for i, event in enumerate(events) for j in range(len(event.leaves))]
    assume(places)
    changed = data.draw(st.lists(st.sampled_from(places), min_size=1, unique=True))
    other = list(events)
    for i, j in changed:
        new = data.draw(
            st.one_of(CONSTANTS, st.sampled_from(FREE).map(Value)).filter(
                lambda leaf, i=i, j=j: not same_constant(leaf, events[i].leaves[j])
            )
        )
        leaves = list(other[i].leaves)
        leaves[j] = new
        other[i] = replace(other[i], leaves=tuple(leaves))
    found = match(events, renamed(other, "other"))
    assert found.gaps == []
    assert sorted(place for hole in found.holes for place in hole.places) == sorted(changed)
    assert all(isinstance(found.pattern[i].leaves[j], Variable) for i, j in changed)  # type: ignore[union-attr]


@given(sequences(), st.data())
def test_a_gap_is_where_calls_are_missing_or_added(events: list[Event], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(events)))
    further, others = (
        tuple(Event(f"{side} {number}", (Value("x"),), ((side, number),)) for number in range(data.draw(st.integers(0, 3))))
        for side in ("new", "old")
    )
    assume(further or others)
    one, other = [*events[:place], *others, *events[place:]], [*events[:place], *further, *events[place:]]
    found = match(one, renamed(other, "other"))
    assert found.holes == []
    assert [item.signature if isinstance(item, Event) else item.one for item in found.pattern] == [
        *(event.signature for event in events[:place]),
        others,
        *(event.signature for event in events[place:]),
    ]


@given(st.lists(st.integers(0, 30), unique=True, max_size=20), st.data())
def test_calls_that_occur_once_are_aligned_between_several_gaps(items: list[int], data: st.DataObject) -> None:
    one, other = list[Any](items), list[Any](items)
    for name, side in (("a", one), ("b", other)):
        for number in range(data.draw(st.integers(0, 4))):
            side.insert(data.draw(st.integers(0, len(side))), (name, number))
    assert [(one[i], other[j]) for i, j in align(one, other)] == [(item, item) for item in items]


def test_what_stands_in_another_order_is_not_aligned() -> None:
    assert align("abcx", "bacy") == [(2, 2)]
    assert align("ab", "ba") == []
    assert align("aab", "ab") == [(0, 0), (2, 1)]


def test_repeated_calls_are_aligned_between_calls_that_occur_once() -> None:
    assert align("XpaaqaY", "ZpaaqaaW") == [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5)]


def test_the_same_two_leaves_are_one_hole() -> None:
    one = [Event("mul", (Value("x"), 2), ("a",)), Event("add", (Value("a"), 2, 5), ("b",))]
    other = [Event("mul", (Value("x"), 3), ("a",)), Event("add", (Value("a"), 3, 6), ("b",))]
    found = match(one, other)
    assert found.holes == [Hole(2, 3), Hole(5, 6)]
    assert [hole.places for hole in found.holes] == [[(0, 1), (1, 1)], [(1, 2)]]
    assert found.pattern[1] == Event("add", (Value("a"), Variable(0), Variable(1)), ("b",))


def test_a_result_of_a_gap_is_a_hole_where_it_is_read() -> None:
    one = [Event("yes", (Value("x"),), ("a",)), Event("relu", (Value("a"),), ("b",))]
    other = [Event("no", (Value("x"),), ("c",)), Event("relu", (Value("c"),), ("b",))]
    assert match(one, other).holes == [Hole(Value("a"), Value("c"))]


def test_free_values_may_be_given_other_names() -> None:
    one, other = [Event("mul", (Value("x"), Value("w1")))], [Event("mul", (Value("y"), Value("w2")))]
    assert len(match(one, other).holes) == 2
    assert match(one, other, {"x": "y", "w1": "w2"}).is_exact
    assert not match(one, [Event("mul", (Value("y"), Value("y")))], {"x": "y", "w1": "w2"}).is_exact


def test_no_value_has_two_names() -> None:
    assert match([Event("add", (Value("x"), Value("y")))], [Event("add", (Value("y"), Value("y")))], {"x": "y"}).holes == [
        Hole(Value("y"), Value("y"))
    ]


@pytest.mark.parametrize(("one", "other"), [(1, 1.0), (1, True), (0.0, -0.0), ("1", 1), (None, 0), (Value(1), Variable(1))])
def test_constants_of_different_kinds_are_different(one: Any, other: Any) -> None:
    assert not same_constant(one, other)
    assert not match([Event("f", (one,))], [Event("f", (other,))]).is_exact


def test_what_cannot_be_hashed_is_compared_by_value() -> None:
    assert match([Event("f", ([1],))], [Event("f", ([1],))]).is_exact
    assert match([Event("f", ([1], [1]))], [Event("f", ([2], [2]))]).holes == [Hole([1], [2]), Hole([1], [2])]


def test_numbers_say_which_are_the_same() -> None:
    assert number_by_first_use("aacab") == (0, 0, 2, 0, 4)


@pytest.mark.parametrize("leaves", [(0.0, -0.0), (1, True), (1, 1.0), ("1", 1)])
def test_holes_of_different_constants_are_different(leaves: tuple[Any, Any]) -> None:
    assert len(match([Event("f", leaves)], [Event("f", ("new", "new"))]).holes) == 2
    assert len(match([Event("f", ("new", "new"))], [Event("f", leaves)]).holes) == 2


def test_a_nan_is_one_hole() -> None:
    nan = float("nan")
    assert len(match([Event("f", (math.nan, nan))], [Event("f", (1, 1))]).holes) == 1


def test_a_value_that_one_sequence_makes_is_not_a_free_value_of_the_other() -> None:
    one, other = [Event("make", (), ("v",)), Event("use", (Value("v"),))], [Event("use", (Value("v"),))]
    for first, second in ((one, other), (other, one)):
        assert match(first, second).holes == [Hole(Value("v"), Value("v"))]


def test_canonical_names_tell_values_apart() -> None:
    made = [Event("f", (), ("a",)), Event("f", (), ("b",))]
    assert canonical([*made, Event("g", (Value("a"), Value("b")))]) != canonical([*made, Event("g", (Value("a"), Value("a")))])
    assert canonical([*made, Event("g", (Value("a"),))]) != canonical([*made, Event("g", (Value("b"),))])


class Scaled(nn.Module):
    """Multiplies by a number, behind a layer."""

    def __init__(self, number: float, extra: bool = False) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.number, self.extra = number, extra

    def forward(self, x: Tensor) -> Tensor:
        made = self.layer(x)
        if self.extra:
            made = made.exp()
        return (made * self.number + made).reshape(x.shape[0], -1)


def test_runs_are_matched() -> None:
    one, other = (trace(Scaled(number), ((torch.ones(rows, 3),), {})) for number, rows in ((2.0, 4), (3.0, 5)))
    assert match(events_of(one), events_of(other)).holes == [Hole(2.0, 3.0), Hole(4, 5)]
    longer = trace(Scaled(2.0, extra=True), ((torch.ones(4, 3),), {}))
    found = match(events_of(one), events_of(longer))
    assert [event.signature[0] for gap in found.gaps for event in (*gap.one, *gap.other)] == [torch.ops.aten.exp.default]
    assert found.holes == [Hole(Value((Ref("row", 0),)), Value((Ref("row", 1),)))]


def test_functions_that_operators_take_are_matched() -> None:
    def traced(number: float, extra: bool) -> Any:
        def model(x: Tensor) -> Tensor:
            x = x.exp() if extra else x
            return torch.cond(x.sum() > 0, lambda x: x * number, lambda x: x - 1, (x,))

        from modules import Of

        from fx2onnx.paths.higher_order_ops import trace_higher_order_functions

        with trace_higher_order_functions(True):
            return events_of(trace(Of(model), ((torch.ones(2, 3),), {})))

    assert match(traced(2.0, False), traced(2.0, False)).is_exact
    found = match(traced(2.0, False), traced(3.0, True))
    assert Hole(2.0, 3.0) in found.holes
    assert len(found.gaps) == 1


def test_fx_graphs_are_matched() -> None:
    one, other = (torch.fx.symbolic_trace(Scaled(number)).graph.nodes for number in (2.0, 3.0))
    found = match(events_of_nodes(one), events_of_nodes(other))
    assert (found.holes, found.gaps) == ([Hole(2.0, 3.0)], [])


def test_arguments_that_are_nested_differently_are_different_calls() -> None:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    nodes = [graph.call_function(torch.cat, args) for args in (([x, x],), ((x, x),))]
    assert len(match(*([event] for event in events_of_nodes(nodes))).gaps) == 1


def test_thousands_of_calls_are_matched() -> None:
    one = [Event(f"{number % 7}", (Value(number - 1), 2), (number,)) for number in range(5000)]
    other = [*one[:1000], Event("new", (), ("new",)), *one[1000:4000], Event("new", (), ("newer",)), *one[4000:]]
    assert match(one, one[:2500] + other[2501:3000] + one[2999:]).renaming
    assert match(one, renamed(other, "other")).first() == one
