"""Export with the legacy exporter, `torch.onnx.export(dynamo=False)`, which traces one call."""

from __future__ import annotations

import copy
import io
from collections.abc import Mapping, Sequence
from typing import Any

import onnx
import onnx_ir as ir
import torch
from torch import nn

from fx2onnx.compat import trees as pytree
from fx2onnx.compat.exporting import tree_map_with_path

from ..cases import DynamicShapes, Sample, bound
from ..eager import called_once
from ..outcomes import Outcome
from .artifact import Interface
from .calling import by_example
from .onnx_artifact import OnnxArtifact


class TorchScript:
    """The legacy exporter. It needs `dynamic_axes` by input name, so `dynamic_shapes` is converted."""

    name = "torchscript"

    def missing(self) -> str | None:
        """Return None: it is part of torch."""
        return None

    def stage(self, error: Exception) -> Outcome:
        """Return `convert` for errors of torch.onnx, and `capture` for errors while tracing."""
        return Outcome.CONVERT if isinstance(error, torch.onnx.errors.OnnxExporterError) else Outcome.CAPTURE

    def export(
        self,
        module: nn.Module,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        dynamic_shapes: DynamicShapes = None,
        input_names: Sequence[str] | None = None,
        output_names: Sequence[str] | None = None,
        opset_version: int | None = None,
        **options: Any,
    ) -> OnnxArtifact:
        """Trace one call; `options` are passed to `torch.onnx.export`."""
        kwargs = dict(kwargs or {})
        names = list(input_names or leaf_names(module, args, kwargs))
        file = io.BytesIO()
        torch.onnx.export(
            module,
            copy.deepcopy(args),
            file,  # type: ignore[arg-type]  # its annotation doesn't include buffers, which work too
            kwargs=copy.deepcopy(kwargs) or None,  # {} would be treated as another argument
            input_names=names,
            output_names=output_names and list(output_names),
            opset_version=opset_version,
            dynamic_axes=dynamic_axes(module, args, kwargs, dynamic_shapes, names),
            dynamo=False,
            **options,
        )
        model = ir.from_proto(onnx.load_model_from_string(file.getvalue()))
        sample = Sample(args, kwargs)
        returned = called_once(module, sample)
        scalars = len(model.graph.inputs) > _tensors(sample.leaves())
        returned_scalars = len(model.graph.outputs) > _tensors(pytree.tree_leaves(returned))
        calling = by_example(args, kwargs, returned, scalars=scalars, returned_scalars=returned_scalars)
        return OnnxArtifact(model, calling, self.name, Interface.of(input_names, output_names, opset_version))


def _tensors(leaves: Sequence[Any]) -> int:
    return sum(isinstance(leaf, torch.Tensor) for leaf in leaves)


def leaf_names(module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[str]:
    """Return a name for each leaf that becomes an input: the parameter's name, with the position in a container appended."""
    leaves, _ = pytree.tree_flatten_with_path(bound(module, args, kwargs))
    return [_name(path) for path, leaf in leaves if _is_input(leaf)]


def dynamic_axes(
    module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], dynamic_shapes: DynamicShapes, names: Sequence[str]
) -> dict[str, dict[int, str]]:
    """Convert `dynamic_shapes` to `dynamic_axes`: axis names by input name. Unnamed axes are named after their input and axis."""
    if dynamic_shapes is None:
        return {}
    arguments = bound(module, args, kwargs)
    shapes = dynamic_shapes if isinstance(dynamic_shapes, dict) else dict(zip(arguments, dynamic_shapes, strict=True))
    found: list[Any] = []
    tree_map_with_path(lambda _, leaf, axes: found.append(axes) if _is_input(leaf) else None, arguments, shapes)
    return {name: _name_axes(name, axes) for name, axes in zip(names, found, strict=False) if axes}


def _is_input(leaf: Any) -> bool:
    return leaf is not None and not isinstance(leaf, str)


def _name_axes(name: str, axes: Any) -> dict[int, str]:
    pairs = axes.items() if isinstance(axes, dict) else enumerate(axes)
    return {axis: dim if isinstance(dim, str) else f"{name}_{axis}" for axis, dim in pairs if dim is not None}


def _name(path: tuple[Any, ...]) -> str:
    keys = (getattr(key, "key", getattr(key, "idx", getattr(key, "name", None))) for key in path)
    return "_".join(map(str, keys))
