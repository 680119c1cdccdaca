"""convert_float_to_float16 of ONNX Runtime makes two nodes of one name where a product that stays in float32 reads a value twice."""

import onnxruntime
from onnx import TensorProto, helper
from onnxruntime.transformers.float16 import convert_float_to_float16

nodes = [helper.make_node("Relu", ["x"], ["h"], "relu"), helper.make_node("Mul", ["h", "h"], ["square"], "square")]
given, returned = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "square"))
value = helper.make_tensor_value_info("h", TensorProto.FLOAT, [2])
graph = helper.make_graph(nodes, "graph", [given], [returned], value_info=[value])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
half = convert_float_to_float16(model, node_block_list=["square"])
onnxruntime.InferenceSession(half.SerializeToString(), providers=["CPUExecutionProvider"])
