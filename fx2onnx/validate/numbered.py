"""Replace the size expressions of a captured program by numbers, so that torch can call it node by node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import sympy
import torch
from torch import nn
from torch.export.graph_signature import ConstantArgument, InputKind

from ..ir.captured_program import RunProgram, SymbolicMeta
from ..ir.expressions import python_number
from .replay import Replay

Numbers = Mapping[sympy.Symbol, int]


def specialise_program(program: RunProgram, given: Sequence[Any]) -> RunProgram:
    """Return the program for tensors of these sizes, in the order of its inputs, with the same node names.

    Raises:
        TypeError: If an argument should be a tensor but is not.
        ValueError: If a tensor has another number of axes, or if the program has a data-dependent number or size.
    """
    values = {node.name: node.meta["val"] for node in program.graph.find_nodes(op="placeholder")}
    specs = [spec for spec in program.graph_signature.input_specs if spec.kind == InputKind.USER_INPUT]
    wanted = [values[spec.arg.name] for spec in specs if not isinstance(spec.arg, ConstantArgument)]
    pairs = [pair for value, leaf in zip(wanted, given, strict=False) for pair in _sizes_of(value, leaf)]  # state may follow
    numbers = {size: number for size, number in pairs if isinstance(size, sympy.Symbol)}
    return replace(program, graph_module=_substitute_sizes(program.graph_module, numbers))


class LoopBody(nn.Module):
    """The body of a loop whose sizes may depend on the iteration number."""

    def __init__(self, body: torch.fx.GraphModule, numbers: Numbers) -> None:
        super().__init__()
        self.body, self._numbers = body, numbers

    def forward(self, *given: Any) -> Any:
        """Call the body with the loop-carried values, the iteration number, and the other inputs."""
        return Replay(self.body, self._numbers).run(*given)


def _sizes_of(value: Any, leaf: Any) -> Sequence[tuple[Any, int]]:
    if not isinstance(value, SymbolicMeta):
        return ()
    if not isinstance(leaf, torch.Tensor):
        raise TypeError(f"a tensor of {len(value.sizes)} axes was exported, but the argument is a {type(leaf).__name__}")
    if leaf.dim() != len(value.sizes):
        raise ValueError(f"a tensor of {len(value.sizes)} axes was exported, but the argument has {leaf.dim()}")
    return tuple(zip(value.sizes, leaf.shape, strict=True))


def _substitute_sizes(module: torch.fx.GraphModule, numbers: Numbers) -> torch.fx.GraphModule:
    graph, copies = torch.fx.Graph(), dict[torch.fx.Node, torch.fx.Node]()
    for node in module.graph.nodes:
        copied = copies[node] = graph.node_copy(node, copies.__getitem__)
        copied.name = node.name  # also for a name like `input`, which torch.fx would number
        copied.args, copied.kwargs = torch.fx.node.map_aggregate((copied.args, copied.kwargs), partial(_number, numbers=numbers))
    root = nn.Module()
    for name, part in module.named_children():
        root.add_module(name, _specialise_submodule(part, numbers) if isinstance(part, torch.fx.GraphModule) else part)
    specialised = torch.fx.GraphModule(root, graph)
    specialised.meta.update(module.meta)
    return specialised


def _specialise_submodule(part: torch.fx.GraphModule, numbers: Numbers) -> nn.Module:
    values = [node.meta.get("val") for node in part.graph.find_nodes(op="placeholder")]
    return LoopBody(part, numbers) if any(isinstance(value, torch.SymInt) for value in values) else _substitute_sizes(part, numbers)


def _number(leaf: Any, numbers: Numbers) -> Any:
    if not isinstance(leaf, sympy.Basic):
        return leaf
    found = leaf.subs(numbers)
    if found.free_symbols:
        raise ValueError(
            f"the program computes with {min(map(str, found.free_symbols))}, which depends on values, so it cannot be run node by node"
        )
    return python_number(found)
