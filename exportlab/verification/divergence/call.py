"""Represent one call of a captured graph, with the exported model's values for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch.export.graph_signature import InputKind, InputSpec

from fx2onnx.compat import trees as pytree

from ...exporters.to_onnx import RunProgram
from .alignment import Alignment

WIDER = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex64: torch.complex128,
}
Node = torch.fx.Node


@dataclass(frozen=True)
class Call:
    """One call of a captured graph, with the exported model's values for it.

    Attributes:
        leaves: the inputs of the exported model.
        found: the values of the exported model, by name.
    """

    captured: torch.export.ExportedProgram | RunProgram
    alignment: Alignment
    leaves: Sequence[Any]
    found: Mapping[str, torch.Tensor]

    def given(self, exact: bool) -> list[Any]:
        """Return copies of the placeholder values; with `exact`, floats are converted to float64."""
        rest, weights = iter(self._leaves), self._wide if exact else self._weights
        return [_fill_placeholder(spec, weights, rest, exact) for spec in self.captured.graph_signature.input_specs]

    @property
    def converted(self) -> bool:
        """Whether the exported model's inputs have another float width than the captured graph, as after a conversion to half."""
        return any(given is not own for given, own in zip(self.leaves, self._leaves, strict=True))

    @cached_property
    def _leaves(self) -> list[Any]:
        """The inputs in the dtypes of the captured graph."""
        seen = {node.name: node.meta.get("val") for node in self.captured.graph.nodes if node.op == "placeholder"}
        specs = [spec for spec in self.captured.graph_signature.input_specs if spec.kind == InputKind.USER_INPUT]
        names = [spec.arg.name for spec in specs if not hasattr(spec.arg, "value")]
        return [_match_dtype(leaf, seen[name]) for leaf, name in zip(self.leaves, names, strict=True)]

    @cached_property
    def _weights(self) -> dict[str, Any]:
        return {**self.captured.constants, **self.captured.state_dict}

    @cached_property
    def _wide(self) -> dict[str, Any]:
        return {name: widen_floats(weight) for name, weight in self._weights.items()}

    @cached_property
    def narrowest(self) -> dict[str, torch.dtype]:
        """The narrowest float dtype used up to each node. Weights and inputs count as exact."""
        narrowest: dict[str, torch.dtype] = {}
        for node in self.captured.graph.nodes:
            if node.op == "call_function":
                before = [narrowest[n.name] for n in node.all_input_nodes if n.name in narrowest]
                dtypes = [dtype for dtype in (*self._own(node), *before) if dtype.is_floating_point]
                if dtypes:
                    narrowest[node.name] = max(dtypes, key=lambda dtype: torch.finfo(dtype).eps)
        return narrowest

    def _own(self, node: Node) -> Iterator[torch.dtype]:
        """Yield the real dtypes of a node's value in eager and in the exported model."""
        answer, seen = self.alignment.values.get(node.name), node.meta.get("val")
        seen_here = [value.dtype for value in pytree.tree_leaves(seen) if isinstance(value, torch.Tensor)]
        in_file = [self.found[str(answer.name)].dtype] if answer is not None else []
        for dtype in (*seen_here, *in_file):
            yield dtype.to_real() if dtype.is_complex else dtype


def _match_dtype(leaf: Any, seen: Any) -> Any:
    floats = isinstance(leaf, torch.Tensor) and isinstance(seen, torch.Tensor) and leaf.is_floating_point() and seen.is_floating_point()
    return leaf.to(seen.dtype) if floats else leaf


def _fill_placeholder(spec: InputSpec, weights: Mapping[str, Any], rest: Iterator[Any], exact: bool) -> Any:
    if spec.kind == InputKind.USER_INPUT:
        given = spec.arg.value if hasattr(spec.arg, "value") else next(rest)
        given = given.clone() if isinstance(given, torch.Tensor) else given
        return widen_floats(given) if exact else given
    weight = weights.get(str(spec.target))
    return weight.clone() if spec.kind == InputKind.BUFFER and isinstance(weight, torch.Tensor) else weight


def widen_floats(value: Any) -> Any:
    """Convert all floats in a value to float64."""
    return pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.to(WIDER.get(tensor.dtype, tensor.dtype)), value)
