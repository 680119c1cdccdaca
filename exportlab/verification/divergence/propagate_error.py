"""Propagate the errors of nodes to the outputs: add each error to the float64 result, and continue in float64."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Mapping

import torch

from ..difference import Tolerances
from .call import Call
from .replay_modes import Truth
from .tolerance import largest, measure_in_tolerances

RUNS = 200  # maximum runs of the captured graph in the search for relevant errors


class Carried:
    """Measure how much the errors of nodes move the float outputs, in tolerances."""

    def __init__(self, call: Call, errors: Mapping[str, torch.Tensor], tolerances: Tolerances) -> None:
        self.call = call
        self.errors = errors
        self.tolerances = tolerances
        self.right = Truth(call, {}).results()

    def distance(self, outputs: Mapping[str, object]) -> float:
        """Return the distance of outputs from the float64 result."""
        return max((self._apart(name, outputs.get(name)) for name in self.right), default=0.0)

    def by(self, names: Collection[str]) -> float:
        """Return how much the errors of these nodes move the outputs."""
        return self.distance(Truth(self.call, {name: self.errors[name] for name in names}).results())

    def without(self, names: Collection[str]) -> float:
        """Return how much the errors of all other nodes move the outputs."""
        return self.by([name for name in self.errors if name not in names])

    def culprits(self) -> dict[str, float]:
        """Return the nodes that move an output by more than its tolerance, found by bisection, largest effect first."""
        found: dict[str, float] = {}
        waiting: list[tuple[float, int, list[str]]] = []
        runs = 0
        groups: Iterable[list[str]] = [list(self.errors)]
        while True:
            for group in filter(None, groups):
                runs += 1
                effect = self.by(group)
                if effect > 1 and len(group) == 1:
                    found[group[0]] = effect
                elif effect > 1:
                    heapq.heappush(waiting, (-effect, runs, group))
            if not waiting or runs > RUNS:
                return found
            _, _, group = heapq.heappop(waiting)
            groups = [group[: len(group) // 2], group[len(group) // 2 :]]

    def _apart(self, name: str, output: object) -> float:
        right = self.right[name]
        if not isinstance(right, torch.Tensor) or not isinstance(output, torch.Tensor) or output.shape != right.shape:
            return 0.0
        if not right.is_floating_point() and not right.is_complex():
            return 0.0
        dtype = self.call.narrowest.get(name, torch.float32)
        return largest(measure_in_tolerances(output, right, dtype, self.tolerances))
