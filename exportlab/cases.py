"""Declare a test case once: its module, inputs and sizes. Also collect the cases that installed packages register.

A package registers its cases in the entry-point group `exportlab.cases`, with a function that has no arguments and returns a list of
cases. In pyproject.toml:

    [project.entry-points."exportlab.cases"]
    mine = "mine.cases:all_of_them"

The group `exportlab.atlas` contains families that run only on request. A family has many cases, from a library that may not be installed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import entry_points
from types import FunctionType

import torch
from torch import nn

from .checks import kind_of, must_be, must_be_names, must_be_whole
from .entry_points import collect_by_name, load_entry_points
from .infer_dynamic_shapes import DynamicShapes, dynamic_shapes_of, sizes_of
from .samples import Declaration, Inputs, NotDeclared, Sample, bound, parse_declaration
from .specs import Maker

__all__ = [
    "Built", "Case", "Declaration", "DynamicShapes", "Inputs", "NotInstalled", "Sample", "atlas", "atlas_families", "bound", "case",
    "registered", "registered_case",
]  # fmt: skip
GROUP = "exportlab.cases"
ATLAS = "exportlab.atlas"  # each entry point is a family whose cases are named `family.model`
OF_USER = "exportlab_user_"  # prefix for the module name of a user's file


@dataclass(frozen=True, eq=False)
class Built:
    """The result of one call of a case's factory: the module, a sample for each row of sizes, and the dynamic axes."""

    module: nn.Module
    samples: list[Sample]
    dynamic_shapes: DynamicShapes


@dataclass(frozen=True, eq=False)
class Case:
    """A test case. The first value of each dimension is the size at export; the other values are used only for verification.

    Attributes:
        samples_move: whether the factory's samples differ in size. Only the caller can know this for a case without `dims`.
    """

    name: str
    factory: Callable[[], Declaration]
    dims: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    topics: tuple[str, ...] = ()
    training: bool = False
    samples_move: bool = False

    @property
    def moves(self) -> bool:
        """Whether the case can be exported with dynamic axes."""
        return bool(self.dims) or self.samples_move

    @property
    def doc(self) -> str:
        """The first line of the factory's docstring."""
        return (self.factory.__doc__ or "").strip().split("\n")[0]

    @property
    def family(self) -> str:
        """The name of the file that declares the case."""
        return self.factory.__module__.rpartition(".")[2].removeprefix(OF_USER)

    def sizes(self) -> list[dict[str, int]]:
        """Return the sizes to run at, starting with the export's: row i holds the i-th value of each dimension, or its last value."""
        rows = max(map(len, self.dims.values()), default=1)
        return [{name: values[min(i, len(values) - 1)] for name, values in self.dims.items()} for i in range(rows)]

    def build(self) -> Built:
        """Call the factory once, since it may be slow, and return the module, samples and dynamic shapes."""
        made = self.made()
        return replace(made, module=made.module.train(self.training))

    def made(self) -> Built:
        """Do the same as `build`, but keep the module in the mode (training or evaluation) that the factory set."""
        module, given = self._declared()
        samples = self._samples(given)
        return Built(module, samples, self._dynamic_shapes(module, given, samples))

    def module(self) -> nn.Module:
        """Return a new module with reproducible weights, in evaluation mode unless the case is about training."""
        return self._declared()[0].train(self.training)

    def samples(self) -> list[Sample]:
        """Return the factory's samples, or one sample for each row of `sizes()`; the values are reproducible."""
        return self._samples(self._declared()[1])

    def dynamic_shapes(self) -> DynamicShapes:
        """Return the dynamic axes in the form of `torch.onnx.export(dynamic_shapes=…)`, or None if there are no dynamic axes.

        Without `dims`, an axis is dynamic if its size differs between the factory's samples.
        """
        module, given = self._declared()
        return self._dynamic_shapes(module, given, self._samples(given))

    def _samples(self, given: list[Sample]) -> list[Sample]:
        rows = enumerate(self.sizes())
        made = [(sample, Maker(sizes, seed)) for seed, sizes in rows for sample in given]
        return [Sample(*maker.make((sample.args, dict(sample.kwargs)))) for sample, maker in made]

    def _dynamic_shapes(self, module: nn.Module, given: list[Sample], samples: list[Sample]) -> DynamicShapes:
        if not self.dims:
            return dynamic_shapes_of(module, samples[0], sizes_of(module, samples).moving)
        maker = Maker(self.sizes()[0], 0)
        args, kwargs = maker.make((given[0].args, dict(given[0].kwargs)))
        return maker.dynamic_shapes(bound(module, args, kwargs)) if kwargs else tuple(maker.dynamic_shapes(args))

    def _declared(self) -> tuple[nn.Module, list[Sample]]:
        with torch.random.fork_rng(devices=range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()):
            torch.manual_seed(0)
            returned = self.factory()
        module, given = parse_declaration(returned, self.name)
        if self.dims and len(given) > 1:
            raise NotDeclared(f"{self.name} returns several samples and also declares dims. With dims, return exactly one sample")
        return module, given


def case(
    dims: Mapping[str, tuple[int, ...]] | None = None, topics: tuple[str, ...] = (), training: bool = False
) -> Callable[[Callable[[], Declaration]], Case]:
    """Decorate a function that returns `(module, args)`, `(module, args, kwargs)` or, without `dims`, several samples.

    Args:
        dims: the sizes of each named dimension, starting with the size used for the export. Include 0 and 1 among the other sizes
            if eager PyTorch accepts them.
        topics: keywords for finding the case.
        training: whether to export the module in training mode.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: a dimension has no sizes, or a negative size.
    """
    if isinstance(dims, FunctionType):
        raise TypeError(
            f"@case on {dims.__name__} needs parentheses: write @case(), or @case(dims={{'batch': (4, 7, 1)}}) for dynamic dimensions"
        )
    must_be(Mapping, type(None), dims=dims)
    must_be_names(topics=topics)
    must_be(bool, training=training)
    for name, values in (dims or {}).items():
        must_be(str, **{"the name of a dimension": name})
        must_be(Sequence, **{f"dims[{name!r}]": values})
        must_be_whole(0, **{f"dims[{name!r}][{i}]": size for i, size in enumerate(values)})
        if not values:
            raise ValueError(f"dimension {name!r} needs at least one size, the size to export at")

    def declare(factory: Callable[[], Declaration]) -> Case:
        if not callable(factory) or not hasattr(factory, "__name__"):
            raise TypeError(f"@case decorates a function, not {kind_of(factory)}")
        return Case(factory.__name__, factory, dict(dims or {}), topics, training)

    return declare


@cache
def registered() -> Mapping[str, Case]:
    """Return the cases that installed packages register, by name. The project's own test suite is included.

    Raises:
        BrokenEntryPoint: a package's entry point cannot be used.
    """
    return collect_by_name(GROUP, Case)


class NotInstalled(ImportError):
    """The library behind a family of the atlas is not installed; the message explains how to install it."""


def atlas_families() -> tuple[str, ...]:
    """Return the names of the atlas's families without importing them."""
    return tuple(sorted(entry.name for entry in entry_points(group=ATLAS)))


@cache
def atlas(family: str) -> Mapping[str, Case]:
    """Return the cases of one family of the atlas, by name.

    Raises:
        KeyError: the family does not exist.
        NotInstalled: the family's library is not installed.
        BrokenEntryPoint: the family cannot be imported.
    """
    if family not in atlas_families():
        raise KeyError(f"the atlas has no family {family!r}; its families are: {', '.join(atlas_families()) or 'none'}")
    function = next(function for entry, function in load_entry_points(ATLAS) if entry.name == family)
    return {case.name: case for case in function()}


def registered_case(name: str) -> Case:
    """Return the registered case with this name, including cases of the atlas.

    Raises:
        KeyError: no such case exists.
        TypeError: `name` is not a string.
        NotInstalled: the case belongs to the atlas and its library is not installed.
    """
    must_be(str, name=name)
    family, dot, _ = name.partition(".")
    cases = atlas(family) if dot and family in atlas_families() else registered()
    if name not in cases:
        raise KeyError(f"no case {name!r}: exportlab.cases.registered() lists them")
    return cases[name]
