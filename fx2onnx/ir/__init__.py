"""The graph that is written: operators, tensors, dtypes, symbols for sizes, and the ONNX schemas."""
