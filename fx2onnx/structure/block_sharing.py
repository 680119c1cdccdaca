"""Equal blocks captured once: the first is traced between marks, each further one is an opaque call. Not here: the proof (equality.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, NamedTuple

import torch
from torch import nn
from torch.utils import _pytree as pytree

from ..ir.expressions import storage
from ..match import number_by_first_use
from ..trace.module_equality import MARKS_A_BLOCK, Reads, all_attributes, difference, non_shareable_reason, snapshot, watch_reads, weights

PLAIN = (int, float, bool, str, type(None), torch.dtype, torch.device, torch.SymInt, torch.SymFloat, torch.SymBool)
Leaves = list[Any]  # of the arguments or results of a forward: tensors, and whatever else it takes
Classes = Literal[True] | Sequence[type]  # those of the blocks; True stands for every class that torch.nn does not define
Forward = Callable[..., Any]
NAMESPACE = "fx2onnx"  # of the marks, among the operators of torch
CURRENT: ContextVar[BlockSharing] = ContextVar("the sharing of the capture that is going on")


@dataclass
class Block:
    """One call of a block that was traced: where it is, in which modes of torch, what it read, took and gave."""

    number: int
    path: str
    module: nn.Module
    arguments: Leaves
    spec: pytree.TreeSpec
    modes: tuple[bool, bool, bool]
    repetition: tuple[int, ...]
    out_spec: pytree.TreeSpec = field(init=False)
    results: Leaves = field(default_factory=list)
    reads: Reads = field(default_factory=set)
    shareable: str | None = None  # why no other call may stand on this one


class BlockRejected(Exception):
    """A block turned out not to be one, after it was traced; its text is the reason, `path` the block."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(reason)
        self.path = path


@dataclass
class BlockSharing:
    """Blocks of one capture: those that were traced, those that stand on one, and why others do not."""

    traced: list[Block] = field(default_factory=list)
    instances: dict[str, str] = field(default_factory=dict)
    not_shared: dict[str, str] = field(default_factory=dict)
    watches: bool = True

    def block(self, number: int) -> Block:
        """Return the traced block of this number."""
        return self.traced[number]


@contextmanager
def mark_blocks(root: nn.Module, classes: Classes, left_out: dict[str, str], watches: bool = True) -> Iterator[BlockSharing]:
    """Mark, while it lasts, each call of a submodule of these classes: traced between marks, or an opaque call of an equal one.

    Args:
        classes: the classes, or True for every submodule that torch.nn does not define.
        left_out: paths of modules that an earlier capture found not to be blocks, with the reason.
        watches: whether it is noted which attributes a block reads; else it counts as reading all.
    """
    sharing = BlockSharing(not_shared=dict(left_out), watches=watches)
    with ExitStack() as stack:
        for path, module in root.named_modules():
            if path and is_of(module, classes) and path not in left_out:
                stack.enter_context(override_forward(module, _marking(path, module, sharing)))
        token = CURRENT.set(sharing)
        stack.callback(CURRENT.reset, token)
        yield sharing


def is_of(module: nn.Module, classes: Classes) -> bool:
    """Return whether a module is one of these classes; True stands for every class that torch.nn does not define."""
    if classes is True:
        return not type(module).__module__.startswith("torch.nn.")
    return isinstance(module, tuple(classes))


@contextmanager
def override_forward(module: nn.Module, forward: Forward) -> Iterator[None]:
    """Give a module another forward, while it lasts; one that has a forward of its own keeps that."""
    if "forward" in vars(module):
        yield
        return
    module.forward = forward
    try:
        yield
    finally:
        del module.forward


def _marking(path: str, module: nn.Module, sharing: BlockSharing) -> Forward:
    forward = module.forward

    def block(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = pytree.tree_flatten((args, kwargs))
        with torch._C.DisableTorchFunction():  # looking at a tensor is not part of the trace
            reason = _foreign(leaves) or non_shareable_reason(module)
            first = None if reason else _equal(path, module, leaves, spec, sharing)
        if reason:
            sharing.not_shared[path] = reason
            return forward(*args, **kwargs)
        if first is not None:
            return _repeat(first, module, leaves)
        return _trace(path, module, forward, leaves, spec, sharing)

    vars(block)[MARKS_A_BLOCK] = True
    return block


def _foreign(leaves: Leaves) -> str | None:
    """Return why an argument may be changed by the block, being neither a tensor nor a plain value: a cache."""
    strange = [leaf for leaf in leaves if not isinstance(leaf, (torch.Tensor, *PLAIN))]
    return f"it takes a {type(strange[0]).__name__}, which it may modify" if strange else None


def _equal(path: str, module: nn.Module, leaves: Leaves, spec: pytree.TreeSpec, sharing: BlockSharing) -> Block | None:
    """Return a traced block that this call provably repeats; else note the reason against the last candidate."""
    for first in sharing.traced:
        if type(first.module) is not type(module):
            continue
        reason = first.shareable or _call_differs(first, leaves, spec) or difference(first.module, module, first.reads)
        if reason is None:
            sharing.instances[path] = first.path
            sharing.not_shared.pop(path, None)
            return first
        sharing.not_shared[path] = f"it cannot share the capture of {first.path}: {reason}"
    return None


def _call_differs(first: Block, leaves: Leaves, spec: pytree.TreeSpec) -> str | None:
    if first.spec != spec:
        return "its arguments have a different structure"
    if first.modes != modes():
        return "it is called in a different gradient or autocast mode"
    if any(a is not b and _describe_argument(a) != _describe_argument(b) for a, b in zip(first.arguments, leaves, strict=True)):
        return "an argument has a different shape, dtype or value"
    return None if first.repetition == _repetition(leaves) else "its arguments share memory in a different way"


def modes() -> tuple[bool, bool, bool]:
    """Return the modes of torch that a trace depends on: gradients, autocast, inference."""
    return torch.is_grad_enabled(), torch.is_autocast_enabled("cpu"), torch.is_inference_mode_enabled()


def _describe_argument(leaf: Any) -> tuple[Any, ...]:
    """Return what a trace sees of an argument: everything of a number, of a tensor its kind. Sizes are compared as known by now."""
    if isinstance(leaf, torch.Tensor):
        sizes = tuple(map(_exact, (*leaf.shape, *leaf.stride())))
        return torch.Tensor, sizes, leaf.dtype, leaf.device, leaf.requires_grad
    return type(leaf), _exact(leaf)


def _exact(value: Any) -> Any:
    return value.node.expr if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)) else value


def _repetition(leaves: Leaves) -> tuple[int, ...]:
    return number_by_first_use(storage(leaf) for leaf in leaves if isinstance(leaf, torch.Tensor))


def _repeat(first: Block, module: nn.Module, leaves: Leaves) -> Any:
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    made = iter(operators().repeat(tensors, list(weights(module).values()), first.number))
    return pytree.tree_unflatten(
        [_restore_requires_grad(next(made), r) if isinstance(r, torch.Tensor) else r for r in first.results], first.out_spec
    )


def _restore_requires_grad(copy: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
    """Return a result of one of the marks, with gradients where the block's own result has them."""
    return copy.requires_grad_() if result.requires_grad and not copy.requires_grad else copy


def _trace(path: str, module: nn.Module, forward: Forward, leaves: Leaves, spec: pytree.TreeSpec, sharing: BlockSharing) -> Any:
    block = Block(len(sharing.traced), path, module, leaves, spec, modes(), _repetition(leaves))
    sharing.traced.append(block)
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    entered = operators().enter(tensors, list(weights(module).values()), block.number)
    versions, before = [t._version for t in entered], snapshot(module)
    inside = iter(entered)
    args, kwargs = pytree.tree_unflatten([next(inside) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves], spec)
    with watch_reads(module) if sharing.watches else nullcontext(all_attributes(module)) as reads:
        returned = forward(*args, **kwargs)
    block.reads = reads
    results, block.out_spec = pytree.tree_flatten(returned)
    _check_traced(path, entered, versions, results)
    if before != snapshot(module):
        raise BlockRejected(path, "its forward changes its own attributes or buffers")
    return _left(block, results)


def _check_traced(path: str, entered: Sequence[torch.Tensor], versions: list[int], results: Leaves) -> None:
    if [t._version for t in entered] != versions:
        raise BlockRejected(path, "it writes into its arguments")
    if reason := _foreign(results):
        raise BlockRejected(path, reason.replace("takes", "returns"))
    tensors = [r for r in results if isinstance(r, torch.Tensor)]
    storages = [storage(t) for t in (*tensors, *entered)]
    if len({*map(storage, tensors)}) < len(tensors) or len(set(storages)) < len({*map(storage, entered)}) + len(tensors):
        raise BlockRejected(path, "its outputs share memory with its arguments or with each other")


def _left(block: Block, results: Leaves) -> Any:
    tensors = [r for r in results if isinstance(r, torch.Tensor)]
    if any(_has_unbacked_sizes(t) for t in tensors):
        block.shareable = "the sizes of its outputs depend on values"
    made = operators().leave(tensors, block.number)
    rest = iter([_restore_requires_grad(copy, t) for copy, t in zip(made, tensors, strict=True)])
    block.results = [next(rest) if isinstance(r, torch.Tensor) else r for r in results]
    return pytree.tree_unflatten(block.results, block.out_spec)


def _has_unbacked_sizes(tensor: torch.Tensor) -> bool:
    from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

    return bool(free_unbacked_symbols(tensor.shape))


def check_free_values(program: torch.export.ExportedProgram, sharing: BlockSharing) -> None:
    """Check that blocks which others stand on read nothing that was computed outside, other than their arguments.

    Raises:
        BlockRejected: one does.
    """
    instances = set(sharing.instances.values())
    weights_of_model = set(program.graph_signature.inputs_to_parameters) | set(program.graph_signature.inputs_to_buffers)
    constant = weights_of_model | set(program.graph_signature.inputs_to_lifted_tensor_constants)
    for block in sharing.traced:
        if block.path in instances and (node := _computed_outside(program, block.number, constant)) is not None:
            raise BlockRejected(block.path, f"it reads {node.name}, which is not among its arguments")


def _computed_outside(program: torch.export.ExportedProgram, number: int, constant: set[str]) -> torch.fx.Node | None:
    own: set[torch.fx.Node] = set()
    inside = False
    for node in program.graph.nodes:
        if node.target is operators().leave and node.args[1] == number:
            return None
        if inside:
            for read in node.all_input_nodes:
                if (
                    read not in own
                    and read.op != "get_attr"
                    and read.name not in constant
                    and isinstance(read.meta.get("val"), torch.Tensor)
                ):
                    return read
        if inside or (node.target is operators().enter and node.args[2] == number):
            inside = True
            own.add(node)
    return None


class BlockMarkers(NamedTuple):
    """The operators that mark blocks, and the library that they live in as long as it is kept."""

    library: torch.library.Library
    enter: torch._ops.OpOverload
    leave: torch._ops.OpOverload
    repeat: torch._ops.OpOverload


@cache
def operators() -> BlockMarkers:
    """Return the three marks, as operators of torch: `enter`, `leave` and `repeat`. The last can be traced, not run."""
    library = torch.library.Library(NAMESPACE, "DEF")
    library.define("enter(Tensor[] inputs, Tensor[] weights, int block) -> Tensor[]")
    library.define("leave(Tensor[] results, int block) -> Tensor[]")
    library.define("repeat(Tensor[] inputs, Tensor[] weights, int block) -> Tensor[]")
    library.impl("enter", lambda inputs, weights, block: [t.clone() for t in inputs], "CompositeExplicitAutograd")
    library.impl("leave", lambda results, block: [t.clone() for t in results], "CompositeExplicitAutograd")
    torch.library.register_fake(f"{NAMESPACE}::repeat", _like_the_first, lib=library)
    space = getattr(torch.ops, NAMESPACE)
    return BlockMarkers(library, space.enter.default, space.leave.default, space.repeat.default)


def _like_the_first(inputs: list[torch.Tensor], weights: list[torch.Tensor], block: int) -> list[torch.Tensor]:
    given = [r for r in CURRENT.get().block(block).results if isinstance(r, torch.Tensor)]
    return [torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=t.device) for t in given]


def inline_repeated_blocks(module: torch.fx.GraphModule) -> None:
    """Write the traced block out at each call that repeats it, so that a module with marks can be run."""
    for repeat in [*module.graph.find_nodes(op="call_function", target=operators().repeat)]:
        with module.graph.inserting_before(repeat):
            repeat.replace_all_uses_with(_copied_for(repeat))
        module.graph.erase_node(repeat)
    module.recompile()


def _copied_for(repeat: torch.fx.Node) -> torch.fx.Node:
    """Copy the traced block, with the inputs and the weights of one that repeats it; return the mark that leaves the copy."""
    arguments: tuple[Any, ...] = repeat.args
    inputs, weights, number = arguments
    enter, *rest = _traced_nodes(repeat.graph, number)
    own_weights: Any = enter.args[1]
    copies: dict[torch.fx.Node, torch.fx.Node] = dict(zip(own_weights, weights, strict=True))
    copies[enter] = repeat.graph.call_function(operators().enter, (inputs, weights, number))
    for node in rest:
        copies[node] = repeat.graph.node_copy(node, lambda read: copies.get(read, read))
    return copies[rest[-1]]


def _traced_nodes(graph: torch.fx.Graph, number: int) -> list[torch.fx.Node]:
    """Return the nodes of a traced block, from the mark that enters it to the one that leaves it."""
    nodes = list(graph.nodes)
    start = next(i for i, node in enumerate(nodes) if node.target is operators().enter and node.args[2] == number)
    end = next(i for i, node in enumerate(nodes) if node.target is operators().leave and node.args[1] == number)
    return nodes[start : end + 1]
