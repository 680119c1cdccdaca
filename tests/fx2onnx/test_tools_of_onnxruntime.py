"""ONNX Runtime's tools take a file as it comes: two quantisers, what prepares for them, the float16 converter, the optimiser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy
import onnx
import pytest
import torch
from onnxruntime.quantization import CalibrationDataReader, quantize_dynamic, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process
from onnxruntime.transformers.float16 import convert_float_to_float16
from onnxruntime.transformers.optimizer import optimize_model

from exportlab import to_onnx
from exportlab.cases import registered
from exportlab.exporters.session import session

Feed = dict[str, numpy.ndarray]
CASES = (
    *("mlp", "pooled_convnet", "distilbert", "llama", "causal_attention"),
    *("lstm_projected", "batch_norm", "tied_embedding", "vit", "whisper"),
)
CALIBRATED_BY_ONE_CALL = 2.0  # of the largest answer: random weights, and a range that one call gave
NEAR = {"dynamically": 0.1, "statically": CALIBRATED_BY_ONE_CALL, "in_half": 0.01, "optimised": 1e-4, "prepared": 1e-4}
NOT_INFERRED = {("distilbert", "prepared"): "Incomplete symbolic shape inference"}  # and of the file by torch.onnx.export


class OneCall(CalibrationDataReader):
    """The example, once."""

    def __init__(self, feed: Feed) -> None:
        self.calls: Iterator[Feed] = iter([feed])

    def get_next(self) -> Feed | None:
        """Return the next call."""
        return next(self.calls, None)


def dynamically(file: Path, made: Path, feed: Feed) -> None:
    """Quantise weights, and inputs when they come."""
    quantize_dynamic(file, made)


def statically(file: Path, made: Path, feed: Feed) -> None:
    """Quantise both by ranges that a call gave."""
    quantize_static(file, made, OneCall(feed))


def prepared(file: Path, made: Path, feed: Feed) -> None:
    """Infer all shapes and optimise, as is advised before either."""
    quant_pre_process(file, made)


def in_half(file: Path, made: Path, feed: Feed) -> None:
    """Convert to float16, inputs and outputs excepted."""
    onnx.save(convert_float_to_float16(onnx.load(file), keep_io_types=True), made)


def optimised(file: Path, made: Path, feed: Feed) -> None:
    """Fuse what transformers have, by the tool's own rules alone."""
    optimize_model(str(file), model_type="bert", opt_level=0).save_model_to_file(str(made))


TOOLS: tuple[Callable[[Path, Path, Feed], None], ...] = (dynamically, statically, prepared, in_half, optimised)


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Go where the tools may leave what they forget to remove."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module", params=CASES)
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, Feed]:
    """Return a case with its file and one call."""
    made, file = registered()[request.param].build(), tmp_path_factory.mktemp("tools") / "model.onnx"
    sample = made.samples[0]
    to_onnx(made.module, sample.args, file, kwargs=sample.kwargs, dynamic_shapes=made.dynamic_shapes)
    tensors = [leaf for leaf in sample.leaves() if isinstance(leaf, torch.Tensor)]
    return request.param, file, {put.name: tensor.numpy() for put, tensor in zip(session(file).get_inputs(), tensors, strict=True)}


@pytest.mark.parametrize("tool", TOOLS)
def test_it_is_taken_as_it_comes(exported: tuple[str, Path, Feed], tool: Callable[[Path, Path, Feed], None], tmp_path: Path) -> None:
    name, file, feed = exported
    if why := NOT_INFERRED.get((name, tool.__name__)):
        with pytest.raises(Exception, match=why):
            tool(file, tmp_path / "made.onnx", feed)
        return
    tool(file, tmp_path / "made.onnx", feed)
    before, after = (session(path).run(None, feed) for path in (file, tmp_path / "made.onnx"))
    for expected, actual in zip(before, after, strict=True):
        assert actual.shape == expected.shape
        assert numpy.abs(actual - expected).max() <= NEAR[tool.__name__] * numpy.abs(expected).max()


@pytest.mark.parametrize(("name", "fused"), [("vit", "SkipLayerNormalization"), ("llama", "SkipSimplifiedLayerNormalization")])
def test_shapes_behind_attention_are_inferred_and_a_norm_takes_the_sum_before_it(name: str, fused: str, tmp_path: Path) -> None:
    made, file = registered()[name].build(), tmp_path / "model.onnx"
    sample = made.samples[0]
    to_onnx(made.module, sample.args, file, kwargs=sample.kwargs, dynamic_shapes=made.dynamic_shapes)
    assert optimize_model(str(file), model_type="bert", opt_level=0).get_fused_operator_statistics()[fused] == 4
