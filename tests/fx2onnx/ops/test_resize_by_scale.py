"""Images by scales that ONNX's Resize has otherwise than torch: those that move, that leave a size as it is, that float32 rounds."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from inputs import normal
from modules import Of

from exportlab import to_onnx, verify


def positions(x: torch.Tensor, mode: str, by: float) -> torch.Tensor:
    """Position embeddings of 4 by 5 patches as DINOv2 has them for an image: its scale is a little larger than the sizes say."""
    embeddings = torch.arange(40.0).reshape(1, 2, 4, 5).sin()
    scales = (float(x.shape[2] // 4 + by) / 4, float(x.shape[3] // 4 + by) / 5)
    return F.interpolate(embeddings, scale_factor=scales, mode=mode)


@pytest.mark.parametrize("by", [0.0, 0.1])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic"])
def test_a_scale_that_follows_from_the_size(mode: str, by: float) -> None:
    model = Of(lambda x: positions(x, mode, by) * x.mean())
    program = to_onnx(model, (normal(1, 1, 24, 20),), dynamic_shapes=({2: "height", 3: "width"},))
    report = verify(program, model, [(normal(1, 1, *sizes),) for sizes in ((24, 20), (4, 7), (12, 40), (16, 33), (100, 8), (5, 4))])
    assert (report.outcome, program.report.limits) == ("ok", ()), report


def test_a_scale_that_is_a_whole_number_at_every_size_that_is_run() -> None:
    model = Of(lambda x: F.interpolate(torch.arange(8.0).reshape(1, 1, 8), scale_factor=1.01 * x.shape[2], mode="nearest") * x.mean())
    program = to_onnx(model, (normal(1, 2, 5),), dynamic_shapes=({2: "length"},))
    report = verify(program, model, [(normal(1, 2, length),) for length in (5, 3, 11, 13, 90, 130, 401)])
    assert (report.outcome, program.report.limits) == ("ok", ()), report


def test_a_line_to_a_length() -> None:
    model = Of(lambda x: F.interpolate(x, scale_factor=12 / x.shape[2], mode="linear"))
    program = to_onnx(model, (normal(2, 3, 8),), dynamic_shapes=({2: "length"},))
    report = verify(program, model, [(normal(2, 3, length),) for length in (8, 3, 5, 11, 12, 13, 49, 100)])
    assert report.outcome == "ok", report


STAY_OR_DOUBLE = [(1.05, 1.3), (2.05, 1.05), (2.02, 2.5), (1.05, 1.05), (0.98, 1.01)]


@pytest.mark.parametrize("scales", STAY_OR_DOUBLE)
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic"])
def test_a_scale_that_leaves_a_size_as_it_is_or_doubles_it(mode: str, scales: tuple[float, float]) -> None:
    model = Of(lambda x: F.interpolate(x, scale_factor=scales, mode=mode))
    for shapes in (None, ({2: "height", 3: "width"},)):
        program = to_onnx(model, (normal(1, 2, 10, 10),), dynamic_shapes=shapes)
        others = [(9, 30), (19, 20), (40, 3), (50, 70)] if shapes else []
        report = verify(program, model, [(normal(1, 2, *sizes),) for sizes in ((10, 10), *others)])
        assert report.outcome == "ok", (shapes, report)


@pytest.mark.parametrize("scale", [1.05, 1.3, 2.02, 2.1, 0.7])
def test_lines_and_volumes_by_such_a_scale(scale: float) -> None:
    for modes, sizes in ((("nearest", "nearest-exact", "linear"), (10,)), (("nearest", "trilinear"), (4, 5, 6))):
        for mode in modes:
            model = Of(lambda x, mode=mode: F.interpolate(x, scale_factor=scale, mode=mode))
            program = to_onnx(model, (normal(1, 2, *sizes),), dynamic_shapes=({0: "batch", 2: "length"},))
            others = zip((1, 3, 2, 4, 1, 2), (sizes[0], 3, 9, 21, 40, 70), strict=True)
            report = verify(program, model, [(normal(batch, 2, length, *sizes[1:]),) for batch, length in others])
            assert report.outcome == "ok", (mode, report)
