"""Numbers and tensors in the Python variables of a loop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

import torch

from ..compat import trees as pytree

PLAIN_NUMBERS = (int, float, bool, str, type(None))


def keep_python_scalars(variables: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the Python numbers in variables, and in the containers and attributes inside them, by name."""
    for name, value in variables.items():
        if isinstance(value, torch.nn.Module):
            parts = {f"{name}.{path}".strip("."): vars(module) for path, module in value.named_modules()}
        else:
            parts = {name: vars(value)} if hasattr(value, "__dict__") and not isinstance(value, torch.Tensor | type | ModuleType) else {}
        yield from (
            (f"{path}.{key}", inner) for path, members in parts.items() for key, inner in members.items() if type(inner) in PLAIN_NUMBERS
        )
        for path, leaf in pytree.tree_leaves_with_path(value):
            if type(leaf) in PLAIN_NUMBERS:
                yield f"{name}{pytree.keystr(path)}", leaf


def tensors_held(variables: Mapping[str, Any]) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the tensors in variables, containers and attributes, by name; those of a list are also indexed from its end."""
    for name, value in variables.items():
        if isinstance(value, torch.Tensor):
            yield name, value
        elif isinstance(value, torch.nn.Module):
            members = ((f"{name}.{path}.{key}", part) for path, module in value.named_modules() for key, part in vars(module).items())
            yield from ((path, part) for path, part in members if isinstance(part, torch.Tensor))
        elif isinstance(value, (list, tuple, dict)):
            yield from ((f"{name}{path}", part) for path, part in _iterate_container(value) if isinstance(part, torch.Tensor))
        elif hasattr(value, "__dict__") and not isinstance(value, (type, ModuleType)):
            yield from ((f"{name}.{key}", part) for key, part in vars(value).items() if isinstance(part, torch.Tensor))


def _iterate_container(value: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, dict):
        yield from ((f"[{place - len(value)}]", part) for place, part in enumerate(value))
    yield from ((pytree.keystr(path), part) for path, part in pytree.tree_leaves_with_path(value))
