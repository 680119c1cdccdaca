"""What is done where nothing else is asked for: which exporters, which modes, how long. Imports nothing, so that a help text is quick."""

from __future__ import annotations

GiB = 2**30
EXPORTERS = ("torch.export", "to_onnx", "dynamo", "torchscript")  # that `compare` and a sweep try
DOCTORS = ("torch.export", "to_onnx", "dynamo")  # that the doctor tries
BENCHED = ("eager", "to_onnx", "torch.onnx.export", "torchscript")  # that a bench measures
MODES = ("static", "dynamic")
TASK_SECONDS, TASK_BYTES, TASK_THREADS = 60.0, 8 * GiB, 1  # that a task of a sweep may take
BENCH_SECONDS = 120.0  # that one round of one exporter may take
DOCTOR_SECONDS, DOCTOR_GIB = 300.0, 8.0  # that a diagnosis, and a step of it, may take
PROFILE_RUNS, PROFILE_WARMUP = 20, 3  # of a profile: those that count, and those before them
