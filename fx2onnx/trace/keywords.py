"""Give the keywords that `forward` accepts through `**kwargs` their own parameters during the capture."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from keyword import iskeyword
from typing import Any

from torch import nn

from ..errors import CaptureError


@contextmanager
def keywords_named(module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], dynamic_shapes: Any) -> Iterator[Any]:
    """Give `forward` a parameter for each keyword that its `**kwargs` receives, and yield the matching `dynamic_shapes`.

    After tracing, torch.export refuses `dynamic_shapes` of a model with such keywords (pytorch#150371).

    Raises:
        CaptureError: If a keyword is not a valid parameter name.
    """
    rest, taken = _bind_var_keywords(module, args, kwargs) if dynamic_shapes else ("", {})
    if not taken:
        yield dynamic_shapes
        return
    if strange := _strange(taken):
        raise CaptureError(f"dynamic_shapes cannot name {strange} in **{rest}: rename the argument to a valid Python identifier.")
    own = vars(module).get("forward")
    module.forward = _add_parameters(module.forward, rest, taken)
    try:
        yield _spread(dynamic_shapes, rest, taken)
    finally:
        vars(module).pop("forward")
        if own is not None:
            module.forward = own


def name_keywords(module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], dynamic_shapes: Any) -> AbstractContextManager[Any]:
    """Return `keywords_named`, or a null context if a keyword is not an identifier, because traced runs need only the names."""
    _, taken = _bind_var_keywords(module, args, kwargs) if dynamic_shapes else ("", {})
    return nullcontext(dynamic_shapes) if _strange(taken) else keywords_named(module, args, kwargs, dynamic_shapes)


def _strange(names: Iterable[str]) -> list[str]:
    """The names that a parameter cannot have."""
    return [name for name in names if not name.isidentifier() or iskeyword(name)]


def _bind_var_keywords(module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the name of the `**` parameter, and the arguments that it receives."""
    signature = inspect.signature(module.forward)
    rest = next((p.name for p in signature.parameters.values() if p.kind == p.VAR_KEYWORD), "")
    return rest, signature.bind(*args, **kwargs).arguments.get(rest, {}) if rest else {}


def _add_parameters(forward: Callable[..., Any], rest: str, taken: Mapping[str, Any]) -> Callable[..., Any]:
    def named(*args: Any, **kwargs: Any) -> Any:
        return forward(*args, **kwargs)

    signature = inspect.signature(forward)
    explicit = [p for p in signature.parameters.values() if p.name != rest]
    keywords = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in taken]
    vars(named)["__signature__"] = signature.replace(parameters=explicit + keywords)  # inspect looks there first
    return named


def _spread(dynamic_shapes: Any, rest: str, taken: Mapping[str, Any]) -> Any:
    """Return `dynamic_shapes` with the entry of the `**` parameter, the last one, replaced by the entries of its keywords."""
    if not isinstance(dynamic_shapes, dict):
        *others, last = dynamic_shapes
        return (*others, *((last or {}).get(name) for name in taken))
    own = dynamic_shapes.get(rest) or {}
    return {name: axes for name, axes in dynamic_shapes.items() if name != rest} | {name: own.get(name) for name in taken}
