"""All that fx2onnx takes from private parts of torch, by topic. No other package of fx2onnx imports a private name."""
