"""Tolerances follow the scale of the output: a uniform answer is no softmax, and rounding at an odd scale is no error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from mutant_models import Model, numbers, subjects
from mutants import mutations
from torch import Tensor, nn

from exportlab import verify
from exportlab.exporters import OnnxArtifact, export
from exportlab.messages import muffled
from exportlab.verification.verify import Report


def verified(wrong: Callable[..., Any], right: Callable[..., Any], *sample: Tensor) -> Report:
    """The report on the file of one function, held against another."""
    with muffled():
        artifact = export("to_onnx" if sample[0].dtype == torch.bfloat16 else "torchscript", function(wrong), sample)
        return verify(artifact, function(right), [sample])


def function(of: Callable[..., Any]) -> nn.Module:
    return Model(lambda _, *args: of(*args)).eval()


def seen(report: Report) -> str:
    return "\n".join(f"{check.name} ({check.inputs}): {check.outcome} {check.detail}" for check in report.failed)


WORDS = numbers(8, 200_000) / 8

WRONG: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[Tensor, ...]]] = {
    "uniform softmax over 200,000 words": (
        lambda x: (x @ WORDS * 0.0).softmax(-1),
        lambda x: (x @ WORDS).softmax(-1),
        (numbers(2, 8) / 100,),
    ),
    "two per cent of 5e-4": (lambda x: x.softmax(-1) * 1.02, lambda x: x.softmax(-1), (numbers(2, 2000) / 10,)),
    "one output of 1e-7 among others of 1e-7": (
        lambda x: torch.cat([x.sigmoid()[:1] * 1.05, x.sigmoid()[1:]]) * 1e-7,
        lambda x: x.sigmoid() * 1e-7,
        (numbers(6),),
    ),
    "a constant where eager's depends on the input": (
        lambda x: (x * 0.0).sigmoid() + 1e4,
        lambda x: (x / 1e3).sigmoid() + 1e4,
        (numbers(6),),
    ),
    "zeros instead of 1e-6": (lambda x: x * 0.0, lambda x: x * 1e-6, (numbers(6),)),
    "the small one of two outputs": (lambda x: (x * 1e3, x * 0.0), lambda x: (x * 1e3, x * 1e-6), (numbers(6),)),
    "a third of the probabilities in float16": (
        lambda x: x.softmax(-1) * 0.66,
        lambda x: x.softmax(-1),
        (numbers(2, 3000).half(),),
    ),
}

SOUND: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...]]] = {
    "outputs of 1e-6": (lambda x: (x @ x.T).softmax(-1) * 1e-6, (numbers(8, 64),)),
    "outputs of 1e6": (lambda x: (x @ x.T).tanh().cumsum(0) * 1e6, (numbers(8, 64),)),
    "x less its mean, of a constant": (lambda x: x - x.mean(-1, keepdim=True), (torch.full((4, 1000), 0.1),)),
    "the same, of a large constant": (lambda x: x - x.mean(-1, keepdim=True), (torch.full((4, 1000), 1234.567),)),
    "a sum that cancels": (lambda x: (x @ WORDS[:, :500]).sum(-1), (numbers(4, 8),)),
    "the lowest number as a mask in the output": (
        lambda x: x.masked_fill(x < 0, torch.finfo(torch.float32).min).cumsum(-1).clamp(min=torch.finfo(torch.float32).min),
        (numbers(4, 6),),
    ),
    "minus infinity as a mask in the output": (lambda x: x.masked_fill(x < 0, float("-inf")), (numbers(4, 6),)),
    "one huge element beside small ones": (lambda x: torch.cat([x.sum(-1, keepdim=True) * 1e12, (x @ x.T).sin()], -1), (numbers(8, 64),)),
    "sums in float16": (lambda x: x.sum(-1), (numbers(4, 2000).half(),)),
    "a product in float16": (lambda x: x @ x.T, (numbers(8, 256).half(),)),
    "norms in float16": (lambda x: nn.functional.layer_norm(x, (256,)), (numbers(8, 256).half(),)),
    "sums in bfloat16": (lambda x: x.mean(-1), (numbers(4, 2000).bfloat16(),)),
    "a product in bfloat16": (lambda x: x @ x.T, (numbers(8, 256).bfloat16(),)),
    "a softmax in float16 of many words": (lambda x: x.softmax(-1), (numbers(2, 3000).half(),)),
    "log of a softmax": (lambda x: x.log_softmax(-1), (numbers(4, 500) * 10,)),
    "an exponential": (lambda x: (x * 3).exp(), (numbers(4, 50),)),
    "sines of large angles": (lambda x: (x * 100).sin(), (numbers(4, 50),)),
    "a variance of what hardly varies": (lambda x: (x * 1e-2 + 1).var(-1), (numbers(4, 50),)),
    "a determinant": (lambda x: (x.T @ x).logsumexp(0), (numbers(50, 20),)),
    "float64": (lambda x: (x @ x.T).tanh(), (numbers(8, 64).double(),)),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_error_of_the_scale_of_the_output_is_wrong(name: str) -> None:
    wrong, right, sample = WRONG[name]
    assert verified(wrong, right, *sample).outcome == "wrong"


@pytest.mark.parametrize("name", SOUND)
def test_rounding_is_none(name: str) -> None:
    right, sample = SOUND[name]
    report = verified(right, right, *sample)
    assert report.outcome == "ok", seen(report)


def test_a_mask_that_no_sample_reaches_is_told() -> None:
    subject = subjects()["top_p"]
    with muffled():
        artifact = export("dynamo", subject.module, subject.samples[0], dynamic_shapes=subject.dynamic_shapes)
    assert isinstance(artifact, OnnxArtifact)
    (mask,) = mutations(artifact.model)["mask"]
    unmasked = OnnxArtifact(mask.applied(artifact.model), artifact.calling, "unmasked")
    report = verify(unmasked, subject.module, list(subject.samples))
    assert report.outcome != "ok" or "in each sample" in repr(report)
