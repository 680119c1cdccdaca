"""Run the captured graph node by node, in eager's dtypes or in float64, with its own values or the exported model's."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import torch

from fx2onnx.compat.operators import OpOverload

from ...exporters.to_onnx import returns_its_argument, writes
from ...show.text import op_name
from .call import WIDER, Call, Node, widen_floats

UNINITIALISED = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}
COPIES = {"clone", "lift_fresh_copy"}
OF_ITS_DTYPE = {torch.ops.aten.nan_to_num.default, torch.ops.aten.view.dtype}  # the result depends on the dtype's range or bits


class Lane(torch.fx.Interpreter):
    """Run all nodes in eager's dtypes, each with the results of the nodes before it.

    Attributes:
        computed: the result of each call, by node name, before later nodes change it in place.
    """

    exact = False
    keeps = True

    def __init__(self, call: Call) -> None:
        super().__init__(call.captured.graph_module)
        self.call = call
        self.writes = writes(call.captured.graph_module)
        self.computed: dict[str, Any] = {}

    def results(self) -> dict[str, Any]:
        """Run all nodes on copies of the inputs, and return the final values of the nodes that are outputs."""
        with torch.no_grad():
            returned = self.run(*self.given(), enable_io_processing=False)
        nodes: Any = self.call.captured.graph.output_node().args[0]
        return {node.name: value for node, value in zip(nodes, returned, strict=True) if isinstance(node, Node)}

    def given(self) -> list[Any]:
        """Return the values of the placeholders."""
        return self.call.given(self.exact)

    def held(self, node: Node, value: Any) -> Any:
        """Return the value that later nodes get for a call's result."""
        return value

    def run_node(self, node: Node) -> Any:
        """Run a node and return the value that later nodes get."""
        if node.op != "call_function":
            return widen_floats(super().run_node(node)) if self.exact and node.op == "get_attr" else super().run_node(node)
        value = widen_floats(self._exactly(node)) if self.exact else super().run_node(node)
        if self.keeps:
            self.computed[node.name] = value.clone() if self.writes and isinstance(value, torch.Tensor) else value
        return self.held(node, value)

    def _exactly(self, node: Node) -> Any:
        """Compute a call in float64, or in its own dtype if it has no float64 kernel or another meaning in float64."""
        if isinstance(node.target, OpOverload) and node.target not in OF_ITS_DTYPE:
            args, kwargs = torch.fx.node.map_aggregate(self.fetch_args_kwargs_from_env(node), _wider_dtype)
            with suppress(RuntimeError, TypeError, NotImplementedError):
                return node.target(*args, **kwargs)
        if node.target is operator.getitem:
            return super().run_node(node)
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda n: _match_captured_dtype(self.env[n], n))
        return node.target(*args, **kwargs)  # type: ignore[operator]

    def in_file(self, node: Node, value: Any) -> torch.Tensor | None:
        """Return the exported model's value of a node in eager's form; None if no value matches."""
        answer = self.call.alignment.values.get(node.name)
        if answer is None or not isinstance(value, torch.Tensor):
            return None
        found = self.call.found[str(answer.name)]
        if value.is_complex() and not found.is_complex() and found.shape[-1:] == (2,):
            found = torch.view_as_complex(found.contiguous())
        return found if found.shape == value.shape and kind_of(found) == kind_of(value) else None

    def put(self, node: Node, value: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
        """Replace a value, keeping its layout and its sharing of memory."""
        if returns_its_argument(node):
            return value.copy_(new)
        if self.writes and torch.equal(value, new.to(value.dtype)):  # it may be a view that is changed in place
            return value
        return torch.empty_like(value).copy_(new)


class Fed(Lane):
    """Run each node with the exported model's values of its inputs, so that it inherits no error."""

    def __init__(self, call: Call) -> None:
        super().__init__(call)
        self.same: list[str] = []
        self.unaligned: list[str] = []

    def held(self, node: Node, value: Any) -> Any:
        """Return the exported model's value if there is one."""
        found = self.in_file(node, value)
        if found is not None:
            return self.put(node, value, found)
        if isinstance(value, torch.Tensor) and node.name not in self.call.alignment.values and op_name(node) not in UNINITIALISED:
            (self.same if self._handed_on(node, value) else self.unaligned).append(node.name)
        return value

    def _handed_on(self, node: Node, value: torch.Tensor) -> bool:
        """Whether the value only passes on an aligned node, an input or a weight: the same memory, or a copy."""
        if returns_its_argument(node):
            return False
        known = {*self.call.alignment.values, *self.same}
        sources = (n for n in node.all_input_nodes if n.op != "call_function" or n.name in known)
        return any(op_name(node) in COPIES or _is_same(value, self.env[source]) for source in sources)


class Exact(Lane):
    """Do the same as `Fed` in float64. Numbers too large for the model's dtype are kept, because ONNX Runtime may keep them in float32."""

    exact = True

    def __init__(self, call: Call) -> None:
        super().__init__(call)
        self.overflowed: set[str] = set()

    def held(self, node: Node, value: Any) -> Any:
        """Return the exported model's value, except for elements that overflowed or are infinite because of an overflow."""
        found = self.in_file(node, value)
        return value if found is None else self.put(node, value, self._before_overflow(node, found, value))

    def _before_overflow(self, node: Node, found: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        if not found.is_floating_point() or not found.isinf().any():
            return found
        inherits = any(given.name in self.overflowed for given in node.all_input_nodes)
        lost = found.isinf() & value.isfinite() & (inherits | (value.abs() > torch.finfo(found.dtype).max))
        if lost.any():
            self.overflowed.add(node.name)
        return torch.where(lost, value, found.to(value.dtype))


class Noisy(Exact):
    """Do the same as `Exact`, with random rounding of all values. Differences of this size are not errors of the exported model."""

    def __init__(self, call: Call, seed: int) -> None:
        super().__init__(call)
        self.random = torch.Generator().manual_seed(seed)

    def given(self) -> list[Any]:
        """Return weights and inputs with random rounding."""
        pairs = zip(self.call.given(exact=True), self.call.given(exact=False), strict=True)
        return [self._rounded(wide, own.dtype) if isinstance(own, torch.Tensor) else own for wide, own in pairs]

    def held(self, node: Node, value: Any) -> Any:
        """Return the exported model's value with random rounding."""
        held = super().held(node, value)
        dtype = self.call.narrowest.get(node.name)
        return self.put(node, held, self._rounded(held, dtype)) if dtype and isinstance(held, torch.Tensor) else held

    def _rounded(self, value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        if not value.is_floating_point() or not dtype.is_floating_point:
            return value
        noise = torch.rand(value.shape, generator=self.random, dtype=value.dtype) * 2 - 1
        return torch.where(value.isfinite(), value * (1 + noise * torch.finfo(dtype).eps / 2), value)


class Truth(Lane):
    """The float64 result, with the exported model's values of comparisons and integers; `adding` is added to the nodes' results."""

    exact = True
    keeps = False

    def __init__(self, call: Call, adding: Mapping[str, torch.Tensor]) -> None:
        super().__init__(call)
        self.adding = adding

    def held(self, node: Node, value: Any) -> Any:
        """Return the value with its added error."""
        found = self.in_file(node, value)
        if found is not None and (kind_of(found) not in ("float", "complex") or op_name(node) in UNINITIALISED):
            return self.put(node, value, found)
        added = self.adding.get(node.name)
        return value if added is None else self.put(node, value, value + added)


def kind_of(value: torch.Tensor) -> str:
    """Return `float` or `complex` for any width, or the dtype for other tensors."""
    return "float" if value.is_floating_point() else "complex" if value.is_complex() else str(value.dtype)


def _wider_dtype(argument: Any) -> Any:
    return WIDER.get(argument, argument) if isinstance(argument, torch.dtype) else argument


def _match_captured_dtype(value: Any, node: Node) -> Any:
    """Convert a node's value to the dtype in the captured graph."""
    seen = node.meta.get("val")
    if isinstance(value, torch.Tensor) and isinstance(seen, torch.Tensor):
        return value.to(seen.dtype)
    if isinstance(value, (list, tuple)) and isinstance(seen, (list, tuple)):
        pairs = zip(value, seen, strict=True)
        return type(value)(v.to(s.dtype) if isinstance(v, torch.Tensor) else v for v, s in pairs)
    return value


def _is_same(value: torch.Tensor, other: Any) -> bool:
    if not isinstance(other, torch.Tensor):
        return False
    return all(part(value) == part(other) for part in (torch.Tensor.data_ptr, torch.Tensor.size, torch.Tensor.stride, lambda t: t.dtype))
