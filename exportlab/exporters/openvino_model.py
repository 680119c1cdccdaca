"""Convert models to OpenVINO's IR, and run them with OpenVINO's CPU plugin."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import torch
from torch import nn

from ..cases import DynamicShapes
from ..files import atomic_write
from ..messages import native_output_dropped
from ..outcomes import Outcome
from .artifact import Artifact, Interface
from .calling import Calling, Constant, by_signature
from .capture import marked_program, stage_of
from .to_onnx import ToOnnxError
from .to_onnx_exporter import ToOnnx

ENDS = ("Parameter", "Constant", "Result")  # IR nodes without a computation


class OpenVinoArtifact(Artifact):
    """An `openvino.Model`, run in float32 with torch's number of threads, and saved as an `.xml` with a `.bin`."""

    exporter = "openvino"
    suffix = ".xml"

    def __init__(self, model: Any, calling: Calling) -> None:
        self.model = model
        self.calling = calling
        self.asked = Interface()

    @cached_property
    def request(self) -> Any:
        """The `openvino.InferRequest` on the CPU, created on first use.

        Raises:
            RuntimeError: OpenVINO rejects the model.
        """
        settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": torch.get_num_threads(), "ENABLE_CPU_PINNING": False}
        with native_output_dropped(), told_by_openvino():
            return openvino().Core().compile_model(self.model, "CPU", settings).create_infer_request()

    def load(self) -> None:
        """Compile the model."""
        assert self.request

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the model. Inputs and outputs are on the CPU.

        Raises:
            TypeError, ValueError: the arguments don't match those of the export.
            RuntimeError: OpenVINO rejects the arguments.
        """
        leaves = self.calling.feed(args, kwargs)
        if len(self.model.inputs) != len(leaves):
            raise ValueError(f"the model has {len(self.model.inputs)} inputs, but the call has {len(leaves)}")
        try:
            self.request.infer(list(map(_to_openvino_tensor, leaves)))
        except RuntimeError as error:
            raise plainly(error) from None
        return self.calling.assemble(list(map(_result, self.request.output_tensors)))

    def save(self, path: str | Path) -> Path:
        """Write the `.xml` and its `.bin`, without compressing weights to float16."""
        with atomic_write(path) as draft:
            openvino().save_model(self.model, draft, compress_to_fp16=False)
        return Path(path)

    def ops(self) -> Counter[str]:
        """Return the number of nodes of each op type, including bodies of `If` and `Loop`, but without inputs, weights and results."""
        return Counter(name for name in _op_names(self.model) if name not in ENDS)


class OpenVino:
    """`openvino.convert_model`, applied to the ONNX model of `to_onnx` or to a program of torch.export."""

    name = "openvino"

    def missing(self) -> str | None:
        """Return how to install the package, or None if it is installed."""
        return None if importlib.util.find_spec("openvino") else "openvino is not installed: pip install openvino"

    def stage(self, error: Exception) -> Outcome:
        """Return the stage of the error, `capture` or `convert`."""
        return ToOnnx().stage(error) if isinstance(error, ToOnnxError) else stage_of(error)

    def export(
        self,
        module: nn.Module,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        dynamic_shapes: DynamicShapes = None,
        through: Literal["onnx", "program"] = "onnx",
        **options: Any,
    ) -> OpenVinoArtifact:
        """Convert `through` an ONNX model, with `options` for `to_onnx`, or through a program, with `strict` for torch.export.

        OpenVINO supports ONNX better. From a program it loses changes to buffers, runs the body of a `while_loop` before the first test,
        and fails to convert `scan` and decoders with a cache.
        """
        make = _through_onnx if through == "onnx" else _through_program
        return make(module, args, kwargs, dynamic_shapes, **options)


def _through_onnx(module: nn.Module, args: Any, kwargs: Any, dynamic_shapes: DynamicShapes, **options: Any) -> OpenVinoArtifact:
    made = ToOnnx().export(module, args, kwargs, dynamic_shapes=dynamic_shapes, **options)
    with tempfile.TemporaryDirectory() as folder, native_output_dropped(), told_by_openvino():
        return OpenVinoArtifact(openvino().convert_model(made.save(Path(folder) / "model.onnx")), made.calling)


def _through_program(module: nn.Module, args: Any, kwargs: Any, dynamic_shapes: DynamicShapes, strict: bool = False) -> OpenVinoArtifact:
    program = marked_program(module, args, kwargs, dynamic_shapes, strict)
    with native_output_dropped(), told_by_openvino():
        model = openvino().convert_model(program)
    calling = by_signature(program)
    _drop_constants(model, calling)
    return OpenVinoArtifact(model, calling)


@contextmanager
def told_by_openvino() -> Iterator[None]:
    """Shorten OpenVINO's errors with `plainly`."""
    try:
        yield
    except RuntimeError as error:
        raise plainly(error) from None


def plainly(error: RuntimeError) -> RuntimeError:
    """Remove the locations in OpenVINO's source from the start of an error's message."""
    words = [line.strip() for line in str(error).splitlines() if line.strip() and not line.startswith("Exception from ")]
    return RuntimeError(" ".join(words) or str(error))


def openvino() -> ModuleType:
    """Import OpenVINO with its telemetry disabled, which would otherwise use the network at import and at each conversion."""
    if "openvino" not in sys.modules:
        sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]
    return importlib.import_module("openvino")


def _drop_constants(model: Any, calling: Calling) -> None:
    """Remove the inputs for None and constant numbers. They are unused and have no type, and the runtime rejects them."""
    parameters = model.get_parameters()
    if len(parameters) != len(calling.inputs):
        return
    for parameter, slot in zip(parameters, calling.inputs, strict=True):
        if isinstance(slot, Constant):
            model.remove_parameter(parameter)


def _to_openvino_tensor(leaf: Any) -> Any:
    tensor = torch.as_tensor(leaf).detach().cpu().contiguous()
    package = openvino()
    if tensor.dtype == torch.bfloat16:  # numpy has no bfloat16, so pass the bits as float16
        return package.Tensor(tensor.view(torch.float16).numpy(), list(tensor.shape), package.Type.bf16)
    return package.Tensor(tensor.numpy())


def _result(tensor: Any) -> torch.Tensor:
    import numpy

    value = torch.from_numpy(numpy.array(tensor.data))
    return value.view(torch.bfloat16) if tensor.element_type == openvino().Type.bf16 else value


def _op_names(model: Any) -> Iterator[str]:
    for node in model.get_ordered_ops():
        yield node.get_type_name()
        for body in _bodies(node):
            yield from _op_names(body)


def _bodies(node: Any) -> list[Any]:
    if node.get_type_name() == "If":
        return [node.get_function(0), node.get_function(1)]
    return [node.get_function()] if node.get_type_name() in ("Loop", "TensorIterator") else []
