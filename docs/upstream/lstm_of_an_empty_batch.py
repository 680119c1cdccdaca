"""ONNX Runtime's LSTM ends the process where a batch is empty, as that of a mask that picks no row is."""

import subprocess
import sys

import torch

CALL = """
import numpy, onnxruntime
session = onnxruntime.InferenceSession("lstm.onnx", providers=["CPUExecutionProvider"])
print([value.shape for value in session.run(None, {"x": numpy.zeros((0, 5, 4), "float32")})])
"""


class Last(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = torch.nn.LSTM(4, 3, batch_first=True)

    def forward(self, x):
        return self.lstm(x)[0]


program = torch.onnx.export(Last(), (torch.randn(2, 5, 4),), dynamic_shapes=({0: "batch"},), dynamo=True, verbose=False)
program.save("lstm.onnx")
ended = subprocess.run([sys.executable, "-c", CALL], capture_output=True, text=True)
print("eager has", tuple(Last()(torch.zeros(0, 5, 4)).shape), "and the process of the file said:", ended.stderr[-200:])
assert ended.returncode == 0, f"the process ended with {ended.returncode}"
