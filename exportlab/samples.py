"""The arguments of calls, and the one grammar in which they are given, to functions and to commands alike.

A call is written as a tuple of positional arguments, a pair `(args, kwargs)`, a dict of keyword arguments, one tensor, or a `Sample`.
Several calls are a list of these. A file of one's own says them behind its module: `(module, args)`, `(module, args, kwargs)` or
`(module, [call, call, …])`.

A tuple and a dict whose keys are names, and nothing else, are a pair. Where `forward` takes two such arguments instead, that is refused,
and `Sample((a, b))` says it.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy
from torch.utils import _pytree as pytree

from .checks import kind_of, must_be, must_end
from .target import A_SAMPLE, FORMS

_NOT_BEGUN = "{}, whose __init__ does not call super().__init__()"


class NotDeclared(TypeError):
    """What a function of the user's own returned is none of the forms; the message says what it is, and what it must be."""


@dataclass(frozen=True)
class Sample:
    """The arguments of one call.

    Raises:
        TypeError: `args` is no tuple, or `kwargs` no mapping of names. ValueError: they have no end.
    """

    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        must_be(tuple, args=self.args)
        must_be(Mapping, kwargs=self.kwargs)
        if not all(isinstance(name, str) for name in self.kwargs):
            raise TypeError(f"kwargs must have names as keys, not {', '.join(kind_of(name) for name in self.kwargs)}")
        must_end(arguments=(self.args, dict(self.kwargs)))

    @classmethod
    def of(cls, inputs: Inputs) -> Sample:
        """Return `inputs` as a sample: a tuple of arguments, `(args, kwargs)`, a dict of keyword arguments, a tensor, or a sample.

        Raises:
            TypeError: `inputs` is none of these.
        """
        if isinstance(inputs, Sample):
            return inputs
        if is_pair(inputs):
            return cls(*inputs)
        if isinstance(inputs, tuple):
            return cls(inputs)
        if isinstance(inputs, dict) and _holds_names(inputs):
            return cls((), inputs)
        if isinstance(inputs, torch.Tensor):
            return cls((inputs,))
        raise TypeError(f"a sample is {A_SAMPLE}, not {kind_of(inputs)}")

    def leaves(self) -> list[Any]:
        """Return everything in the containers of its arguments, positional ones first."""
        return pytree.tree_leaves((self.args, dict(self.kwargs)))


Inputs = Sample | tuple[Any, ...] | dict[str, Any] | torch.Tensor  # what `Sample.of` takes
Samples = Sequence[Any] | Inputs  # what `samples_of` takes: several in a list, or one
Declaration = tuple[nn.Module, Samples] | tuple[nn.Module, tuple[Any, ...], dict[str, Any]]


def samples_of(given: Samples, module: nn.Module) -> list[Sample]:
    """Return the samples of a list, or the one that is given.

    Raises:
        TypeError: one is none, or could be meant in another way. ValueError: the list is empty.
    """
    found = [_read(one, module) for one in _several(given, module)]
    if not found:
        raise ValueError("at least one sample is needed: the arguments that the model is exported with")
    return found


def parse_declaration(returned: Any, name: str) -> tuple[nn.Module, list[Sample]]:
    """Return module and samples of what a function of the user's own returned.

    Raises:
        NotDeclared: it returned something else.
    """
    if not isinstance(returned, tuple) or len(returned) not in (2, 3):
        raise NotDeclared(f"{name} must return {FORMS}; it returned {kind_of(returned)}")
    module, given, *kwargs = returned
    if not isinstance(module, nn.Module):
        raise NotDeclared(f"{name} must return {FORMS}; its module is {kind_of(module)}")
    if not _begun(module):
        raise NotDeclared(f"{name} returned {_NOT_BEGUN.format(kind_of(module))}")
    if kwargs and not (isinstance(given, tuple) and _holds_names(kwargs[0])):
        raise NotDeclared(f"{name} must return {FORMS}; its args are {kind_of(given)}, its kwargs {kind_of(kwargs[0])}")
    try:
        return module, _behind(module, given, *kwargs)
    except (TypeError, ValueError) as error:
        raise NotDeclared(f"{name} must return {FORMS}; of what it returned behind the module: {error}") from error


def check_module(module: Any) -> None:
    """Refuse what is no module, or has not been made to the end.

    Raises:
        TypeError: so it is. ValueError: some of its weights have no shape yet, which the first call gives them.
    """
    must_be(nn.Module, module=module)
    if not _begun(module):
        raise TypeError(f"module is {_NOT_BEGUN.format(kind_of(module))}")
    if lazy := [name for name, weight in module.named_parameters() if is_lazy(weight)]:
        raise ValueError(f"module has lazy weights, without a shape yet ({', '.join(lazy)}): call it once before")


def _begun(module: nn.Module) -> bool:
    return "_modules" in vars(module)


def bound(module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return all arguments by the names that `module.forward` gives them.

    Raises:
        TypeError: `forward` does not take them.
    """
    return dict(inspect.signature(module.forward).bind(*args, **kwargs).arguments)


def is_pair(inputs: Any) -> bool:
    """Whether these are read as `(args, kwargs)`."""
    return type(inputs) is tuple and len(inputs) == 2 and isinstance(inputs[0], tuple) and _holds_names(inputs[1])


def format_leaf_path(path: tuple[Any, ...]) -> str:
    """Return the path of a leaf as one writes it: `x`, `past[0]`."""
    first, rest = path[0], path[1:]
    return str(getattr(first, "key", first)) + pytree.keystr(tuple(rest))


def _behind(module: nn.Module, given: Any, *kwargs: Any) -> list[Sample]:
    """The samples behind a module that is returned: there a tuple is always one call."""
    if kwargs:
        return [Sample(given, *kwargs)]
    return samples_of(given if isinstance(given, list) else [given], module)


def _several(given: Samples, module: nn.Module) -> list[Any]:
    """Tell several samples from one: those in a tuple are several only where nothing else can be meant."""
    if isinstance(given, list):
        return given
    if not isinstance(given, tuple) or is_pair(given) or not all(isinstance(part, (tuple, dict, Sample)) for part in given):
        return [given]
    if any(isinstance(part, Sample) for part in given) or not _takes(module, given, {}):
        return list(given)
    raise TypeError("a tuple of tuples may be one call or several: write [(x,), (y,)] for several, Sample((a, b)) for one of two tuples")


def _read(one: Any, module: nn.Module) -> Sample:
    sample = Sample.of(one)
    if is_pair(one) and not _takes(module, sample.args, sample.kwargs) and _takes(module, one, {}):
        raise TypeError(
            "a tuple and a dict are read as (args, kwargs), which forward does not take: write Sample((a, b)) for two arguments"
        )
    return sample


def _takes(module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    try:
        bound(module, args, kwargs)
    except TypeError:
        return False
    except ValueError:  # it has no signature that can be read
        return True
    return True


def _holds_names(value: Any) -> bool:
    """Whether keyword arguments can be given so."""
    return isinstance(value, dict) and all(isinstance(key, str) for key in value)
