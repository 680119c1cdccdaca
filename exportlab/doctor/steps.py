"""Define the steps that run and capture the module in a child process. The steps that export it are in `trial.py`."""

from __future__ import annotations

import io
from contextlib import redirect_stdout, suppress
from functools import partial
from typing import Any

import torch
from torch import nn

from fx2onnx.compat import trees as pytree
from fx2onnx.compat.operators import OpOverload

from .. import show
from ..cases import Sample
from ..eager import copy_sample, disable_compile, fresh, run_calls
from ..exporters.capture import dims_from_names
from ..exporters.to_onnx import is_in_training, op_title
from ..infer_dynamic_shapes import arguments_of
from ..messages import heard
from ..sweep.observe import weights_bytes
from ..verification.difference import difference_of
from .events import Captured, Eager
from .lines import SourceLine, find_line_in_text
from .subject import Subject

OF_TORCH = ("aten", "prims", "higher_order", "torchvision", "profiler")
VIEWS = (torch.ops.aten.select.int, torch.ops.aten.slice.Tensor, torch.ops.aten.view.default, torch.ops.aten.transpose.int)


def run_eagerly(patient: Subject) -> Eager:
    """Run the module in eager mode on all samples.

    Raises:
        Any exception of the module for one of the user's samples.
    """
    with disable_compile():
        for sample in patient.samples:
            run_calls(fresh(patient.module), (sample,))
        valid = tuple(i for i, (_, sample) in enumerate(patient.made) if _takes(patient.module, sample))
        random = _draws(patient.module, patient.samples[0])
        changes = _written_into(patient.module, patient.samples[0])
    return Eager(valid, random, is_in_training(patient.module), weights_bytes(patient.module), changes)


def _written_into(module: nn.Module, sample: Sample) -> tuple[str, ...]:
    """Return the arguments whose tensors a call modifies, unless the call also returns them, as with a cache."""
    given = copy_sample(sample)
    with torch.no_grad():  # inference mode would keep a model from computing gradients
        returned = _tensors(fresh(module)(*given.args, **given.kwargs))
    before, after = (arguments_of(module, each) for each in (sample, given))
    return tuple(name for name, value in before.items() if _is_forgotten(_tensors(value), _tensors(after[name]), returned))


def _is_forgotten(some: list[torch.Tensor], others: list[torch.Tensor], returned: list[torch.Tensor]) -> bool:
    changed = [new for old, new in zip(some, others, strict=False) if difference_of(old, new).problem]
    return not all(any(map(partial(_is_same, new), returned)) for new in changed)


def _is_same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether both are the same tensor, or a view of all of it with the same strides."""
    return one.shape == other.shape and one.stride() == other.stride() and one.data_ptr() == other.data_ptr()


def _tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def _takes(module: nn.Module, sample: Sample) -> bool:
    with suppress(Exception):
        run_calls(fresh(module), (sample,))
        return True
    return False


def _draws(module: nn.Module, sample: Sample) -> bool:
    """Return whether calls of fresh copies differ with the seed only. Differences with the same seed have another cause."""
    results = []
    for seed in (1, 2, 1):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            results.append(run_calls(fresh(module), (sample,)))
    return bool(difference_of(*results[:2]).problem) and not difference_of(results[0], results[2]).problem


def capture(patient: Subject, how: str) -> Captured:
    """Return the graph captured by torch.export: `strict`, `non-strict` or `draft`.

    Raises:
        Any exception of the capture.
    """
    sample, shapes = patient.samples[0], dims_from_names(patient.dynamic_shapes)
    with heard():
        if how == "draft":
            program = torch.export.draft_export(fresh(patient.module), sample.args, dict(sample.kwargs), dynamic_shapes=shapes)
        else:
            strict = how == "strict"
            program = torch.export.export(fresh(patient.module), sample.args, dict(sample.kwargs), dynamic_shapes=shapes, strict=strict)
    return Captured(_render_program(program), _lines(program), _writes(program), _schemas(program))


def _render_program(program: torch.export.ExportedProgram) -> tuple[str, ...]:
    text = io.StringIO()
    with redirect_stdout(text):
        show.program(program)
    return tuple(text.getvalue().splitlines())


def _lines(program: torch.export.ExportedProgram) -> dict[str, SourceLine]:
    calls = [node for node in program.graph.nodes if node.op == "call_function"]
    found = ((op_title(node.target), find_line_in_text(node.meta.get("stack_trace") or "")) for node in reversed(calls))
    return {op: place for op, place in found if place is not None}


def _schemas(program: torch.export.ExportedProgram) -> dict[str, str]:
    ops = {node.target for node in program.graph.nodes if isinstance(node.target, OpOverload)}
    return {op_title(op): str(op._schema) for op in ops if op.namespace not in OF_TORCH}


def _writes(program: torch.export.ExportedProgram) -> SourceLine | None:
    for node in program.graph.nodes:
        if isinstance(node.target, OpOverload) and node.target._schema.is_mutable and _is_held(node.args[0]):
            return find_line_in_text(node.meta.get("stack_trace") or "")
    return None


def _is_held(value: object) -> bool:
    """Return whether a value is a buffer or an input, or a view of one."""
    while isinstance(value, torch.fx.Node) and value.op == "call_function" and value.target in VIEWS:
        value = value.args[0]
    return isinstance(value, torch.fx.Node) and value.op == "placeholder"
