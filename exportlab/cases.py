"""A scenario declared once: its module, its inputs, its sizes; and those that installed packages register.

A package registers its cases under the entry-point group `exportlab.cases`, by a function that takes nothing and returns a list of
them. In pyproject.toml:

    [project.entry-points."exportlab.cases"]
    mine = "mine.cases:all_of_them"
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from .entry_points import listed
from .specs import Maker

GROUP = "exportlab.cases"
DynamicShapes = dict[str, Any] | tuple[Any, ...] | list[Any] | None  # the axes that move, of each input, as torch.onnx.export takes them
Declaration = tuple[nn.Module, tuple[Any, ...]] | tuple[nn.Module, tuple[Any, ...], dict[str, Any]]


@dataclass(frozen=True)
class Sample:
    """The arguments of one call."""

    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, inputs: Inputs) -> Sample:
        """Return `inputs` as a sample: a sample, a tuple of positional or a dict of keyword arguments, or one tensor.

        Raises:
            TypeError: `inputs` is none of these.
        """
        if isinstance(inputs, Sample):
            return inputs
        if isinstance(inputs, tuple):
            return cls(inputs)
        if isinstance(inputs, dict):
            return cls((), inputs)
        if isinstance(inputs, torch.Tensor):
            return cls((inputs,))
        raise TypeError(f"a sample is a tuple of arguments, a dict of keyword arguments or a Sample, not a {type(inputs).__name__}")

    def leaves(self) -> list[Any]:
        """Return everything in the containers of its arguments, positional ones first."""
        return pytree.tree_leaves((self.args, dict(self.kwargs)))


Inputs = Sample | tuple[Any, ...] | dict[str, Any] | torch.Tensor  # what `Sample.of` takes


@dataclass(frozen=True, eq=False)
class Built:
    """What one call of a case's factory gives: the module, a sample for each row of sizes, and the axes that move."""

    module: nn.Module
    samples: list[Sample]
    dynamic_shapes: DynamicShapes


@dataclass(frozen=True, eq=False)
class Case:
    """One scenario. The first value of each dimension is the size at export; the others are only ever used to verify."""

    name: str
    factory: Callable[[], Declaration]
    dims: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    topics: tuple[str, ...] = ()
    training: bool = False

    @property
    def doc(self) -> str:
        """What the case asks, in one line."""
        return (self.factory.__doc__ or "").strip().split("\n")[0]

    @property
    def family(self) -> str:
        """The file it stands in."""
        return self.factory.__module__.rpartition(".")[2]

    def sizes(self) -> list[dict[str, int]]:
        """Return the sizes to run at, the one of the export first: row i holds the i-th value of every dimension, or its last."""
        rows = max(map(len, self.dims.values()), default=1)
        return [{name: values[min(i, len(values) - 1)] for name, values in self.dims.items()} for i in range(rows)]

    def build(self) -> Built:
        """Return module, samples and dynamic shapes from one call of the factory, which may be costly."""
        module, args, kwargs = self._declared()
        return Built(module.train(self.training), self._samples(args, kwargs), self._dynamic_shapes(module, args, kwargs))

    def module(self) -> nn.Module:
        """Return a new module, always with the same weights, in evaluation mode unless the case is about training."""
        return self._declared()[0].train(self.training)

    def samples(self) -> list[Sample]:
        """Return one sample for each row of `sizes()`, always with the same values."""
        return self._samples(*self._declared()[1:])

    def dynamic_shapes(self) -> DynamicShapes:
        """Return the named axes of the inputs, as `torch.onnx.export(dynamic_shapes=…)` takes them; None when no dimension moves."""
        return self._dynamic_shapes(*self._declared())

    def _samples(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Sample]:
        return [Sample(*Maker(sizes, seed).make((args, kwargs))) for seed, sizes in enumerate(self.sizes())]

    def _dynamic_shapes(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> DynamicShapes:
        if not self.dims:
            return None
        maker = Maker(self.sizes()[0], 0)
        made_args, made_kwargs = maker.make((args, kwargs))
        if not made_kwargs:
            return tuple(maker.dynamic_shapes(made_args))
        return maker.dynamic_shapes(bound(module, made_args, made_kwargs))

    def _declared(self) -> tuple[nn.Module, tuple[Any, ...], dict[str, Any]]:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            declared = self.factory()
        return checked(declared, self.name)


def case(
    dims: Mapping[str, tuple[int, ...]] | None = None, topics: tuple[str, ...] = (), training: bool = False
) -> Callable[[Callable[[], Declaration]], Case]:
    """Declare a case: decorates a function that returns `(module, args)` or `(module, args, kwargs)`.

    Args:
        dims: the sizes of each named dimension, the one used to export first. Sizes 0 and 1 belong among the others
            wherever eager takes them.
        topics: words by which cases are found.
        training: whether the module is exported in training mode.

    Raises:
        ValueError: a dimension has no size.
    """
    for name, values in (dims or {}).items():
        if not values:
            raise ValueError(f"dimension {name!r} needs at least one size, the one to export at")

    def declare(factory: Callable[[], Declaration]) -> Case:
        return Case(factory.__name__, factory, dict(dims or {}), topics, training)

    return declare


@cache
def registered() -> Mapping[str, Case]:
    """Return by name the cases that installed packages register, those of the zoo among them.

    Raises:
        BrokenEntryPoint: what a package registers cannot be used.
    """
    return listed(GROUP, Case)


def registered_case(name: str) -> Case:
    """Return the registered case of this name.

    Raises:
        KeyError: there is none.
    """
    if name not in registered():
        raise KeyError(f"no case {name!r}: exportlab.cases.registered() lists them")
    return registered()[name]


def bound(module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return all arguments by the names that `module.forward` gives them.

    Raises:
        TypeError: `forward` does not take them.
    """
    return dict(inspect.signature(module.forward).bind(*args, **kwargs).arguments)


def checked(declared: Any, name: str) -> tuple[nn.Module, tuple[Any, ...], dict[str, Any]]:
    """Return what a factory returned, as module, args and kwargs.

    Raises:
        TypeError: it returned something else.
    """
    if not isinstance(declared, tuple) or len(declared) not in (2, 3):
        raise TypeError(f"{name} must return (module, args) or (module, args, kwargs), it returned a {type(declared).__name__}")
    module, args, kwargs = (*declared, {})[:3]
    for what, value, wanted in (("module", module, nn.Module), ("args", args, tuple), ("kwargs", kwargs, dict)):
        if not isinstance(value, wanted):
            raise TypeError(f"{name} must return its {what} as a {wanted.__name__}, not as a {type(value).__name__}")
    return module, args, kwargs
