"""Try values in eager, and find those that it accepts and those that change its decisions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from ..cases import Sample
from ..eager import fresh, run_calls
from .conditions import BySite, Conditions, group_by_site, record_decisions
from .eager_timeout import TooSlow, time_limit
from .float64_reference import run_in_float64
from .values import integers_at, mutate_sample

FURTHEST = 16  # the search for large integers ends at this multiple of the largest integer,
AND_MORE = 1024  # plus this number


@dataclass(frozen=True)
class Search:
    """A search for values that eager accepts within a time limit, and for their effects. A call that takes longer ends the search."""

    conditions: Conditions
    module: nn.Module
    patience: float
    too_slow: list[TooSlow] = field(default_factory=list)

    def takes(self, sample: Sample) -> bool:
        """Whether eager accepts the sample."""
        return self._runs(lambda: run_calls(fresh(self.module), (sample,)))

    def changes(self, sample: Sample) -> bool:
        """Whether eager accepts the sample and decides a site in a new way."""
        before = self.conditions.open()
        return self._runs(lambda: self.conditions.watch(self.module, (sample,))) and self.conditions.open() < before

    def watches(self, sample: Sample) -> None:
        """Record eager's decisions if it accepts the sample."""
        self._runs(lambda: self.conditions.watch(self.module, (sample,)))

    def decided(self, sample: Sample) -> BySite | None:
        """Return eager's decisions at each site without recording them; None if it rejects the sample."""
        return self._noted(lambda: run_calls(fresh(self.module), (sample,)))

    def decided_in_float64(self, sample: Sample, seed: int) -> BySite | None:
        """Return the decisions in float64, with each result changed by a few roundings; None if the module doesn't run this way."""
        return self._noted(lambda: run_in_float64(self.module, (sample,), seed))

    def _noted(self, call: Callable[[], Any]) -> BySite | None:
        found: list[BySite] = []
        self._runs(lambda: found.append(group_by_site(record_decisions(call))))
        return found[0] if found else None

    def _runs(self, call: Callable[[], Any]) -> bool:
        if self.too_slow:
            return False
        try:
            with time_limit(self.patience):
                return _accepts(call)
        except TooSlow as error:
            self.too_slow.append(error)
            return False


def _accepts(call: Callable[[], Any]) -> bool:
    try:
        call()
    except TooSlow:
        raise
    except Exception:  # noqa: BLE001 - values that eager rejects cannot be used to verify
        return False
    return True


def greatest_taken(search: Search, first: Sample, tensor: torch.Tensor) -> int:
    """Return the largest integer that eager accepts for all elements of a tensor, found with steps that double, then halve."""
    greatest = int(tensor.max())
    value, step, refused = greatest, 1, False
    furthest = min(FURTHEST * abs(greatest) + AND_MORE, torch.iinfo(tensor.dtype).max)
    while step and value + step <= furthest and not search.too_slow:
        accepted = search.takes(next(mutate_sample(first, (integers_at(value + step, tensor),)))[1])
        value, refused = value + step * accepted, refused or not accepted
        step = step // 2 if refused else step * 2
    return value
