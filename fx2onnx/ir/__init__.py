"""The ONNX graph under construction: operators, tensors, dtypes, symbols for sizes, and the ONNX schemas."""
