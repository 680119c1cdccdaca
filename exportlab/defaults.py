"""Define the defaults for exporters, modes and limits. This module imports nothing, so that the command's help is fast."""

from __future__ import annotations

GiB = 2**30
EXPORTERS = ("torch.export", "to_onnx", "dynamo", "torchscript")  # for `compare` and sweeps
DOCTORS = ("torch.export", "to_onnx", "dynamo")  # for the doctor
BENCHED = ("eager", "to_onnx", "torch.onnx.export", "torchscript")  # for benchmarks
MODES = ("static", "dynamic")
TASK_SECONDS, TASK_BYTES, TASK_THREADS = 60.0, 8 * GiB, 1  # limits for one task of a sweep
BENCH_SECONDS = 120.0  # limit for one round of one exporter
DOCTOR_SECONDS, DOCTOR_GIB = 300.0, 8.0  # limits for a diagnosis, and for each of its steps
PROFILE_RUNS, PROFILE_WARMUP = 20, 3  # measured runs of a profile, and warm-up runs before them
