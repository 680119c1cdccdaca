"""Lower a captured program to the graph of ONNX operators: aliases, writes in place, subgraphs, inputs and outputs."""
