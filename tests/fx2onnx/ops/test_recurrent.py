"""Recurrent layers and their cells: right in ONNX Runtime at the export's size and at another."""

from __future__ import annotations

import pytest
import torch
from inputs import OWN, normal
from operators import check_both
from torch import nn
from torch.export import Dim

from exportlab.cases import Sample
from exportlab.verification.verify import verify
from fx2onnx import ToOnnxError, to_onnx

OPSETS = (18, 26)
RECURRENT = {
    "lstm": nn.LSTM(3, 4),
    "gru": nn.GRU(3, 4),
    "rnn": nn.RNN(3, 4),
    "lstm deep, both ways": nn.LSTM(3, 4, 2, bidirectional=True),
    "gru deep, both ways": nn.GRU(3, 4, 2, bidirectional=True, batch_first=False),
    "rnn of relu": nn.RNN(3, 4, 2, nonlinearity="relu", bidirectional=True),
    "lstm without biases": nn.LSTM(3, 4, bias=False),
    "lstm projected": nn.LSTM(3, 6, proj_size=2),
    "lstm projected, deep, both ways": nn.LSTM(3, 6, 2, proj_size=2, bidirectional=True, bias=False),
    "gru in evaluation": nn.GRU(3, 4, 2, dropout=0.5).eval(),
}


@pytest.mark.parametrize("name", RECURRENT)
def test_recurrent_layers_give_what_eager_gives(name: str) -> None:
    module = RECURRENT[name]
    samples = [Sample((normal(5, batch, 3),)) for batch in (2, 7)]
    program = to_onnx(module, samples[0].args, dynamic_shapes=({1: Dim.DYNAMIC},), **OWN)
    verify(program, module, samples).check()


@pytest.mark.parametrize("module", [nn.LSTM(3, 4, 2, batch_first=True, bidirectional=True), nn.GRU(3, 4, batch_first=True)])
@pytest.mark.parametrize("opset", OPSETS)
def test_recurrent_layers_take_the_batch_first_and_one_sequence(module: nn.Module, opset: int) -> None:
    for x in (normal(2, 5, 3), normal(5, 3)):
        verify(to_onnx(module, (x,), opset_version=opset, **OWN), module, [Sample((x,))]).check()


@pytest.mark.parametrize(
    "module", [nn.LSTMCell(3, 4), nn.GRUCell(3, 4), nn.RNNCell(3, 4, nonlinearity="relu"), nn.GRUCell(3, 4, bias=False)]
)
def test_cells_give_what_eager_gives(module: nn.Module) -> None:
    check_both(module, normal(2, 3), options=OWN)


def test_a_recurrent_layer_is_one_node_and_weights() -> None:
    program = to_onnx(nn.LSTM(3, 4), (normal(5, 2, 3),), **OWN)
    assert [node.op_type for node in program.model.graph] == ["LSTM", "Squeeze"]


def test_a_projected_state_to_begin_with_is_taken() -> None:
    module = nn.LSTM(3, 6, proj_size=2)
    given = normal(5, 2, 3), (normal(1, 2, 2), normal(1, 2, 6))
    verify(to_onnx(module, given, **OWN), module, [Sample(given)]).check()


def test_a_projection_that_no_state_can_be_carried_back_through_is_refused() -> None:
    module = nn.LSTM(3, 6, proj_size=2)
    with torch.no_grad():
        module.weight_hr_l0[1] = module.weight_hr_l0[0]
    with pytest.raises(ToOnnxError, match="rows of the projection are nearly dependent"):
        to_onnx(module, (normal(5, 2, 3),), **OWN)
