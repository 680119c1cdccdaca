"""Parse the arguments of calls. Functions and commands accept the same forms.

A call is a tuple of positional arguments, a pair `(args, kwargs)`, a dict of keyword arguments, one tensor, or a `Sample`. Several calls
are a list of these. A function in a user's file returns them after its module: `(module, args)`, `(module, args, kwargs)` or
`(module, [call, call, …])`.

A tuple followed by a dict with string keys is always a pair. If `forward` accepts these two as positional arguments instead, an error is
raised: write `Sample((a, b))`.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from fx2onnx.compat import trees as pytree

from .checks import kind_of, must_be, must_end
from .target import A_SAMPLE, FORMS

_NOT_BEGUN = "{}, whose __init__ does not call super().__init__()"


class NotDeclared(TypeError):
    """A user's function returned something other than the accepted forms; the message contains what it returned and what is accepted."""


@dataclass(frozen=True)
class Sample:
    """The arguments of one call.

    Raises:
        TypeError: `args` is not a tuple, or `kwargs` is not a mapping with string keys.
        ValueError: the arguments are nested too deeply.
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
        """Convert a tuple of arguments, a pair `(args, kwargs)`, a dict of keyword arguments, a tensor or a sample to a sample.

        Raises:
            TypeError: `inputs` has none of these forms.
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
        """Return the leaves of all arguments, positional ones first."""
        return pytree.tree_leaves((self.args, dict(self.kwargs)))


Inputs = Sample | tuple[Any, ...] | dict[str, Any] | torch.Tensor  # accepted by `Sample.of`
Samples = Sequence[Any] | Inputs  # accepted by `samples_of`: a list of several, or one
Declaration = tuple[nn.Module, Samples] | tuple[nn.Module, tuple[Any, ...], dict[str, Any]]


def samples_of(given: Samples, module: nn.Module) -> list[Sample]:
    """Return the samples of a list, or a list with the single sample given.

    Raises:
        TypeError: an item is not a sample, or is ambiguous.
        ValueError: the list is empty.
    """
    found = [_read(one, module) for one in _several(given, module)]
    if not found:
        raise ValueError("at least one sample is needed: the arguments for the export")
    return found


def parse_declaration(returned: Any, name: str) -> tuple[nn.Module, list[Sample]]:
    """Return the module and samples from the return value of a user's function.

    Raises:
        NotDeclared: the return value has another form.
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
        raise NotDeclared(f"{name} must return {FORMS}; its samples are not valid: {error}") from error


def check_module(module: Any) -> None:
    """Check that this is a fully initialised module.

    Raises:
        TypeError: it is not a module, or its `__init__` doesn't call `super().__init__()`.
        ValueError: it has lazy weights, which have no shape before the first call.
    """
    must_be(nn.Module, module=module)
    if not _begun(module):
        raise TypeError(f"module is {_NOT_BEGUN.format(kind_of(module))}")
    if lazy := [name for name, weight in module.named_parameters() if is_lazy(weight)]:
        raise ValueError(f"module has lazy weights, which have no shape yet ({', '.join(lazy)}): call it once before the export")


def _begun(module: nn.Module) -> bool:
    return "_modules" in vars(module)


def bound(module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return all arguments by their parameter names in `module.forward`.

    Raises:
        TypeError: `forward` does not accept the arguments.
    """
    return dict(inspect.signature(module.forward).bind(*args, **kwargs).arguments)


def is_pair(inputs: Any) -> bool:
    """Whether these inputs have the form `(args, kwargs)`."""
    return type(inputs) is tuple and len(inputs) == 2 and isinstance(inputs[0], tuple) and _holds_names(inputs[1])


def format_leaf_path(path: tuple[Any, ...]) -> str:
    """Format the path of a leaf as in Python: `x`, `past[0]`."""
    first, rest = path[0], path[1:]
    return str(getattr(first, "key", first)) + pytree.keystr(tuple(rest))


def _behind(module: nn.Module, given: Any, *kwargs: Any) -> list[Sample]:
    """Return the samples that follow a module in a return value, where a tuple is always one call."""
    if kwargs:
        return [Sample(given, *kwargs)]
    return samples_of(given if isinstance(given, list) else [given], module)


def _several(given: Samples, module: nn.Module) -> list[Any]:
    """Split several samples. A tuple counts as several only if this is the only possible reading."""
    if isinstance(given, list):
        return given
    if not isinstance(given, tuple) or is_pair(given) or not all(isinstance(part, (tuple, dict, Sample)) for part in given):
        return [given]
    if any(isinstance(part, Sample) for part in given) or not _takes(module, given, {}):
        return list(given)
    raise TypeError("a tuple of tuples is ambiguous: write [(x,), (y,)] for several calls, or Sample((a, b)) for one call with two tuples")


def _read(one: Any, module: nn.Module) -> Sample:
    sample = Sample.of(one)
    if is_pair(one) and not _takes(module, sample.args, sample.kwargs) and _takes(module, one, {}):
        raise TypeError(
            "a tuple and a dict are read as (args, kwargs), but forward doesn't accept that: write Sample((a, b)) for two arguments"
        )
    return sample


def _takes(module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    try:
        bound(module, args, kwargs)
    except TypeError:
        return False
    except ValueError:  # the signature cannot be read
        return True
    return True


def _holds_names(value: Any) -> bool:
    """Whether the value is a dict with string keys."""
    return isinstance(value, dict) and all(isinstance(key, str) for key in value)
