"""Attempts hold what was said, and tell silence from a warning that was not heeded."""

from __future__ import annotations

import re

import onnx_ir as ir
import pytest
import torch
from torch import nn

from exportlab import Sample, VerificationError, compare, export, verify
from exportlab.outcomes import Outcome
from exportlab.verification.comparison import Attempt, run_load_step, run_verify_step

TRACER = "TracerWarning: Converting a tensor to a Python boolean might cause the trace to be incorrect."


class Gain(nn.Module):
    """Asks for a size."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x / 2 if x.shape[0] > 3 else x * 2


def test_what_the_exporter_said_is_kept_and_shown(capfd: pytest.CaptureFixture[str]) -> None:
    found = compare(Gain().eval(), [(torch.ones(4, 2),), (torch.ones(2, 2),)], dynamic_shapes=({0: "rows"},), exporters=("torchscript",))
    assert found["torchscript"].outcome == "frozen"
    assert found["torchscript"].warned
    assert [line[: len(TRACER)] for line in found["torchscript"].said] == [TRACER]
    assert TRACER in found._repr_html_()
    assert re.search("^it warned +TracerWarning: Converting a tensor", repr(found["torchscript"].report), re.MULTILINE)
    with pytest.raises(VerificationError, match=f"it warned: {TRACER}"):
        found["torchscript"].report.check()
    assert capfd.readouterr().err == "", "it is not shown raw"


def test_what_the_runtime_said_at_a_call_is_kept(capfd: pytest.CaptureFixture[str]) -> None:
    samples = [Sample((torch.ones(4, 2),)), Sample((torch.ones(2, 2),))]
    artifact = export("to_onnx", nn.ReLU(), samples[0].args, dynamic_shapes=({0: "rows"},))
    artifact.model.graph.outputs[0].shape = ir.Shape([4, 2])
    tried = run_verify_step(run_load_step(Attempt("to_onnx", Outcome.OK, artifact)), nn.ReLU(), samples)
    assert [line.split("] ")[1] for line in tried.said] == [
        "Expected shape from model of {4,2} does not match actual shape of {2,2} for output relu"
    ]
    assert capfd.readouterr().err == ""


def test_a_report_holds_what_the_runtime_said(capfd: pytest.CaptureFixture[str]) -> None:
    artifact = export("to_onnx", nn.ReLU(), (torch.ones(4, 2),), dynamic_shapes=({0: "rows"},))
    artifact.model.graph.outputs[0].shape = ir.Shape([4, 2])
    report = verify(artifact, nn.ReLU(), [(torch.ones(4, 2),), (torch.ones(2, 2),)])
    assert ["VerifyOutputSizes" in line for line in report.said] == [True]
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("outcome", "said", "silent", "warned"),
    [
        (Outcome.WRONG, (), True, False),
        (Outcome.FROZEN, (TRACER,), False, True),
        (Outcome.NARROW, (TRACER,), False, False),
        (Outcome.OK, (TRACER,), False, False),
    ],
)
def test_an_attempt_is_silent_when_nothing_names_the_cause(outcome: Outcome, said: tuple[str, ...], silent: bool, warned: bool) -> None:
    attempt = Attempt("dynamo", outcome, said=said)
    assert (attempt.silent, attempt.warned) == (silent, warned)
