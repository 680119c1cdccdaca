"""What runs of a module do where Python needs a plain number or a condition: a restart refines it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from .source_location import CodeLocation

Namespace = dict[str, Any]  # of a module: its globals


@dataclass(frozen=True, eq=False)
class Plan:
    """How a module is run.

    Attributes:
        scalar_modules: modules whose `int()` keeps a number that `item()` reads; None where `item()` returns numbers of Python.
        size_reads: where `item()` reads an integer that is used as a size.
        whiles: where a `while` tests a value.
        size_modules: modules whose `int` and `float` keep the expression of a size.
        decides_comparisons: whether a comparison of sizes in the model's own code is a plain bool.
    """

    scalar_modules: tuple[Namespace, ...] | None = None
    size_reads: frozenset[CodeLocation] = frozenset()
    whiles: frozenset[CodeLocation] = frozenset()
    size_modules: tuple[Namespace, ...] = ()
    decides_comparisons: bool = False

    def keep_scalars(self, module: Namespace | None) -> Plan:
        """Record what Python does with the numbers that `item()` reads, and with those of `int()` in this module."""
        modules = _add(self.scalar_modules or (), module)
        return self if modules is self.scalar_modules else replace(self, scalar_modules=modules)

    def read_size(self, place: CodeLocation) -> Plan:
        """Read a size at this place."""
        return self if place in self.size_reads else replace(self, size_reads=self.size_reads | {place})

    def roll_while(self, place: CodeLocation) -> Plan:
        """Roll up the `while` at this place."""
        return self if place in self.whiles else replace(self, whiles=self.whiles | {place})

    def keep_sizes(self, module: Namespace) -> Plan:
        """Keep the expressions of sizes in `int` and `float` of this module."""
        modules = _add(self.size_modules, module)
        return self if modules is self.size_modules else replace(self, size_modules=modules)

    def decide_comparisons(self) -> Plan:
        """Decide comparisons of sizes at once."""
        return self if self.decides_comparisons else replace(self, decides_comparisons=True)

    def key(self) -> tuple[Any, ...]:
        """Return what decides the calls of a concrete run."""
        modules = None if self.scalar_modules is None else tuple(map(id, self.scalar_modules))
        return modules, self.size_reads, self.whiles


def _add(modules: tuple[Namespace, ...], module: Namespace | None) -> tuple[Namespace, ...]:
    return modules if module is None or _contains(modules, module) else (*modules, module)


def _contains(modules: Sequence[Namespace], module: Namespace) -> bool:
    return any(one is module for one in modules)
