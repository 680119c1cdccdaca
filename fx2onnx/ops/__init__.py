"""The translations, one file per family. Each docstring gives the operator's schema and the ONNX operators it becomes."""
