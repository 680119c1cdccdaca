"""Finds the translation of an operator: in the caller's table, ours, torchlib, or by decomposition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import sympy
import torch

from ..compat import trees as pytree
from ..compat.operators import OpOverload
from ..errors import BrokenTranslation, MissingPackage, Untranslated, UntranslatedInside
from ..ir.complex_pairs import touches_complex
from ..ir.dtypes import NoKernel
from ..ir.graph import Graph
from ..ir.quantized import has_quantized
from ..ir.symbols import UnknownSymbol
from ..ir.translation import Translation
from .registry import OF_QUANTIZED

NOT_TRANSLATED = (Untranslated, NoKernel, UnknownSymbol)
FALLBACKS = ("torchlib", "decomposed")
_OF_QUANTIZED = "no translation for quantised tensors: call dequantize() first"
Source = Callable[[torch.fx.Node], Translation | None]


@dataclass
class Dispatch:
    """Finds translations, and records which source each node's translation is from."""

    custom: Mapping[Any, Translation]
    own: Mapping[Any, Translation]
    fallbacks: tuple[tuple[str, Source], ...] = ()
    pairs: Mapping[Any, Translation] = field(default_factory=dict)
    used: dict[str, list[torch.fx.Node]] = field(default_factory=dict)

    def __call__(self, node: torch.fx.Node) -> Translation:
        """Return a translation that tries each source for the operator of this node, until one does not refuse the call.

        The translation raises:
            Untranslated: no source has a translation, or all refuse; the message lists the reasons. Or a function of the caller failed.
            MissingPackage: the next translation to try needs a package that is not installed.
        """
        return partial(self._translate, node)

    def _translate(self, node: torch.fx.Node, g: Graph, *args: Any, **kwargs: Any) -> Any:
        reasons = []
        quantized = has_quantized(args)
        for source, translation in self._candidates(node):
            if translation is None or (quantized and not hasattr(translation, OF_QUANTIZED)):
                continue
            try:
                made = translation(g, *args, **kwargs)
            except UntranslatedInside:
                raise
            except (*NOT_TRANSLATED, TypeError, RuntimeError) as error:
                reasons.append(_why(g, source, (*args, *kwargs.values()), error))
                continue
            self.used.setdefault(source, []).append(node)
            return made
        missing = "no translation" if self.fallbacks else "no translation by to_onnx or custom_translation_table, and fallback=False"
        raise Untranslated("; ".join(reasons) or (_OF_QUANTIZED if quantized else missing))

    def knows(self, node: torch.fx.Node) -> bool:
        """Return whether any source has a translation for the operator of this node."""
        try:
            return any(translation is not None for _, translation in self._candidates(node))
        except MissingPackage:
            return True  # the error is raised when the translation is used

    def _candidates(self, node: torch.fx.Node) -> Iterator[tuple[str, Translation | None]]:
        yield "custom", self.custom.get(node.target)
        if touches_complex(node):
            yield from self._list_complex_candidates(node)
            return
        yield "own", self.own.get(node.target) or self.own.get(str(node.target))  # by name, because the library may not be loaded
        functional = functional_variant(node.target)
        yield "own", self.own.get(functional) if functional is not None else None
        for name, source in self.fallbacks:
            yield name, source(node)

    def _list_complex_candidates(self, node: torch.fx.Node) -> Iterator[tuple[str, Translation | None]]:
        yield "own", self.pairs.get(node.target) or self.pairs.get(functional_variant(node.target))
        for name, source in self.fallbacks:
            yield name, source(node) if name == "decomposed" else None


def functional_variant(target: Any) -> Any:
    """Return the out-of-place overload of an in-place one: `aten.add.Tensor` for `aten.add_.Tensor`; None if it does not exist."""
    if not isinstance(target, OpOverload) or not target._schema.is_mutable:
        return None
    namespace, _, name = target._schema.name.partition("::")
    packet = getattr(getattr(torch.ops, namespace), name.removesuffix("_"), None) if name.endswith("_") else None
    return getattr(packet, target._overloadname, None) if packet is not None else None


def first_applicable(translations: Sequence[Translation]) -> Translation:
    """Return a translation that tries these in order, until one does not refuse the call."""

    def translation(g: Graph, *args: Any, **kwargs: Any) -> Any:
        for candidate in translations[:-1]:
            with suppress(*NOT_TRANSLATED):
                return candidate(g, *args, **kwargs)
        return translations[-1](g, *args, **kwargs)

    return translation


def _why(g: Graph, source: str, given: Iterable[Any], error: Exception) -> str:
    """Return why a translation is not used: it refuses the call, or fails because a number is an expression.

    Raises:
        Exception: `error`, if the translation is broken.
    """
    moving = [g.shared.text(number) for number in pytree.tree_leaves(given) if isinstance(number, sympy.Basic) and number.free_symbols]
    if isinstance(error, NOT_TRANSLATED) and not isinstance(error, BrokenTranslation):
        return str(error) if source == "own" else f"{error} ({source})"
    if not moving or source == "custom":
        raise error
    return f"it needs a constant number, but {' and '.join(moving)} is dynamic{'' if source == 'own' else f' ({source})'}"
