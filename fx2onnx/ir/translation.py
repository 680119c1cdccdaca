"""The types of translations and of what finds them for a node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch

Translation = Callable[..., Any]


class TranslationOf(Protocol):
    """Finds the translation of a node's operator."""

    def __call__(self, node: torch.fx.Node) -> Translation:
        """Return a function of the graph and the arguments of the operator; it raises Untranslated if there is no translation."""

    def knows(self, node: torch.fx.Node) -> bool:
        """Return whether there is a translation for the operator of this node."""
