"""Find input values on both sides of a module's conditions, because a wrong threshold in the exported model shows only there."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice, pairwise

import torch

from ..cases import Sample
from .conditions import BySite, Site
from .search import Search
from .values import SIGNED, Mutation, integers_at, integers_of, integers_up_to, mutate_sample, reach_of, sizes_of, times

EDGES = 8  # maximum number of edges to check
OF_A_SITE = 2
POWERS = (-4, -1, -1 / 3, 0, 1 / 3, 1, 4)  # exponents of the float scale; edges are searched between neighbouring scales
NARROW = math.log(1.02)  # an edge counts as located between two scales with this ratio
# Distances from an edge. The first one that is safe from rounding is used: halving all inputs hardly changes a sum of exponentials.
BESIDE = tuple(math.log(scale) for scale in (1.04, 1.1, 1.25))
SEEDS = range(3)

Varied = tuple[Mutation, Sample]


@dataclass(frozen=True)
class Boundary:
    """Two close positions on a scan line, with a site whose decision differs between them."""

    site: Site
    low: float
    high: float


@dataclass(frozen=True)
class Neighbour:
    """Positions on one side of an edge, with a description."""

    words: str
    places: Sequence[float]


@dataclass(frozen=True)
class ScanLine:
    """Samples along one number, the position, and the decisions of eager at each position.

    Attributes:
        change: the variation of the sample at a position.
        places: the initial positions.
        between: returns a position between two, or None if they are close enough.
        beside: returns groups of positions near an edge. In each group, the first one that is safe from rounding is verified.
    """

    search: Search
    first: Sample
    change: Callable[[float], Mutation]
    places: Sequence[float]
    between: Callable[[float, float], float | None]
    beside: Callable[[Boundary], Sequence[Neighbour]]
    known: dict[float, BySite | None] = field(default_factory=dict)

    def sample(self, place: float) -> Sample:
        """Return the sample at a position; the first sample if nothing changes."""
        return next((sample for _, sample in mutate_sample(self.first, (self.change(place),))), self.first)

    def decided(self, place: float) -> BySite | None:
        """Return the decisions at a position, or None if eager rejects the sample."""
        if place not in self.known:
            self.known[place] = self.search.decided(self.sample(place))
        return self.known[place]

    def edges(self, sites: Collection[Site]) -> Iterator[Boundary]:
        """Yield a few edges for each of these sites, nearest to the first sample first."""
        taken = [place for place in self.places if self.decided(place) is not None]
        for site in sites:
            wide = [Boundary(site, low, high) for low, high in pairwise(taken) if self._parts(site, low, high)]
            wide.sort(key=lambda edge: min(abs(edge.low), abs(edge.high)))
            narrow = (self._narrowed(edge) for edge in wide)
            yield from islice((edge for edge in narrow if edge), OF_A_SITE)

    def _parts(self, site: Site, low: float, high: float) -> bool:
        before, after = (self.decided(place) or {} for place in (low, high))
        return site in before and site in after and before[site] != after[site]

    def _narrowed(self, edge: Boundary) -> Boundary | None:
        """Narrow an edge down; None if eager rejects the samples in between."""
        while (middle := self.between(edge.low, edge.high)) is not None:
            if edge.site not in (self.decided(middle) or {}):
                return None
            edge = replace(edge, high=middle) if self._parts(edge.site, edge.low, middle) else replace(edge, low=middle)
        return edge

    def samples(self, edge: Boundary) -> Iterator[Varied]:
        """Yield the samples to verify near an edge."""
        for beside in self.beside(edge):
            place = next((place for place in beside.places if self._stands(edge.site, place)), None)
            if place is not None:
                change = self.change(place)
                yield replace(change, name=f"{change.name}, {beside.words} {edge.site.named()}"), self.sample(place)

    def _stands(self, site: Site, place: float) -> bool:
        """Whether a site's decision stays the same in float64 when all intermediate results are changed by a few roundings."""
        decided = self.decided(place)
        if decided is None:
            return False
        again = (self.search.decided_in_float64(self.sample(place), seed) for seed in SEEDS)
        return all(other is None or other.get(site) == decided.get(site) for other in again)


def edges(search: Search, first: Sample, greatest: Mapping[int, int]) -> Iterator[Varied]:
    """Yield values near the edges of conditions and masks that changed with the values of the first sample.

    Args:
        greatest: the largest integer that eager accepts in each integer tensor, by `id`.
    """
    left, room = sorted(search.conditions.moved(), key=lambda site: (site.kind == "mask", site)), EDGES
    for ray in (*_make_float_rays(search, first), *_make_integer_rays(search, first, greatest)):
        found = list(islice(ray.edges(left), room)) if left else []
        room -= len(found)
        left = [site for site in left if all(edge.site != site for edge in found)]
        for edge in {edge.low: edge for edge in found}.values():
            yield from ray.samples(edge)


def _make_float_rays(search: Search, first: Sample) -> Iterator[ScanLine]:
    """Yield scan lines that scale all floats, with each kind of sign. The position is the logarithm of the scale."""
    reach = math.log(reach_of(first))
    places = [power * reach for power in POWERS] if reach else []
    for sign in SIGNED:
        yield ScanLine(search, first, partial(_make_scaling, sign), places, _halfway, _below_and_above)


def _make_scaling(sign: str, place: float) -> Mutation:
    return times(math.exp(place), sign)


def _halfway(low: float, high: float) -> float | None:
    return (low + high) / 2 if high - low > NARROW else None


def _below_and_above(edge: Boundary) -> Sequence[Neighbour]:
    middle = (edge.low + edge.high) / 2
    sides = {"just below the edge at": -1, "just above the edge at": 1}
    return [Neighbour(words, [middle + side * away for away in BESIDE]) for words, side in sides.items()]


def _make_integer_rays(search: Search, first: Sample, greatest: Mapping[int, int]) -> Iterator[ScanLine]:
    """Yield two scan lines for each integer tensor: integers up to the position, and all integers equal to the position."""
    for tensor in integers_of(first):
        most, info = greatest.get(id(tensor), int(tensor.max())), torch.iinfo(tensor.dtype)
        usual = {max(-most, info.min), int(tensor.min()), 0, int(tensor.max()), most}
        places = sorted(usual | {size for size in sizes_of(first) if size < most})
        for change in (integers_up_to, integers_at):
            yield ScanLine(
                search, first, partial(_integers, change, tensor), places, _find_integer_midpoint, partial(_pick_places_around, info.max)
            )


def _integers(change: Callable[[int, torch.Tensor], Mutation], tensor: torch.Tensor, place: float) -> Mutation:
    return change(int(place), tensor)


def _find_integer_midpoint(low: float, high: float) -> float | None:
    return (low + high) // 2 if high - low > 1 else None


def _pick_places_around(most: int, edge: Boundary) -> Sequence[Neighbour]:
    return [Neighbour("at the edge at", [place]) for place in (edge.low, edge.high, edge.high + 1) if place <= most]
