"""What is noise, what names a cause, and how much of what was said is kept."""

from __future__ import annotations

import pytest
import torch

from exportlab.diagnostics import CAUSES, LONGEST, MOST, NATIVE, NOISE, Line, any_names_cause, clean_line, kept, merge_lines, names_cause

TRACER = "TracerWarning: Converting a tensor to a Python boolean might cause the trace to be incorrect."


def test_every_entry_of_both_lists_has_a_reason() -> None:
    assert all(entry.why for entry in (*NOISE, *CAUSES))


@pytest.mark.parametrize(
    "line",
    [
        TRACER,
        "UserWarning: # The axis name: a will not be used, since it shares the same shape constraints with another axis: b.",
        "UserWarning: Exporting a model while it is in training mode. Please ensure that this is intended",
        "UserWarning: Provided key X for dynamic axes is not a valid input/output name",
        "UserWarning: ONNX Preprocess - Removing mutation from node aten::add_ on block input: 'calls'. This changes graph semantics.",
        "UserWarning: The tensor attribute self.last was assigned during export. Such attributes must be registered as buffers",
        clean_line("UserWarning: The tensor attributes " + ", ".join(["self._flat_weights[0]"] * 20) + " were assigned during export."),
        "UserWarning: Warning: duplicated values in 'index' field, this will cause the ONNX model to be incorrect.",
        "UserWarning: If indices include negative values, the exported graph will produce incorrect results.",
        "[W:onnxruntime:, execution_frame.cc:921 VerifyOutputSizes] Expected shape from model of {4} does not match actual shape of {3}",
        "torch.onnx: Setting ONNX exporter to use operator set version 18 because …. Automatic version conversion will be performed",
        "onnxscript.version_converter: Failed to convert the model to the target version 12 using the ONNX C API.",
        "[W:onnxruntime:, graph.cc:125 MergeShapeInfo] Error merging shape info for output.",
    ],
)
def test_a_line_that_names_a_cause_is_no_noise(line: str) -> None:
    assert names_cause(line)
    source, _, text = line.partition(": ")
    category = {"UserWarning": UserWarning, "TracerWarning": torch.jit.TracerWarning}.get(source, source)
    assert not (Line(NATIVE, line) if line.startswith("[") else Line(category, text)).is_noise


@pytest.mark.parametrize(
    "line",
    [
        "DeprecationWarning: this is old",
        "torch.fx.experimental.symbolic_shapes: Unable to find user code corresponding to {u0}",
    ],
)
def test_other_lines_name_none(line: str) -> None:
    assert not names_cause(line)


def test_what_is_about_this_python_or_this_machine_is_noise() -> None:
    assert Line(RuntimeWarning, "Guards may run slower on Python 3.13.0. Consider upgrading to Python 3.13.1+.").is_noise
    assert Line("torch.utils.cpp_extension", "No CUDA runtime is found, using CUDA_HOME='/usr/local'").is_noise
    assert not Line("torch.utils.cpp_extension", "another").is_noise


def test_that_two_axes_of_one_name_have_one_name_is_noise() -> None:
    said = "# The axis name: {} will not be used, since it shares the same shape constraints with another axis: seq."
    assert Line(UserWarning, said.format("seq")).is_noise
    assert not names_cause(f"UserWarning: {said.format('seq')}")
    assert not Line(UserWarning, said.format("se")).is_noise
    assert names_cause(f"UserWarning: {said.format('sequence')}")


def test_a_category_of_warnings_stands_for_those_below_it() -> None:
    class Progress(UserWarning):
        pass

    assert Line(Progress, "IProgress not found. Please update jupyter").is_noise
    assert not Line(Progress, "another").is_noise


@pytest.mark.parametrize(
    ("said", "kept_as"),
    [
        ("\x1b[0;93m2026-11-22 04:20:10.096958729 [W:onnxruntime:, a.cc:1 F] x\x1b[m", "[W:onnxruntime:, a.cc:1 F] x"),
        ("[W1122 04:20:10.123456 77 mutex.cpp:12] x", "[W mutex.cpp:12] x"),
        ("W1122 04:22:19.272000 9527 /v/lib/python3.11/site-packages/torch/a.py:630] x", "W torch/a.py:630] x"),
        ("<function f at 0x7f579b94b240>", "<function f at 0x…>"),
        ("two\n lines", "two lines"),
    ],
)
def test_what_varies_is_not_kept(said: str, kept_as: str) -> None:
    assert clean_line(said) == kept_as


def test_a_line_has_a_length() -> None:
    assert len(clean_line("x" * 400)) == LONGEST


def test_a_line_is_kept_once_and_of_too_many_those_that_name_a_cause() -> None:
    lines = [Line(UserWarning, f"number {i}") for i in range(20)] + [Line(NATIVE, TRACER)]
    found = kept([*lines, *lines])
    assert found == (*(f"UserWarning: number {i}" for i in range(MOST - 1)), TRACER)
    assert merge_lines(found, found) == found
    assert any_names_cause(found)
    assert not any_names_cause(found[:-1])
