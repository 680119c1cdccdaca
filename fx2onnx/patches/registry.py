"""The registry of what a capture replaces in torch and Python: each patch with its target, owner and reason, and how all are undone."""

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
ABSENT = object()  # in the place of an attribute that its holder does not have itself
_PATCHES: dict[str, list[Patch]] = {}


@dataclass(frozen=True)
class Patch:
    """One thing that changes while a capture runs.

    Attributes:
        target: the dotted path of the attribute that is replaced, or of what a context manager acts on.
        owner: the feature that needs it. `patched(owner)` enters all patches of a feature.
        reason: what torch does otherwise.
        factory: returns the replacement, given the original and what it asks for by name; or a context manager, given the latter alone.
        module: where the patch is registered.
        issue: the issue of torch that would make it unnecessary, where one is known.
        optional: whether it is left out where the target does not exist.
        creates: whether the attribute may be missing before.
        is_context: whether the factory returns a context manager, such as a mode of torch.
        asks: the names of the parameters of the factory.
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
    asks: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "asks", tuple(inspect.signature(self.factory).parameters))

    @property
    def name(self) -> str:
        """The last part of the target."""
        return self.target.rpartition(".")[2]

    def find_holder(self) -> Any:
        """Return the object whose attribute is replaced; None where it, or the attribute, does not exist."""
        holder = find_object(self.target.rpartition(".")[0])
        return holder if holder is not None and (self.creates or hasattr(holder, self.name)) else None

    def current(self) -> Any:
        """Return what the holder itself has under the name at this moment, a descriptor as such."""
        holder = self.find_holder()
        return ABSENT if holder is None else _own_attribute(holder, self.name)


def register_patch(
    owner: str, *targets: str, reason: str, issue: str = "", optional: bool = False, creates: bool = False
) -> Callable[[Factory], Factory]:
    """Register the decorated `factory(original, ...)` for each of these dotted paths.

    Further parameters of the factory are looked up by name in what `patched` is given; `name` and `holder` are those of the target.
    """

    def register(factory: Factory) -> Factory:
        for target in targets:
            _add(Patch(target, owner, reason, factory, factory.__module__, issue, optional, creates))
        return factory

    return register


def register_context(owner: str, *targets: str, reason: str, issue: str = "") -> Callable[[Factory], Factory]:
    """Register the decorated class or function, which returns a context manager, for what it acts on. Parameters as of a patch."""

    def register(factory: Factory) -> Factory:
        _add(Patch(", ".join(targets), owner, reason, factory, factory.__module__, issue, is_context=True))
        return factory

    return register


def _add(patch: Patch) -> None:
    _PATCHES.setdefault(patch.owner, []).append(patch)


def registered() -> tuple[Patch, ...]:
    """Return all patches of the modules that have been imported, in the order of registration."""
    return tuple(patch for patches in _PATCHES.values() for patch in patches)


@contextmanager
def patched(*owners: str, **context: Any) -> Iterator[None]:
    """Enter all patches of these owners; undo them in reverse order at the end, also after an error.

    Args:
        context: what the factories ask for by name.

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
        stack.enter_context(patch.factory(**_asked(patch, context)))
        return
    holder, name = patch.find_holder(), patch.name
    if holder is None:  # it is optional
        return
    asked = _asked(patch, {**context, "holder": holder, "name": name})
    replacement = patch.factory(getattr(holder, name, None), **asked)
    stack.callback(_restoring(holder, name))
    setattr(holder, name, replacement)


def _asked(patch: Patch, context: Mapping[str, Any]) -> dict[str, Any]:
    return {name: context[name] for name in patch.asks if name in context}


def find_object(path: str) -> Any:
    """Return the object at a dotted path of an imported module; None where there is none. Nothing is imported.

    What nobody has imported, no model calls. A module comes before an attribute of its package that has the same name.
    """
    if (found := sys.modules.get(path)) is not None:
        return found
    holder, _, name = path.rpartition(".")
    return getattr(find_object(holder), name, None) if holder else None


def _own_attribute(holder: Any, name: str) -> Any:
    """Return what stands in the holder itself: of a class the descriptor; of an object what a descriptor of its class keeps, too."""
    if name in vars(holder):
        return vars(holder)[name]
    is_kept_by_class = inspect.isdatadescriptor(inspect.getattr_static(type(holder), name, None))
    return getattr(holder, name) if is_kept_by_class else ABSENT


def _restoring(holder: Any, name: str) -> Callable[[], None]:
    own = _own_attribute(holder, name)
    return partial(delattr, holder, name) if own is ABSENT else partial(setattr, holder, name, own)


def table() -> str:
    """Return all patches as a Markdown table: what is replaced, which feature needs it, where that is, and why."""
    rows = [(f"`{patch.target}`", patch.owner, f"`{patch.module}`", _reason(patch)) for patch in registered()]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [("target", "owner", "module", "reason"), ("---",) * 4, *rows])


def _reason(patch: Patch) -> str:
    return f"{patch.reason} ({patch.issue})" if patch.issue else patch.reason
