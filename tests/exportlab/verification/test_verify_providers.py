"""Where a file runs: on the provider that was asked for, or elsewhere, and then it is said."""

from __future__ import annotations

import onnxruntime
import pytest
import torch
from torch import nn

from exportlab import export, verify
from exportlab.exporters.session import CPU, instead, running_on

CUDA = "CUDAExecutionProvider"
THERE = [name for name in onnxruntime.get_available_providers() if name not in (CPU, CUDA)]
SAMPLE = (torch.ones(4, 3),)
MODEL = nn.Linear(3, 2).eval()


def test_without_providers_it_runs_on_the_cpu_and_the_table_does_not_mention_it() -> None:
    report = verify(export("to_onnx", MODEL, SAMPLE), MODEL, SAMPLE)
    assert (report.ran_on, report.instead) == ((CPU,), "")
    assert CPU not in str(report)


def test_a_provider_that_is_not_there_is_told_with_what_was_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnxruntime.get_available_providers", lambda: [CPU])
    report = verify(export("to_onnx", MODEL, SAMPLE), MODEL, SAMPLE, providers=[CUDA])
    assert report.ran_on == (CPU,)
    assert report.instead == f"{CUDA} is not in this ONNX Runtime, which has {CPU}: {CPU} was used instead"
    assert f"on {CPU}" in str(report)
    assert "ran elsewhere" in str(report)


def test_a_provider_that_is_there_and_does_not_start_is_told_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnxruntime.get_available_providers", lambda: [CUDA, CPU])
    if CUDA in onnxruntime.InferenceSession(_bytes(), providers=[CUDA, CPU]).get_providers():
        pytest.skip("this machine has a GPU that ONNX Runtime can use")
    report = verify(export("to_onnx", MODEL, SAMPLE), MODEL, SAMPLE, providers=[CUDA])
    assert report.ran_on == (CPU,)
    assert report.instead == f"{CUDA} is in this ONNX Runtime, but did not start: {CPU} was used instead"


@pytest.mark.skipif(not THERE, reason="this ONNX Runtime has no provider beside the CPU's")
def test_a_provider_that_is_there_is_used_and_the_artifact_stays_where_it_was() -> None:
    artifact = export("to_onnx", MODEL, SAMPLE)
    artifact.load()
    report = verify(artifact, MODEL, SAMPLE, providers=THERE[:1])
    assert THERE[0] in f"{report.ran_on} {report.instead}"
    assert THERE[0] in str(report)
    assert artifact.ran_on() == (CPU,)


def test_what_onnx_runtime_does_not_run_says_so() -> None:
    report = verify(export("torch.export", MODEL, SAMPLE), MODEL, SAMPLE, providers=[CUDA])
    assert report.ran_on == ("cpu",)
    assert report.instead == "providers are those of ONNX Runtime, which does not run this file of torch.export: cpu was used"


def test_one_name_is_no_list_of_names() -> None:
    with pytest.raises(TypeError, match="providers"):
        verify(export("to_onnx", MODEL, SAMPLE), MODEL, SAMPLE, providers=CUDA)


def test_a_block_that_asks_is_asked_in_verify() -> None:
    with running_on([CUDA] if CUDA not in onnxruntime.get_available_providers() else ["NoSuchProvider"]):
        assert verify(export("to_onnx", MODEL, SAMPLE), MODEL, SAMPLE).instead.endswith(f"{CPU} was used instead")


def test_all_that_were_asked_for_and_ran_leave_no_line() -> None:
    assert instead([CPU], [CPU]) == ""
    assert instead([CUDA, CPU], [CUDA, CPU]) == ""


def _bytes() -> bytes:
    artifact = export("to_onnx", MODEL, SAMPLE)
    import onnx_ir as ir

    return bytes(ir.to_proto(artifact.model).SerializeToString())
