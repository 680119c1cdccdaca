"""Appends nodes to the list of a graph; equal nodes are merged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx_ir as ir

from .context import ModelContext
from .expressions import attribute, hashable
from .output_types import output_types
from .source_node import CurrentNode
from .tensor import Tensor

SAME_SIZES = {
    "Cast", "Neg", "Abs", "Not", "Exp", "Log", "Sqrt", "Reciprocal", "Floor", "Ceil", "Round", "Sign", "Identity", "IsNaN", "IsInf",
}  # fmt: skip
RANDOM = {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial"}
Key = tuple[Any, ...]


class Tape(CurrentNode):
    """The nodes of one graph. It can read the values of outer graphs, unless it is isolated, as the body of a function is."""

    def __init__(self, shared: ModelContext, parent: Tape | None = None, isolated: bool = False) -> None:
        super().__init__()
        self.shared = shared
        self.nodes: list[ir.Node] = []
        self.seen: dict[Key, tuple[Tensor, ...]] = {}
        self._around = None if isolated else parent

    @property
    def opset(self) -> int:
        """The opset version of the model."""
        return self.shared.opset

    def node(
        self,
        domain: str,
        op_type: str,
        inputs: Sequence[Tensor | None],
        attributes: Mapping[str, Any],
        outputs: int = 1,
        merged: bool = True,
    ) -> tuple[Tensor, ...]:
        """Append a node, or reuse an equal one; return its outputs.

        Args:
            attributes: Python values; None is omitted.
            merged: whether an equal node may be reused.

        Raises:
            Untranslated: the opset has no such operator.
        """
        given = {name: value for name, value in attributes.items() if value is not None}
        if not merged or op_type in RANDOM or any(isinstance(value, ir.Graph) for value in given.values()):
            return self.append(domain, op_type, inputs, given, outputs)
        key = (domain, op_type, tuple(map(id, inputs)), outputs, tuple((name, hashable(value)) for name, value in given.items()))
        found = self._find(key)
        if found is None:
            found = self.seen[key] = self.append(domain, op_type, inputs, given, outputs)
        return found

    def _find(self, key: Key) -> tuple[Tensor, ...] | None:
        tape: Tape | None = self
        while tape is not None:
            if key in tape.seen:
                return tape.seen[key]
            tape = tape._around
        return None

    def append(
        self, domain: str, op_type: str, inputs: Sequence[Tensor | None], attributes: Mapping[str, Any], outputs: int = 1
    ) -> tuple[Tensor, ...]:
        """Append a node, named after the captured node that is being translated; return its outputs."""
        types = output_types(domain, op_type, self.opset, inputs, attributes, outputs)
        base = f"{self._at.name if self._at else 'main'}/{op_type}"
        sizes = inputs[0].known_sizes if op_type in SAME_SIZES and inputs[0] is not None else None
        unique = self.shared.names.unique
        made = tuple([Tensor(name=unique(base), sizes=sizes, type=ir.TensorType(kind) if kind else None) for kind in types])
        self.shared.domains.setdefault(domain, 1)
        given = [attribute(name, value) for name, value in attributes.items()]
        self.nodes.append(ir.Node(domain, op_type, inputs, given, outputs=made, name=made[0].name, metadata_props=dict(self.metadata)))
        return made

    def append_identity(self, value: Tensor) -> Tensor:
        """Return a separate Identity, for an output that is an input, a weight, or already an output."""
        [copy] = self.append("", "Identity", [value], {})
        copy.shape = value.shape
        return copy
