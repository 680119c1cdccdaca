"""Lowers a captured program to a graph of ONNX operators: aliases, in-place writes, subgraphs, inputs and outputs."""
