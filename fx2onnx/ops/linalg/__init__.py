"""Matrix decompositions written in ONNX operators."""
