"""A path from one run with given decisions at one size. It is not exported, but used to check the exported paths."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import torch
from torch import nn
from torch.export.graph_signature import ExportGraphSignature, InputKind, InputSpec, TensorArgument

from ..compat import trees as pytree
from ..compat.exporting import LazyGraphModule
from ..ir.captured_program import CallSpec, SymbolicMeta
from ..ir.expressions import storage
from ..trace.events import Arguments, OpEvent, Ref, TensorMeta, Trace, state_of, unflatten_arguments
from ..trace.path_decisions import PathDecisions
from ..trace.run import trace
from ..trace.size_domain import SizeDomain
from .paths_of_values import Path
from .scope import Node


def probe(model: nn.Module, axes: SizeDomain, arguments: Arguments, script: PathDecisions, like: Path) -> Path | None:
    """Run a module at the example's sizes, and return the path; None if one run is not sufficient.

    Args:
        like: another path of the module at these sizes.
    """
    given = axes.at(arguments, axes.example)
    leaves = pytree.tree_leaves(given)
    with suppress(Exception):  # the full capture of this path reports the error
        found = trace(model, given, script=script)
        if found.exception is None and not found.loops and not any(row.by_values for row in found.rows):
            at = replace(axes, fixed={**axes.fixed, **axes.example})
            return Written(found, state_of(model), leaves, like).path(tuple(script.answers), at)
    return None


class Written:
    """The graph of one run."""

    def __init__(self, found: Trace, state: Mapping[str, torch.Tensor], leaves: Sequence[Any], like: Path) -> None:
        self._trace, self._like = found, like
        self._graph = torch.fx.Graph()
        self._nodes: dict[Ref, Node] = {}
        self._specs: list[InputSpec] = []
        given = iter(enumerate(leaves))
        for spec in like.program.graph_signature.input_specs:
            if spec.kind == InputKind.USER_INPUT:
                number, leaf = next(given)
                self._place(Ref("input", number), spec, leaf)
            elif spec.kind != InputKind.CONSTANT_TENSOR:
                self._place(Ref("state", str(spec.target)), spec, state[str(spec.target)])
        for number, tensor in enumerate(found.constants):
            name = f"lifted_tensor_{number}"
            self._place(Ref("constant", number), InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(f"c_{name}"), name), tensor)

    def path(self, answers: tuple[bool, ...], axes: SizeDomain) -> Path:
        """Return the path of this run."""
        for number, row in enumerate(self._trace.rows):
            self._call(number, row)
        self._graph.output(tuple(self._node(leaf) if isinstance(leaf, Ref) else leaf for leaf in self._trace.returned))
        program = self._like.program
        assert self._trace.spec is not None
        traced = replace(
            program,
            graph_module=LazyGraphModule(nn.Module(), self._graph),
            graph_signature=ExportGraphSignature(self._specs, program.graph_signature.output_specs),
            constants={**program.constants, **{f"lifted_tensor_{n}": value for n, value in enumerate(self._trace.constants)}},
            call_spec=CallSpec(program.call_spec.in_spec, self._trace.spec),
        )
        return Path(answers, traced, (), None, axes, is_probe=True)

    def _place(self, ref: Ref, spec: InputSpec, value: Any) -> None:
        node = self._graph.placeholder(spec.arg.name)
        node.name = node.target = spec.arg.name
        is_tensor = isinstance(value, torch.Tensor)
        node.meta["val"] = SymbolicMeta.of(tuple(value.shape), value.dtype, storage(value)) if is_tensor else value
        self._nodes[ref] = node
        self._specs.append(spec)

    def _call(self, number: int, row: OpEvent) -> None:
        leaves = [self._node(leaf) if isinstance(leaf, Ref) else leaf for leaf in row.leaves]
        args, kwargs = unflatten_arguments(leaves, row.spec)
        node = self._graph.call_function(row.op, args, kwargs)
        values = [SymbolicMeta.of(made.shape, made.dtype, made.storage) if isinstance(made, TensorMeta) else made for made in row.made]
        node.meta.update(val=values if row.many else values[0] if values else None, stack_trace="")
        self._nodes[Ref("row", number)] = node

    def _node(self, ref: Ref) -> Node:
        if ref.kind == "row" and self._trace.rows[int(ref.key)].many:
            whole = self._nodes[Ref("row", ref.key)]
            part = self._graph.call_function(operator.getitem, (whole, ref.part))
            part.meta["val"] = whole.meta["val"][ref.part]
            return part
        return self._nodes[ref]
