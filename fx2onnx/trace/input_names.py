"""Names of the inputs of a captured program, as torch.export gives them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from torch import nn

from ..compat import trees as pytree
from ..compat.exporting import bind_signature_to_inputs
from ..errors import CaptureError


def identifier(name: str) -> str:
    """Return a name as a valid input name."""
    return re.sub(r"[^a-zA-Z0-9]", "_", name).lower()


def names_of_inputs(model: nn.Module, arguments: tuple[tuple[Any, ...], dict[str, Any]]) -> Iterator[str]:
    """Yield the names that torch.export gives the inputs, from the parameters of `forward` and the keys inside them.

    Raises:
        CaptureError: If the signature of `forward` does not accept the arguments, although a call of the model does.
    """
    args, kwargs = arguments
    try:
        combined: Mapping[str, Any] = bind_signature_to_inputs(model, args, kwargs)
    except TypeError as error:
        raise CaptureError(f"forward does not accept the arguments: {error}") from error
    for path, _ in pytree.tree_flatten_with_path(combined)[0]:
        yield "_".join(_key(entry).lower() for entry in path)


def _key(entry: Any) -> str:
    if isinstance(entry, pytree.MappingKey):
        return re.sub(r"[^a-zA-Z0-9]", "_", str(entry.key))
    return str(entry.idx) if isinstance(entry, pytree.SequenceKey) else str(entry.name)
