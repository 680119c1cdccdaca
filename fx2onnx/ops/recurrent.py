"""Recurrent layers and cells: LSTM, GRU, RNN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from ..compat.operators import aten
from ..errors import Untranslated
from ..ir.dtypes import DOUBLE
from ..ir.graph import Graph, Tensor
from ..ir.recurrences import recurrences
from ..translate.registry import translates
from .random import dropout

WELL_CONDITIONED = 1000  # the condition number of a projection, with which a state keeps four of its seven digits
LSTM_ORDER, GRU_ORDER, RNN_ORDER = (0, 3, 1, 2), (1, 0, 2), (0,)  # the order of the gates in ONNX, as positions in torch's order
OF_KIND: dict[str, tuple[str, tuple[int, ...], dict[str, Any]]] = {
    "lstm": ("LSTM", LSTM_ORDER, {}),
    "gru": ("GRU", GRU_ORDER, {"linear_before_reset": 1}),
    "rnn_tanh": ("RNN", RNN_ORDER, {"activations": ["Tanh"]}),
    "rnn_relu": ("RNN", RNN_ORDER, {"activations": ["Relu"]}),
}


class Layers(NamedTuple):
    """The configuration of a recurrent network, and the lengths of its sequences, int32, if they differ."""

    biases: bool
    number: int
    dropout: float
    bidirectional: bool
    batch_first: bool
    lengths: Tensor | None = None

    @property
    def directions(self) -> int:
        """1, or 2 if bidirectional."""
        return 1 + self.bidirectional


def run(
    g: Graph,
    op_type: str,
    order: Sequence[int],
    x: Tensor,
    states: Sequence[Tensor],
    weights: Sequence[Tensor],
    layers: Layers,
    **given: Any,
) -> list[Tensor]:
    """Append one ONNX operator for each layer, whose input is the output of the last; return the last output and the final states.

    Args:
        x: (length, batch, features), or (batch, length, features) with batch_first; the output has directions·hidden features.
        states: each (layers·directions, batch, hidden), as the final ones.
        weights: for each layer and direction (gates·hidden, features), (gates·hidden, hidden), and twice (gates·hidden,) if there are
        biases;
            if the hidden state is projected, the second is (gates·hidden, projected), and (projected, hidden) follows.
    """
    if x.dtype == DOUBLE:
        raise Untranslated(f"ONNX Runtime's {op_type} does not compute in float64")
    of_direction = len(weights) // (layers.number * layers.directions)
    of_layer = of_direction * layers.directions
    make = _layer if of_direction == (4 if layers.biases else 2) else _projected_layer
    x = g.Transpose(x, perm=[1, 0, 2]) if layers.batch_first else x
    finals: list[list[Tensor]] = [[] for _ in states]
    for layer in range(layers.number):
        mine = [weights[layer * of_layer + i * of_direction :][:of_direction] for i in range(layers.directions)]
        begin = layer * layers.directions
        initial = [state if layers.number == 1 else g.Slice(state, [begin], [begin + layers.directions], [0]) for state in states]
        x = dropout(g, x, layers.dropout, True) if layer and layers.dropout else x
        x, *last = make(g, op_type, order, x, initial, mine, layers, given)
        for final, value in zip(finals, last, strict=True):
            final.append(value)
    out = g.Transpose(x, perm=[1, 0, 2]) if layers.batch_first else x
    return [out, *(final[0] if layers.number == 1 else g.Concat(*final, axis=0) for final in finals)]


def _layer(
    g: Graph,
    op_type: str,
    order: Sequence[int],
    x: Tensor,
    initial: Sequence[Tensor],
    weights: Sequence[Sequence[Tensor]],
    layers: Layers,
    given: dict[str, Any],
    projection: Tensor | None = None,
) -> list[Tensor]:
    """Append the operator, and concatenate the directions of its output.

    ONNX returns (length, directions, batch, hidden); this function returns (length, batch, directions·hidden).

    Args:
        projection: the matrix that the hidden state is multiplied by, (directions, hidden, projected).
    """
    hidden = weights[0][1].sizes[-1]
    w, r = (_pack_weights(g, [direction[i : i + 1] for direction in weights], order) for i in range(2))
    bias = _pack_weights(g, [direction[2:] for direction in weights], order) if layers.biases else None
    direction = "bidirectional" if layers.bidirectional else None
    out, *last = g.op(
        op_type,
        x,
        w,
        r,
        bias,
        layers.lengths,
        *initial,
        outputs=1 + len(initial),
        hidden_size=hidden,
        direction=direction,
        **_activations(given, layers),
    )
    if projection is not None:
        out, last[0], hidden = g.MatMul(out, projection), g.MatMul(last[0], projection), projection.sizes[-1]
    if not layers.bidirectional:
        return [g.Squeeze(out, [1]), *last]
    return [g.Reshape(g.Transpose(out, perm=[0, 2, 1, 3]), [0, 0, 2 * hidden]), *last]


def _projected_layer(
    g: Graph,
    op_type: str,
    order: Sequence[int],
    x: Tensor,
    initial: Sequence[Tensor],
    weights: Sequence[Sequence[Tensor]],
    layers: Layers,
    given: dict[str, Any],
) -> list[Tensor]:
    """Append a layer with a projected hidden state, for which ONNX has no operator.

    The projection can be applied after all steps, if the weights of the recurrence are multiplied by those of the projection. The
    initial hidden state becomes the shortest vector whose projection it is.
    """
    recurrent, projections = (_stack_constant_weights([direction[i] for direction in weights], g) for i in (1, -1))
    if bool((torch.linalg.cond(projections) > WELL_CONDITIONED).any()):
        raise Untranslated(
            "ONNX has no operator for proj_size, and it cannot be replaced because the rows of the projection are nearly dependent"
        )

    def weight(values: torch.Tensor) -> Tensor:
        return g.initializer(g.shared.names.unique(f"{weights[0][-1].name}/packed"), values.to(torch.float32))

    combined = [weight(product) for product in recurrent @ projections]
    plain = [[direction[0], product, *direction[2:-1]] for direction, product in zip(weights, combined, strict=True)]
    hidden, cell = initial
    hidden = g.MatMul(hidden, weight(torch.linalg.pinv(projections).mT))
    return _layer(g, op_type, order, x, [hidden, cell], plain, layers, given, weight(projections.mT))


def _stack_constant_weights(weights: Sequence[Tensor], g: Graph) -> torch.Tensor:
    """Return constant weights, (directions, …), in float64."""
    data = [tensor for weight in weights if (tensor := _data(g, weight)) is not None]
    if len(data) != len(weights):
        raise Untranslated("ONNX has no operator for proj_size, and it can be replaced only if the weights are constant")
    return torch.stack(data).double()


def _activations(given: dict[str, Any], layers: Layers) -> dict[str, Any]:
    return {key: value * layers.directions if isinstance(value, list) else value for key, value in given.items()}


def _pack_weights(g: Graph, directions: Sequence[Sequence[Tensor]], order: Sequence[int]) -> Tensor:
    """Return the weights of each direction with the gates in ONNX's order: (directions, gates·hidden, …).

    Weights that are initialisers become one initialiser; others are rearranged by Split, Concat and Unsqueeze.
    """
    data = [[tensor for weight in direction if (tensor := _data(g, weight)) is not None] for direction in directions]
    if list(map(len, data)) == list(map(len, directions)):
        rows = [torch.cat([tensor.chunk(len(order))[i] for tensor in direction for i in order]) for direction in data]
        return g.initializer(g.shared.names.unique(f"{directions[0][0].name}/packed"), torch.stack(rows))
    parts_of = [[part for weight in direction for part in _gates(g, weight, order)] for direction in directions]
    joined = [g.Unsqueeze(parts[0] if len(parts) == 1 else g.Concat(*parts, axis=0), [0]) for parts in parts_of]
    return joined[0] if len(joined) == 1 else g.Concat(*joined, axis=0)


def _data(g: Graph, weight: Tensor) -> torch.Tensor | None:
    known = g.body is None and weight.name in g.shared.initializers
    return weight.weight if known else None


def _gates(g: Graph, weight: Tensor, order: Sequence[int]) -> list[Tensor]:
    if len(order) == 1:
        return [weight]
    parts = g.op("Split", weight, axis=0, num_outputs=len(order), outputs=len(order))
    return [parts[i] for i in order]


@translates(aten.lstm.input)
def lstm(
    g: Graph,
    x: Tensor,
    states: Sequence[Tensor],
    weights: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout_p: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> list[Tensor]:
    """lstm(x, (h, c), weights, …) → LSTM for each layer; the gates i, f, g, o become i, o, f, g."""
    layers = Layers(has_biases, num_layers, dropout_p if train else 0.0, bidirectional, batch_first)
    return run(g, "LSTM", LSTM_ORDER, x, states, weights, layers)


@translates(aten.gru.input)
def gru(
    g: Graph,
    x: Tensor,
    state: Tensor,
    weights: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout_p: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> list[Tensor]:
    """gru(x, h, weights, …) → GRU for each layer; the gates r, z, n become z, r, n."""
    layers = Layers(has_biases, num_layers, dropout_p if train else 0.0, bidirectional, batch_first)
    return run(g, "GRU", GRU_ORDER, x, [state], weights, layers, linear_before_reset=1)


@translates(aten.rnn_tanh.input, aten.rnn_relu.input)
def rnn(
    g: Graph,
    x: Tensor,
    state: Tensor,
    weights: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout_p: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> list[Tensor]:
    """rnn_tanh(x, h, weights, …) → RNN for each layer."""
    layers = Layers(has_biases, num_layers, dropout_p if train else 0.0, bidirectional, batch_first)
    return run(g, "RNN", RNN_ORDER, x, [state], weights, layers, activations=[_activation(g)])


@translates(recurrences().of_lengths)
def of_lengths(
    g: Graph,
    x: Tensor,
    lengths: Tensor,
    states: Sequence[Tensor],
    weights: Sequence[Tensor],
    kind: str,
    has_biases: bool,
    num_layers: int,
    dropout_p: float,
    train: bool,
    bidirectional: bool,
) -> list[Tensor]:
    """of_lengths(x, lengths, states, weights, kind, …) → LSTM, GRU or RNN for each layer, with sequence_lens."""
    layers = Layers(has_biases, num_layers, dropout_p if train else 0.0, bidirectional, False, g.cast(lengths, torch.int32))
    op_type, order, given = OF_KIND[kind]
    return run(g, op_type, order, x, states, weights, layers, **given)


def _activation(g: Graph) -> str:
    return "Relu" if "relu" in g.overload._schema.name else "Tanh"


def _linear(g: Graph, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    if x.rank == 2:
        return g.Gemm(x, weight, bias, transB=1)
    product = g.MatMul(x, g.transpose_matrix(weight))
    return product if bias is None else g.Add(product, bias)


@translates(aten.rnn_tanh_cell.default, aten.rnn_relu_cell.default)
def rnn_cell(g: Graph, x: Tensor, h: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None) -> Tensor:
    """rnn_tanh_cell(x, h, w, u, b?, c?) → tanh(x·w + b + h·u + c): Gemm, Add, Tanh or Relu."""
    # x: (batch, features), h and the result: (batch, hidden), w: (hidden, features), u: (hidden, hidden)
    return g.op(_activation(g), g.Add(_linear(g, x, w_ih, b_ih), _linear(g, h, w_hh, b_hh)))


@translates(aten.lstm_cell.default)
def lstm_cell(
    g: Graph,
    x: Tensor,
    states: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> list[Tensor]:
    """lstm_cell(x, (h, c), w, u, b?, c?) → Gemm, Add, Split, Sigmoid, Tanh, Mul."""
    # x: (batch, features), h, c and the results: (batch, hidden), w: (4·hidden, features), u: (4·hidden, hidden)
    hidden, memory = states
    gates = g.Add(_linear(g, x, w_ih, b_ih), _linear(g, hidden, w_hh, b_hh))
    enter, forget, new, leave = g.op("Split", gates, axis=-1, num_outputs=4, outputs=4)
    memory = g.Add(g.Mul(g.Sigmoid(forget), memory), g.Mul(g.Sigmoid(enter), g.Tanh(new)))
    return [g.Mul(g.Sigmoid(leave), g.Tanh(memory)), memory]


@translates(aten.gru_cell.default)
def gru_cell(g: Graph, x: Tensor, h: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None) -> Tensor:
    """gru_cell(x, h, w, u, b?, c?) → Gemm, Split, Sigmoid, Tanh, Add, Mul, Sub."""
    # x: (batch, features), h and the result: (batch, hidden), w: (3·hidden, features), u: (3·hidden, hidden)
    reset, update, new = g.op("Split", _linear(g, x, w_ih, b_ih), axis=-1, num_outputs=3, outputs=3)
    reset_h, update_h, new_h = g.op("Split", _linear(g, h, w_hh, b_hh), axis=-1, num_outputs=3, outputs=3)
    update = g.Sigmoid(g.Add(update, update_h))
    new = g.Tanh(g.Add(new, g.Mul(g.Sigmoid(g.Add(reset, reset_h)), new_h)))
    return g.Add(new, g.Mul(update, g.Sub(h, new)))
