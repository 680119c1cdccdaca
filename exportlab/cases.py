"""A scenario declared once: its module, its inputs, its sizes; and those that installed packages register.

A package registers its cases under the entry-point group `exportlab.cases`, by a function that takes nothing and returns a list of
them. In pyproject.toml:

    [project.entry-points."exportlab.cases"]
    mine = "mine.cases:all_of_them"

Under `exportlab.atlas` stand families that are run only where they are named: many cases, of a library that may not be installed.
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
ATLAS = "exportlab.atlas"  # each entry point is a family, and its cases are named `family.model`
OF_USER = "exportlab_user_"  # what the module of a file of the user's own is called, before the name of the file


@dataclass(frozen=True, eq=False)
class Built:
    """What one call of a case's factory gives: the module, a sample for each row of sizes, and the axes that move."""

    module: nn.Module
    samples: list[Sample]
    dynamic_shapes: DynamicShapes


@dataclass(frozen=True, eq=False)
class Case:
    """One scenario. The first value of each dimension is the size at export; the others are only ever used to verify.

    Attributes:
        samples_move: whether the sizes of the samples that its factory gives differ, which a case without `dims` cannot say itself.
    """

    name: str
    factory: Callable[[], Declaration]
    dims: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    topics: tuple[str, ...] = ()
    training: bool = False
    samples_move: bool = False

    @property
    def moves(self) -> bool:
        """Whether there is anything to export it with dynamic axes for."""
        return bool(self.dims) or self.samples_move

    @property
    def doc(self) -> str:
        """What the case asks, in one line."""
        return (self.factory.__doc__ or "").strip().split("\n")[0]

    @property
    def family(self) -> str:
        """The file it stands in."""
        return self.factory.__module__.rpartition(".")[2].removeprefix(OF_USER)

    def sizes(self) -> list[dict[str, int]]:
        """Return the sizes to run at, the one of the export first: row i holds the i-th value of every dimension, or its last."""
        rows = max(map(len, self.dims.values()), default=1)
        return [{name: values[min(i, len(values) - 1)] for name, values in self.dims.items()} for i in range(rows)]

    def build(self) -> Built:
        """Return module, samples and dynamic shapes from one call of the factory, which may be costly."""
        made = self.made()
        return replace(made, module=made.module.train(self.training))

    def made(self) -> Built:
        """Return the same, the module in the mode that the factory left it in."""
        module, given = self._declared()
        samples = self._samples(given)
        return Built(module, samples, self._dynamic_shapes(module, given, samples))

    def module(self) -> nn.Module:
        """Return a new module, always with the same weights, in evaluation mode unless the case is about training."""
        return self._declared()[0].train(self.training)

    def samples(self) -> list[Sample]:
        """Return the samples that the factory gives, or one for each row of `sizes()`, always with the same values."""
        return self._samples(self._declared()[1])

    def dynamic_shapes(self) -> DynamicShapes:
        """Return the axes that move, as `torch.onnx.export(dynamic_shapes=…)` takes them; None when none does.

        They are those that the case names; where it names none, those whose sizes differ between the samples that it gives.
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
            raise NotDeclared(f"{self.name} returns several samples and has dims too: these make the samples, so it must return one")
        return module, given


def case(
    dims: Mapping[str, tuple[int, ...]] | None = None, topics: tuple[str, ...] = (), training: bool = False
) -> Callable[[Callable[[], Declaration]], Case]:
    """Declare a case: decorates a function that returns `(module, args)`, `(module, args, kwargs)` or, without `dims`, several samples.

    Args:
        dims: the sizes of each named dimension, the one used to export first. Sizes 0 and 1 belong among the others
            wherever eager takes them.
        topics: words by which cases are found.
        training: whether the module is exported in training mode.

    Raises:
        TypeError: an argument is of another kind. ValueError: a dimension has no size, or one less than 0.
    """
    if isinstance(dims, FunctionType):
        raise TypeError(f"@case stands bare on {dims.__name__}: write @case(), or @case(dims={{'batch': (4, 7, 1)}}) for sizes that move")
    must_be(Mapping, type(None), dims=dims)
    must_be_names(topics=topics)
    must_be(bool, training=training)
    for name, values in (dims or {}).items():
        must_be(str, **{"the name of a dimension": name})
        must_be(Sequence, **{f"dims[{name!r}]": values})
        must_be_whole(0, **{f"dims[{name!r}][{i}]": size for i, size in enumerate(values)})
        if not values:
            raise ValueError(f"dimension {name!r} needs at least one size, the one to export at")

    def declare(factory: Callable[[], Declaration]) -> Case:
        if not callable(factory) or not hasattr(factory, "__name__"):
            raise TypeError(f"@case decorates a function, not {kind_of(factory)}")
        return Case(factory.__name__, factory, dict(dims or {}), topics, training)

    return declare


@cache
def registered() -> Mapping[str, Case]:
    """Return by name the cases that installed packages register, those of the zoo among them.

    Raises:
        BrokenEntryPoint: what a package registers cannot be used.
    """
    return collect_by_name(GROUP, Case)


class NotInstalled(ImportError):
    """The library whose models a family of the atlas lists is not there; the message says how to get it."""


def atlas_families() -> tuple[str, ...]:
    """Return the names of the families of the atlas, none of them imported."""
    return tuple(sorted(entry.name for entry in entry_points(group=ATLAS)))


@cache
def atlas(family: str) -> Mapping[str, Case]:
    """Return by name the cases of one family of the atlas.

    Raises:
        KeyError: there is no such family. NotInstalled: its library is not there. BrokenEntryPoint: it cannot be imported.
    """
    if family not in atlas_families():
        raise KeyError(f"the atlas has no family {family!r}; there are {', '.join(atlas_families()) or 'none'}")
    function = next(function for entry, function in load_entry_points(ATLAS) if entry.name == family)
    return {case.name: case for case in function()}


def registered_case(name: str) -> Case:
    """Return the registered case of this name, those of the atlas among them.

    Raises:
        KeyError: there is none. TypeError: it is no name. NotInstalled: it is of the atlas, and its library is not there.
    """
    must_be(str, name=name)
    family, dot, _ = name.partition(".")
    cases = atlas(family) if dot and family in atlas_families() else registered()
    if name not in cases:
        raise KeyError(f"no case {name!r}: exportlab.cases.registered() lists them")
    return cases[name]
