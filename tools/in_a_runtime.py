"""Runs ONNX files in whatever ONNX Runtime its Python has; a line of JSON for each. Needs numpy and nothing of this project.

usage: in_a_runtime.py FOLDER...      each with model.onnx and a 0.npz, 1.npz, … of inputs; results go to got.npz beside them
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnxruntime


def results(session: onnxruntime.InferenceSession) -> Iterator[tuple[str, np.ndarray]]:
    """Yield each output at each sample of this folder, under the numbers of both; the shape beside it, which an empty one needs."""
    for sample in sorted(Path().glob("[0-9]*.npz")):
        with np.load(sample) as feeds:
            found = session.run(None, dict(feeds))
        for number, value in enumerate(found):
            yield f"{sample.stem}.{number}", value


def ran(folder: str) -> tuple[str, str]:
    """Return how far a file came, `load`, `run` or `ok`, and the first line of the error that stopped it."""
    os.chdir(folder)  # so that a message names the file without its folder
    stage = "load"
    try:
        session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
        stage = "run"
        found = dict(results(session))
    except Exception as error:  # noqa: BLE001 - whatever a runtime raises is what is noted
        return stage, str(error).strip().splitlines()[0]
    np.savez("got.npz", **found)
    return "ok", ""


if __name__ == "__main__":
    onnxruntime.set_default_logger_severity(4)
    for name in sys.argv[1:]:
        print(json.dumps([name, *ran(name)]), flush=True)
