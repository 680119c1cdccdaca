"""ONNX Runtime compares int64 by their lower 32 bits in Max, Min, Clip, ReduceMax, ReduceMin and Sign, on processors with SSE2 code."""

import numpy
import onnxruntime
from onnx import TensorProto, helper

x = numpy.full(8, 2**31)  # the lower half of it is negative, read as int32
zero = numpy.zeros_like(x)
both = numpy.concatenate([x, zero])
cases = [
    ("Max", [x, zero], x),
    ("Min", [x, zero], zero),
    ("Clip", [x, numpy.array(0)], x),
    ("Sign", [x], zero + 1),
    ("ReduceMax", [both, numpy.array([0])], x[0]),
    ("ReduceMin", [both, numpy.array([0])], zero[0]),
]
wrong = []
for kind, given, expected in cases:
    inputs = [helper.make_tensor_value_info(f"i{i}", TensorProto.INT64, a.shape) for i, a in enumerate(given)]
    output = helper.make_tensor_value_info("y", TensorProto.INT64, None)
    node = helper.make_node(kind, [value.name for value in inputs], ["y"], **({"keepdims": 0} if "Reduce" in kind else {}))
    graph = helper.make_graph([node], "graph", inputs, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (actual,) = session.run(None, {f"i{i}": a for i, a in enumerate(given)})
    print(kind, "gives", actual.flat[0], "for 2**31, where ONNX says", expected.flat[0])
    wrong += [kind] * (not numpy.array_equal(actual, expected))
assert not wrong, f"wrong: {', '.join(wrong)}"
