"""The ONNX graph under construction, and the interpreter that walks the captured one and fills it."""
