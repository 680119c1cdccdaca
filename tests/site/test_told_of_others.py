"""What pages tell of torch, ONNX and ONNX Runtime that no cell of theirs runs."""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy
import onnx
import onnxruntime
import pytest
import torch
from onnx import defs

from fx2onnx import to_onnx
from fx2onnx.errors import UnsupportedArgument

SINCE = {"Attention": 23, "RotaryEmbedding": 23, "RMSNormalization": 23, "TensorScatter": 24, "LinearAttention": 27, "SwiGLU": 28}
SCATTER = """<ir_version: 11, opset_import: ["" : 24]> g (float[1, 2, 8, 4] cache, float[1, 2, 1, 4] new, int64[1] position)
=> (float[1, 2, 8, 4] present) { present = TensorScatter <axis = 2> (cache, new, position) }"""


@pytest.mark.parametrize("operator", SINCE)
def test_an_operator_came_with_the_opset_that_lesson_303_names(operator: str) -> None:
    versions = [schema.since_version for schema in defs.get_all_schemas_with_history() if (schema.name, schema.domain) == (operator, "")]
    assert min(versions) == SINCE[operator]


def test_to_onnx_writes_up_to_opset_26() -> None:
    assert to_onnx(torch.nn.ReLU(), (torch.ones(2),), opset_version=26).model.opset_imports[""] == 26
    with pytest.raises(UnsupportedArgument, match="18 to 26"):
        to_onnx(torch.nn.ReLU(), (torch.ones(2),), opset_version=27)


def test_this_torch_declares_nativert_and_does_not_contain_it() -> None:
    torch_folder = Path(torch.__file__).parent
    assert (torch_folder / "include/torch/csrc/api/include/torch/nativert/ModelRunnerHandle.h").exists()
    with (torch_folder / "lib/libtorch_cpu.so").open("rb") as library, mmap.mmap(library.fileno(), 0, access=mmap.ACCESS_READ) as symbols:
        assert symbols.find(b"ModelRunnerHandle") == -1


def test_tensor_scatter_writes_into_the_buffer_that_it_is_given() -> None:
    model = onnx.parser.parse_model(SCATTER).SerializeToString()
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    buffer = onnxruntime.OrtValue.ortvalue_from_numpy(numpy.zeros((1, 2, 8, 4), numpy.float32))
    binding = session.io_binding()
    binding.bind_ortvalue_input("cache", buffer)
    binding.bind_cpu_input("new", numpy.ones((1, 2, 1, 4), numpy.float32))
    binding.bind_cpu_input("position", numpy.array([5]))
    binding.bind_ortvalue_output("present", buffer)
    session.run_with_iobinding(binding)
    assert buffer.numpy()[0, 0, :, 0].tolist() == [0, 0, 0, 0, 0, 1, 0, 0]
