"""A captured program for the converter: torch.export's names and signature, without its symbolic shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, NoReturn, Self

import torch
from torch.export.graph_signature import ConstantArgument, ExportGraphSignature, InputKind, InputSpec, SymIntArgument, TensorArgument

from ..compat import trees as pytree
from ..compat.dispatch import disabled_torch_function_impl
from .expressions import Size, storage


class SymbolicMeta(torch.Tensor):
    """The metadata of a tensor: its dtype, its sizes as expressions, and which memory it shares; it has no elements."""

    __torch_function__ = disabled_torch_function_impl  # type: ignore[assignment]
    sizes: tuple[Size, ...]
    memory: int

    @staticmethod
    def of(sizes: Sequence[Size], dtype: torch.dtype, memory: int) -> SymbolicMeta:
        """Return the metadata of a tensor with these sizes in this memory."""
        made = torch.empty((0,) * len(sizes), dtype=dtype, device="meta").as_subclass(SymbolicMeta)
        made.sizes, made.memory = tuple(sizes), memory
        return made

    @staticmethod
    def describe_static(tensor: torch.Tensor) -> SymbolicMeta:
        """Return the metadata of a tensor with static sizes."""
        return SymbolicMeta.of(tuple(tensor.shape), tensor.dtype, storage(tensor))

    @property
    def shape(self) -> Any:  # type: ignore[override]
        """The sizes, integers and sympy expressions."""
        return self.sizes

    def untyped_storage(self) -> Any:
        """Return an object with the `_cdata` of a storage, which identifies the memory, and an unknown size."""
        return SimpleNamespace(_cdata=self.memory, nbytes=lambda: -1)


@dataclass(frozen=True)
class CallSpec:
    """How the arguments of a call are flattened, as in `ExportedProgram.call_spec`."""

    in_spec: pytree.TreeSpec
    out_spec: pytree.TreeSpec


@dataclass(frozen=True)
class RunProgram:
    """A program captured by running a module, with the attribute names of an `ExportedProgram`."""

    graph_module: torch.fx.GraphModule
    graph_signature: ExportGraphSignature
    state_dict: Mapping[str, torch.Tensor]
    constants: Mapping[str, torch.Tensor]
    call_spec: CallSpec
    example_inputs: tuple[tuple[Any, ...], dict[str, Any]]
    changed_inputs: tuple[str, ...] = ()
    range_constraints: Mapping[Any, Any] = field(default_factory=dict)
    limits: tuple[str, ...] = ()  # inputs that the module accepts, but this program does not

    @property
    def graph(self) -> torch.fx.Graph:
        """The graph of the module."""
        return self.graph_module.graph

    def eliminate_dead_code(self, is_wanted: Callable[[torch.fx.Node], bool]) -> Self:
        """Return the program without calls that are not wanted."""
        self.graph.eliminate_dead_code(is_wanted)
        return self

    def __getattr__(self, name: str) -> NoReturn:
        if hasattr(torch.export.ExportedProgram, name):
            raise AttributeError(
                f"a program captured by running has no {name!r}: "
                'pass capture="torch.export" to to_onnx to get a torch.export.ExportedProgram'
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __str__(self) -> str:
        return f"{self.graph}"


def argument_of(result: Any) -> TensorArgument | SymIntArgument | ConstantArgument:
    """Return the argument of a signature for a result of the model."""
    if not isinstance(result, torch.fx.Node):
        return ConstantArgument("", result)
    return TensorArgument(result.name) if isinstance(result.meta["val"], torch.Tensor) else SymIntArgument(result.name)


def is_state(spec: InputSpec) -> bool:
    """Return whether an input of a program is a parameter or a buffer."""
    return spec.kind in (InputKind.PARAMETER, InputKind.BUFFER)


def is_constant(spec: InputSpec) -> bool:
    """Return whether an input of a program is a lifted constant."""
    return spec.kind == InputKind.CONSTANT_TENSOR


def is_input(spec: InputSpec) -> bool:
    """Return whether an input of a program is an input of the user."""
    return spec.kind == InputKind.USER_INPUT
