"""The registry of all patches of torch and Python: each with its target, owner and reason. Patches are undone when a capture ends."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import torch

from ..errors import UnsupportedTorch

Factory = TypeVar("Factory", bound=Callable[..., Any])
ABSENT = object()  # marks an attribute that an object does not have itself
_PATCHES: dict[str, list[Patch]] = {}


@dataclass(frozen=True)
class Patch:
    """One change of torch or Python during a capture.

    Attributes:
        target: the dotted path of the attribute that is replaced; for a context manager, what it affects.
        owner: the feature that needs the patch. `apply_patches(owner)` applies all patches of a feature.
        reason: what torch does without the patch.
        factory: returns the replacement for the original, or a context manager. Its other parameters are passed by name.
        module: where the patch is registered.
        issue: the PyTorch issue that makes it necessary, if one is known.
        optional: whether the patch is skipped if its target does not exist.
        creates: whether the attribute may be missing; it is removed again at the end.
        is_context: whether the factory returns a context manager, such as a mode of torch.
        parameters: the names of the parameters of the factory.
    """

    target: str
    owner: str
    reason: str
    factory: Callable[..., Any]
    module: str
    issue: str = ""
    optional: bool = False
    creates: bool = False
    is_context: bool = False
    parameters: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", tuple(inspect.signature(self.factory).parameters))

    @property
    def name(self) -> str:
        """The last part of the target."""
        return self.target.rpartition(".")[2]

    def find_holder(self) -> Any:
        """Return the object whose attribute is replaced; None if the object or the attribute does not exist."""
        holder = find_object(self.target.rpartition(".")[0])
        return holder if holder is not None and (self.creates or hasattr(holder, self.name)) else None

    def current(self) -> Any:
        """Return the attribute as it is now, without calling descriptors; `ABSENT` if there is none."""
        holder = self.find_holder()
        return ABSENT if holder is None else _own_attribute(holder, self.name)


def register_patch(
    owner: str, *targets: str, reason: str, issue: str = "", optional: bool = False, creates: bool = False
) -> Callable[[Factory], Factory]:
    """Register the decorated `factory(original, ...)` for each of these dotted paths.

    The other parameters of the factory are keyword arguments of `apply_patches`, or `name` and `holder`: the attribute and its object.
    """

    def register(factory: Factory) -> Factory:
        for target in targets:
            _add(Patch(target, owner, reason, factory, factory.__module__, issue, optional, creates))
        return factory

    return register


def register_context(owner: str, *targets: str, reason: str, issue: str = "") -> Callable[[Factory], Factory]:
    """Register the decorated class or function, which returns a context manager. `targets` lists what it affects, for the table."""

    def register(factory: Factory) -> Factory:
        _add(Patch(", ".join(targets), owner, reason, factory, factory.__module__, issue, is_context=True))
        return factory

    return register


def _add(patch: Patch) -> None:
    _PATCHES.setdefault(patch.owner, []).append(patch)


def list_patches() -> tuple[Patch, ...]:
    """Return all patches of the modules that have been imported, in the order of registration."""
    return tuple(patch for patches in _PATCHES.values() for patch in patches)


@contextmanager
def apply_patches(*owners: str, **context: Any) -> Iterator[None]:
    """Apply all patches of these owners, and undo them in reverse order at the end, also after an error.

    Args:
        context: arguments of the factories, by name.

    Raises:
        UnsupportedTorch: a target does not exist, and is not optional.
    """
    patches = [patch for owner in owners for patch in _PATCHES[owner]]
    _check_targets(patches)
    with ExitStack() as stack:
        for patch in patches:
            _enter(stack, patch, context)
        yield


def _check_targets(patches: list[Patch]) -> None:
    missing = [patch for patch in patches if not patch.is_context and not patch.optional and patch.find_holder() is None]
    if missing:
        listed = "; ".join(f"{patch.target} ({patch.owner}: {patch.reason})" for patch in missing)
        raise UnsupportedTorch(f"torch {torch.__version__} has no {listed}. Install a version of torch that to_onnx is tested with.")


def _enter(stack: ExitStack, patch: Patch, context: Mapping[str, Any]) -> None:
    if patch.is_context:
        stack.enter_context(patch.factory(**_select_arguments(patch, context)))
        return
    holder, name = patch.find_holder(), patch.name
    if holder is None:  # it is optional
        return
    asked = _select_arguments(patch, {**context, "holder": holder, "name": name})
    replacement = patch.factory(getattr(holder, name, None), **asked)
    stack.callback(_restoring(holder, name))
    setattr(holder, name, replacement)


def _select_arguments(patch: Patch, context: Mapping[str, Any]) -> dict[str, Any]:
    return {name: context[name] for name in patch.parameters if name in context}


def find_object(path: str) -> Any:
    """Return the object at a dotted path, or None if it does not exist. Nothing is imported: a model cannot call what is not imported.

    A module takes precedence over an attribute of its package that has the same name.
    """
    if (found := sys.modules.get(path)) is not None:
        return found
    holder, _, name = path.rpartition(".")
    return getattr(find_object(holder), name, None) if holder else None


def _own_attribute(holder: Any, name: str) -> Any:
    """Return the attribute of the holder itself: for a class the raw descriptor, for an object also what a data descriptor stores."""
    if name in vars(holder):
        return vars(holder)[name]
    is_kept_by_class = inspect.isdatadescriptor(inspect.getattr_static(type(holder), name, None))
    return getattr(holder, name) if is_kept_by_class else ABSENT


def _restoring(holder: Any, name: str) -> Callable[[], None]:
    own = _own_attribute(holder, name)
    return partial(delattr, holder, name) if own is ABSENT else partial(setattr, holder, name, own)


def table() -> str:
    """Return all patches as a Markdown table with target, owner, module and reason."""
    rows = [(f"`{patch.target}`", patch.owner, f"`{patch.module}`", _reason(patch)) for patch in list_patches()]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [("target", "owner", "module", "reason"), ("---",) * 4, *rows])


def _reason(patch: Patch) -> str:
    return f"{patch.reason} ({patch.issue})" if patch.issue else patch.reason
