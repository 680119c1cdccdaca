"""Lower programs to XNNPACK with ExecuTorch, and run them with the ExecuTorch runtime."""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import nn

from fx2onnx.compat import trees as pytree

from ..cases import DynamicShapes
from ..files import atomic_write
from ..messages import muffled, native_output_dropped
from ..outcomes import Outcome
from .artifact import Artifact, Interface
from .calling import Calling, Flat, by_signature
from .capture import marked_program, stage_of

LARGEST = 64  # default upper bound of a dynamic axis; ExecuTorch plans memory for the largest sizes


class ExecuTorchArtifact(Artifact):
    """An ExecuTorch program, saved as a `.pte`. Changes to its buffers last until `fresh`."""

    exporter = "executorch"
    suffix = ".pte"

    def __init__(self, model: Any, calling: Calling, written_inputs: int) -> None:
        self.model = model
        self.calling = calling
        self.asked = Interface()
        self._written_inputs = written_inputs  # number of mutated inputs, which the program returns first

    @cached_property
    def program(self) -> Any:
        """The loaded program, created on first use. It has to outlive its methods.

        Raises:
            RuntimeError: the runtime rejects the program.
        """
        with muffled(), native_output_dropped():
            from executorch.runtime import Runtime

            _use_torchs_threads()
            return Runtime.get().load_program(self.model.buffer)

    @cached_property
    def method(self) -> Any:
        """The method `forward`. Raises the errors of `program`."""
        with muffled(), native_output_dropped():
            return self.program.load_method("forward")

    def load(self) -> None:
        """Load the program."""
        assert self.method

    def fresh(self) -> ExecuTorchArtifact:
        """Return a copy of the artifact that loads the program again."""
        return ExecuTorchArtifact(self.model, self.calling, self._written_inputs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program. It also has inputs for None and numbers, which must be the same as at export.

        Raises:
            TypeError, ValueError: the arguments don't match those of the export.
            RuntimeError: the runtime rejects the arguments.
        """
        given = iter(self.calling.feed(args, kwargs))
        leaves = [next(given) if isinstance(slot, Flat) else slot.value for slot in self.calling.inputs]
        method = self.method
        with native_output_dropped():
            results = method.execute([_contiguous(leaf) for leaf in leaves])[self._written_inputs :]
        if len(results) != len(self.calling.outputs):
            raise ValueError(f"the module returns {len(self.calling.outputs)} values, the program {len(results)}")
        flat = [value for value, slot in zip(results, self.calling.outputs, strict=True) if isinstance(slot, Flat)]
        return self.calling.assemble([torch.as_tensor(value) for value in flat])

    def save(self, path: str | Path) -> Path:
        """Write the `.pte` file."""
        with atomic_write(path) as draft:
            draft.write_bytes(self.model.buffer)
        return Path(path)

    def ops(self) -> Counter[str]:
        """Return the number of instructions of each type: kernels by op, delegates by name, without their contents."""
        plan = self.model.executorch_program.execution_plan[0]
        return Counter(_instruction(plan, instruction.instr_args) for chain in plan.chains for instruction in chain.instructions)


class ExecuTorch:
    """Export with `torch.export`, then lower with `to_edge_transform_and_lower` and the XNNPACK partitioner."""

    name = "executorch"

    def missing(self) -> str | None:
        """Return how to install the package, or None if it is installed."""
        return None if importlib.util.find_spec("executorch") else "executorch is not installed: pip install executorch"

    def stage(self, error: Exception) -> Outcome:
        """Return the stage of the error, `capture` or `convert`."""
        return stage_of(error)

    def export(
        self,
        module: nn.Module,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        dynamic_shapes: DynamicShapes = None,
        strict: bool = False,
        largest: int = LARGEST,
        **options: Any,
    ) -> ExecuTorchArtifact:
        """Capture and lower the module. The upper bound of an axis is `largest` if it is named by a string, else its `Dim`'s `max`."""
        program = marked_program(module, args, kwargs, _bound_dims(dynamic_shapes, largest), strict, **options)
        calling = by_signature(program)
        with muffled(), native_output_dropped():
            from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
            from executorch.exir import to_edge_transform_and_lower

            lowered = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
            written = len(lowered.exported_program().graph_signature.user_inputs_to_mutate)
            return ExecuTorchArtifact(lowered.to_executorch(), calling, written)


def _bound_dims(dynamic_shapes: DynamicShapes, largest: int) -> Any:
    """Add upper bounds. Without them, ExecuTorch plans memory for the example's sizes and rejects larger ones."""
    return pytree.tree_map(lambda dim: torch.export.Dim.DYNAMIC(max=largest) if isinstance(dim, str) else dim, dynamic_shapes)


def _use_torchs_threads() -> None:
    """Set the size of ExecuTorch's process-wide thread pool to that of torch; the default is one thread per core."""
    from executorch.extension.pybindings import portable_lib

    if portable_lib._threadpool_get_thread_count() != torch.get_num_threads():
        portable_lib._unsafe_reset_threadpool(torch.get_num_threads())


def _contiguous(leaf: Any) -> Any:
    return leaf.detach().cpu().contiguous() if isinstance(leaf, torch.Tensor) else leaf


def _instruction(plan: Any, call: Any) -> str:
    kind = type(call).__name__
    if kind == "KernelCall":
        return plan.operators[call.op_index].name.removeprefix("aten::")
    return plan.delegates[call.delegate_index].id if kind == "DelegateCall" else kind
