"""Numbers that Python holds while a loop goes on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

import torch
from torch.utils import _pytree as pytree

PLAIN_NUMBERS = (int, float, bool, str, type(None))


def numbers_held(variables: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield Python's own numbers in variables, in containers and attributes inside them, by name."""
    for name, value in variables.items():
        if isinstance(value, torch.nn.Module):
            parts = {f"{name}.{path}".strip("."): vars(module) for path, module in value.named_modules()}
        else:
            parts = {name: vars(value)} if hasattr(value, "__dict__") and not isinstance(value, torch.Tensor | type | ModuleType) else {}
        yield from ((f"{path}.{key}", inner) for path, held in parts.items() for key, inner in held.items() if type(inner) in PLAIN_NUMBERS)
        for path, leaf in pytree.tree_leaves_with_path(value):
            if type(leaf) in PLAIN_NUMBERS:
                yield f"{name}{pytree.keystr(path)}", leaf
