"""All sources of translations in their order: the caller's table, ours, torchlib's, decompositions."""

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
    """Return what finds translations: in the caller's table, in ours, and, if there may be fallbacks, in torchlib and by decomposition.

    Args:
        pairs: our translations of calls that take or give complex tensors.

    Raises:
        TypeError, ValueError: something is wrong with the caller's table.
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
