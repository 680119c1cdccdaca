"""Where a file runs: on the providers that were asked for, without TF32, or there is an error; and eager on their device as well."""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy
import onnxruntime
import pytest
import torch
from torch import nn

from exportlab import Sample, export, verify
from exportlab.eager import run_calls
from exportlab.exporters.session import CPU, ProviderError, instead, running_on
from exportlab.outcomes import Outcome
from exportlab.verification.devices import Device, device_of, returned_on

CUDA = "CUDAExecutionProvider"
THERE = [name for name in onnxruntime.get_available_providers() if name not in (CPU, CUDA)]
SAMPLE = (torch.ones(4, 3),)
MODEL = nn.Linear(3, 2).eval()


def test_without_providers_it_runs_on_the_cpu_and_the_table_does_not_mention_it() -> None:
    report = verify(export("to_onnx", MODEL, SAMPLE), MODEL, SAMPLE)
    assert (report.ran_on, report.instead) == ((CPU,), "")
    assert CPU not in str(report)


def test_a_provider_that_is_not_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnxruntime.get_available_providers", lambda: [CPU])
    with pytest.raises(ProviderError, match=f"{CUDA} is not in this ONNX Runtime, which has {CPU}: install a build that has it"):
        verify(export("to_onnx", MODEL, SAMPLE), MODEL, SAMPLE, providers=[CUDA])


def test_a_provider_that_is_there_and_does_not_start_is_an_error_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnxruntime.get_available_providers", lambda: [CUDA, CPU])
    if CUDA in onnxruntime.InferenceSession(_bytes(), providers=[CUDA, CPU]).get_providers():
        pytest.skip("this machine has a GPU that ONNX Runtime can use")
    with pytest.raises(ProviderError, match=f"{CUDA} is in this ONNX Runtime, but did not start"):
        verify(export("to_onnx", MODEL, SAMPLE), MODEL, SAMPLE, providers=[CUDA])


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("TensorRT", "did you mean TensorrtExecutionProvider?"),
        ("cuda", "did you mean CUDAExecutionProvider?"),
        ("CUDAProvider", "did you mean CUDAExecutionProvider?"),
        ("openvino", "did you mean OpenVINOExecutionProvider?"),
        ("zzz", "Known providers: "),
    ],
)
def test_a_name_that_no_onnx_runtime_knows_is_an_error_with_the_nearest(name: str, said: str) -> None:
    with pytest.raises(ProviderError, match=re.escape(said)):
        verify(export("to_onnx", MODEL, SAMPLE), MODEL, SAMPLE, providers=[name])
    with pytest.raises(ProviderError, match=re.escape(said)), running_on([name]):
        pass


class FakeSession:
    """A session on CUDA that computes what the CPU's does, `off` by something."""

    off = 0.0

    def __init__(self, file: bytes, options: object, providers: list[object]) -> None:
        self.given = providers
        self.real = REAL(file, providers=[CPU])

    def get_providers(self) -> list[str]:
        return [CUDA, CPU]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        return {CUDA: dict(self.given[0][1]), CPU: {}}  # type: ignore[index]

    def get_provider_graph_assignment_info(self) -> list[object]:
        return [SimpleNamespace(ep_name=CUDA, get_nodes=lambda: [0])]

    def run(self, names: None, feeds: dict[str, numpy.ndarray]) -> list[numpy.ndarray]:
        return [result * (1 + self.off) for result in self.real.run(names, feeds)]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


REAL = onnxruntime.InferenceSession


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> type[FakeSession]:
    fake = type("Fake", (FakeSession,), {})
    monkeypatch.setattr("onnxruntime.get_available_providers", lambda: [CUDA, CPU])
    monkeypatch.setattr("onnxruntime.InferenceSession", fake)
    return fake


def test_cuda_computes_without_tf32_unless_it_is_asked_for_and_the_report_says_so(cuda: type[FakeSession]) -> None:
    artifact = export("to_onnx", MODEL, SAMPLE)
    report = verify(artifact, MODEL, SAMPLE, providers=[CUDA])
    assert (report.outcome, report.ran_on, report.settings) == (Outcome.OK, (CUDA,), "use_tf32=0")
    assert f"on {CUDA} with use_tf32=0" in str(report)
    assert verify(artifact, MODEL, SAMPLE, providers=[(CUDA, {"use_tf32": "1"})]).settings == "use_tf32=1"


def test_what_eager_answers_on_the_device_of_the_file_is_right(cuda: type[FakeSession], monkeypatch: pytest.MonkeyPatch) -> None:
    def on_device(device: Device, module: nn.Module, calls: Sequence[Sample]) -> Any:
        assert not device.tf32
        return run_calls(module, calls) * (1 + 1e-3)

    cuda.off, artifact = 1e-3, export("to_onnx", MODEL, SAMPLE)
    assert verify(artifact, MODEL, SAMPLE, providers=[CUDA]).outcome is Outcome.WRONG
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("exportlab.verification.excuses.returned_on", on_device)
    report = verify(artifact, MODEL, SAMPLE, providers=[CUDA])
    assert report.outcome is Outcome.OK
    assert "eager on cuda gives the same answer" in str(report)
    cuda.off = 5e-3
    assert verify(artifact, MODEL, SAMPLE, providers=[CUDA]).outcome is Outcome.WRONG


def test_a_module_that_does_not_run_on_the_device_leaves_the_cpu_to_decide(
    cuda: type[FakeSession], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("exportlab.verification.devices.copied_whole", lambda module: 1 / 0)
    cuda.off = 1e-3
    assert verify(export("to_onnx", MODEL, SAMPLE), MODEL, SAMPLE, providers=[CUDA]).outcome is Outcome.WRONG


def test_eager_uses_tf32_where_the_file_does(monkeypatch: pytest.MonkeyPatch) -> None:
    assert device_of([CUDA], {}) is None or torch.cuda.is_available()
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert device_of([CPU], {}) is None
    assert device_of([CUDA], {}) == Device("cuda", tf32=True)
    assert device_of([CUDA, CPU], {CUDA: {"use_tf32": "0"}}) == Device("cuda", tf32=False)


def test_the_module_runs_on_a_device_as_it_does_here() -> None:
    calls = [Sample(SAMPLE)]
    assert torch.equal(returned_on(Device("cpu"), MODEL, calls), run_calls(MODEL, calls))


@pytest.mark.skipif(not THERE, reason="this ONNX Runtime has no provider beside the CPU's")
def test_a_provider_that_is_there_is_used_and_the_artifact_stays_where_it_was() -> None:
    artifact = export("to_onnx", MODEL, SAMPLE)
    artifact.load()
    report = verify(artifact, MODEL, SAMPLE, providers=THERE[:1])
    assert THERE[0] in f"{report.ran_on} {report.instead}"
    assert THERE[0] in str(report)
    assert artifact.ran_on() == (CPU,)


def test_what_onnx_runtime_does_not_run_says_so() -> None:
    there = onnxruntime.get_available_providers()[:1]
    with pytest.raises(ProviderError, match=r"providers apply only to ONNX Runtime, which does not run models of torch\.export"):
        verify(export("torch.export", MODEL, SAMPLE), MODEL, SAMPLE, providers=there)


def test_one_name_is_no_list_of_names() -> None:
    with pytest.raises(TypeError, match="providers"):
        verify(export("to_onnx", MODEL, SAMPLE), MODEL, SAMPLE, providers=CUDA)


def test_a_block_that_asks_is_asked_in_verify() -> None:
    with running_on([CUDA] if CUDA not in onnxruntime.get_available_providers() else ["CoreMLExecutionProvider"]):
        assert verify(export("to_onnx", MODEL, SAMPLE), MODEL, SAMPLE).instead.endswith(f"{CPU} was used instead")


def test_all_that_were_asked_for_and_ran_leave_no_line() -> None:
    assert instead([CPU], [CPU]) == ""
    assert instead([CUDA, CPU], [CUDA, CPU]) == ""


def _bytes() -> bytes:
    artifact = export("to_onnx", MODEL, SAMPLE)
    import onnx_ir as ir

    return bytes(ir.to_proto(artifact.model).SerializeToString())
