"""SymbolicShapeInference of ONNX Runtime loses the shape of ReduceMax whose axes are an input, and the next node raises TypeError."""

from onnx import TensorProto, helper
from onnxruntime.tools.symbolic_shape_infer import SymbolicShapeInference

x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])
y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
axes = helper.make_tensor("axes", TensorProto.INT64, [1], [1])
nodes = [helper.make_node("ReduceMax", ["x", "axes"], ["largest"]), helper.make_node("Sub", ["x", "largest"], ["y"])]
graph = helper.make_graph(nodes, "graph", [x], [y], [axes])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
inferred = SymbolicShapeInference.infer_shapes(model)
print(inferred.graph.output[0])
