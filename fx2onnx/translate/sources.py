"""All sources of translations in order: the caller's table, ours, torchlib, decompositions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from ..ir.translation import Translation
from .custom import custom_table
from .decompose import decomposition_source
from .dispatch import Dispatch
from .torchlib import torchlib_source


def dispatch_of(
    custom: Mapping[Any, Any], own: Mapping[Any, Translation], opset: int, fallback: bool, pairs: Mapping[Any, Translation] | None = None
) -> Dispatch:
    """Return a dispatch that searches the caller's table, ours, and, if fallbacks are allowed, torchlib and decompositions.

    Args:
        pairs: our translations of calls with complex tensors.

    Raises:
        TypeError, ValueError: the caller's table is invalid.
    """
    return _dispatch(custom_table(custom, opset), own, pairs or {}, opset, fallback, ())


def _dispatch(
    custom: Mapping[Any, Translation],
    own: Mapping[Any, Translation],
    pairs: Mapping[Any, Translation],
    opset: int,
    fallback: bool,
    within: tuple[Any, ...],
) -> Dispatch:
    if not fallback:
        return Dispatch(custom, own, pairs=pairs)
    inner = partial(_dispatch, custom, own, pairs, opset, True)
    return Dispatch(custom, own, (("torchlib", torchlib_source(opset)), ("decomposed", decomposition_source(inner, within))), pairs)
