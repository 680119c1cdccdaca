"""Convolutions, pooling, attention, resizing, losses, random numbers and recurrent layers give in ORT what they give in eager."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from operators import Call, check, check_both
from torch import nn
from torch.export import Dim

from exportlab.cases import Sample
from exportlab.verification.verify import verify
from fx2onnx import ToOnnxError, to_onnx

aten = torch.ops.aten
OWN = {"fallback": False}
OPSETS = (18, 26)


def rand(*sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(sizes) + len(sizes))
    return torch.randn(sizes, generator=generator).to(dtype)


def image(*sizes: int) -> torch.Tensor:
    return rand(*(sizes or (2, 3, 7, 8)))


def by_weights(function: Any, *weights: Any, **options: Any) -> Any:
    """The function of its first argument alone, so that the sizes of the weights stay."""
    return lambda x: function(x, *weights, **options)


CONVOLUTIONS = {
    "conv1d": (by_weights(F.conv1d, rand(6, 3, 3), rand(6)), image(2, 3, 7)),
    "conv1d unbatched": (by_weights(F.conv1d, rand(6, 3, 3), padding=1), image(3, 7)),
    "conv2d groups": (by_weights(F.conv2d, rand(6, 1, 3, 2), rand(6), 2, 1, 2, 3), image()),
    "conv2d same": (by_weights(F.conv2d, rand(6, 3, 4, 3), rand(6), padding="same", dilation=(1, 2)), image()),
    "conv3d valid": (by_weights(F.conv3d, rand(6, 2, 3, 2, 2), padding="valid"), rand(1, 2, 5, 6, 4)),
    "conv empty": (by_weights(F.conv1d, rand(6, 3, 3)), image(0, 3, 7)),
    "conv float16": (by_weights(F.conv2d, rand(6, 3, 3, 3).half()), image().half()),
    "transpose1d": (by_weights(F.conv_transpose1d, rand(3, 4, 3), None, 3, 2, 2), image(2, 3, 5)),
    "transpose1d long output padding": (by_weights(F.conv_transpose1d, rand(3, 4, 3), None, 1, 2, 1, 1, 2), image(2, 3, 5)),
    "transpose1d beyond all": (by_weights(F.conv_transpose1d, rand(2, 3, 3), rand(3), 1, 1, 3, 1, 4), image(2, 2, 4)),
    "transpose2d": (by_weights(F.conv_transpose2d, rand(4, 3, 3, 3), rand(6), 2, 1, 1, 2), rand(2, 4, 5, 6)),
    "transpose3d unbatched": (by_weights(F.conv_transpose3d, rand(4, 3, 3, 2, 1), rand(3), (1, 2, 3)), rand(4, 3, 4, 5)),
    "convolution": (by_weights(aten.convolution.default, rand(6, 3, 3, 2), None, [2, 1], [1, 1], [1, 1], False, [0, 0], 1), image()),
    "bilinear": (lambda x: F.bilinear(x, x[..., :2], WEIGHT[:, :, :2], WEIGHT[0, 0, :2].repeat(3)), rand(2, 5, 4)),
    "weight norm": (lambda v: torch._weight_norm(v, MAGNITUDE, 1), rand(3, 4, 2)),
}
WEIGHT, MAGNITUDE = rand(6, 4, 3), rand(1, 4, 1)


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_give_what_eager_gives(name: str) -> None:
    check_both(*CONVOLUTIONS[name], options=OWN)


LAYOUTS = {
    "pixel shuffle": (F.pixel_shuffle, image(2, 8, 3, 5), 2),
    "pixel shuffle of one": (F.pixel_shuffle, image(8, 3, 5), 2),
    "pixel shuffle of integers": (F.pixel_shuffle, torch.arange(72).reshape(1, 8, 3, 3), 2),
    "pixel unshuffle": (F.pixel_unshuffle, image(1, 3, 4, 6), 2),
    "channel shuffle": (F.channel_shuffle, image(2, 6, 3), 3),
    "im2col": (F.unfold, image(2, 3, 5, 6), (2, 3), (1, 2), 1, (2, 1)),
    "im2col of one": (F.unfold, image(3, 5, 6), 2),
    "col2im": (F.fold, image(2, 12, 20), (5, 6), 2),
    "cosine similarity": (F.cosine_similarity, rand(2, 3, 4), rand(2, 3, 4)),
    "cosine similarity broadcast": (F.cosine_similarity, rand(2, 1, 4), rand(3, 1)),
    "pairwise distance": (F.pairwise_distance, rand(2, 5, 3), rand(3), 1.0, 1e-6, True),
    "pairwise distance of p=3.5": (F.pairwise_distance, rand(2, 3), rand(2, 3), 3.5),
    "pairwise distance of integers": (F.pairwise_distance, torch.arange(6).view(2, 3), torch.arange(6).view(2, 3) * 3),
    "pairwise distance of nothing": (F.pairwise_distance, rand(0, 3), rand(0, 3)),
    "distances of pairs": (F.pdist, rand(4, 3)),
    "distances of pairs for p=1": (F.pdist, rand(4, 3), 1.0),
    "distances of no pairs": (F.pdist, rand(1, 3)),
    "cosine similarity of numbers": (F.cosine_similarity, torch.tensor(2.0), torch.tensor(3.0), 0),
    "cosine similarity of vectors": (F.cosine_similarity, rand(4), rand(3, 4), 0),
    "cosine similarity of nothing": (F.cosine_similarity, rand(0, 3), rand(0, 3), -1),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_rearrangements_and_distances_give_what_eager_gives(name: str) -> None:
    check_both(*LAYOUTS[name], options=OWN)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embedding_bags_leave_out_padding_and_keep_empty_bags(mode: str) -> None:
    def bag(w: torch.Tensor, i: torch.Tensor, o: torch.Tensor) -> list[torch.Tensor]:
        return [F.embedding_bag(i, w, o, mode=mode, padding_idx=padding) for padding in (None, 4)]

    check(bag, rand(5, 3), torch.tensor([1, 2, 4, 3, 4, 1, 0]), torch.tensor([0, 2, 2, 5]), options=OWN)


POOLS = {
    "max 1d": (F.max_pool1d, image(2, 3, 7), 3, 2, 1, 1, False, True),
    "max 2d dilated": (F.max_pool2d, image(2, 3, 9, 8), (2, 3), 2, 1, (2, 1)),
    "max 2d ties": (F.max_pool2d, image().sign(), 2, None, 0, 1, False, True),
    "max 3d": (F.max_pool3d, image(2, 3, 4, 5, 6), 2, 1, 1, 1, True, True),
    "max of one image": (F.max_pool2d, image(3, 7, 8), 3),
    "max of −inf": (F.max_pool2d, torch.full((1, 2, 4, 4), -torch.inf), 2),
    "max float64": (F.max_pool2d, image().double(), 2),
    "average 2d inside": (F.avg_pool2d, image(), 3, 2, 1, False, False),
    "average 2d ceil": (F.avg_pool2d, image(), 3, 2, 1, True),
    "average 1d last window left out": (F.avg_pool1d, image(2, 3, 6), 2, 3, 1, True),
    "average 3d": (F.avg_pool3d, image(2, 3, 5, 6, 7), (2, 3, 2), 2, (1, 1, 0), True, False),
    "average divisor": (F.avg_pool2d, image(), 3, 2, 1, True, True, 4),
    "average of one image": (F.avg_pool1d, image(3, 7), 3),
    "unpool": (lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2), image(2, 3, 6, 6)),
    "adaptive to one": (F.adaptive_avg_pool2d, image(), 1),
    "adaptive divides": (F.adaptive_avg_pool2d, image(2, 3, 6, 4), (3, 2)),
    "adaptive": (F.adaptive_avg_pool2d, image(), (3, 5)),
    "adaptive longer": (F.adaptive_avg_pool1d, image(2, 3, 3), 7),
    "adaptive 3d": (F.adaptive_avg_pool3d, image(2, 3, 4, 5, 6), (3, 2, 4)),
    "adaptive float64": (F.adaptive_avg_pool2d, image().double(), 3),
    "adaptive NaN stays in its window": (F.adaptive_avg_pool1d, torch.tensor([[1, torch.nan, 2, 3, torch.inf, 3, 4]]), 3),
    "adaptive max": (F.adaptive_max_pool2d, image(), (3, 5), True),
    "adaptive max divides": (F.adaptive_max_pool1d, image(2, 3, 6), 3, True),
    "adaptive max 3d": (F.adaptive_max_pool3d, image(3, 4, 5, 6), (2, 5, 3), True),
}


@pytest.mark.parametrize("name", POOLS)
def test_pools_give_what_eager_gives(name: str) -> None:
    check_both(*POOLS[name], options=OWN)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.integers(1, 4), st.integers(1, 4), st.booleans(), st.booleans(), st.integers(0, 8), st.sampled_from(OPSETS))
def test_ceil_mode_counts_windows_as_torch_does(kernel: int, stride: int, padded: bool, include: bool, more: int, opset: int) -> None:
    padding = kernel // 2 if padded else 0

    def pools(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return F.max_pool1d(x, kernel, stride, padding, 1, True), 1 + F.avg_pool1d(x, kernel, stride, padding, True, include)

    check(pools, rand(1, 1, kernel + more), options=OWN | {"opset_version": opset})


Q, K, V = rand(2, 4, 3, 8), rand(2, 4, 5, 8), rand(2, 4, 5, 6)
SEEN = rand(2, 1, 3, 5) > 0
SEEN[0, 0, 1], SEEN[1, 0, 2] = False, True
ATTENTIONS = {
    "plain": ((Q, K, V), {}),
    "causal, fewer queries": ((Q, K, V), {"is_causal": True}),
    "causal, fewer keys": ((K, Q, Q), {"is_causal": True}),
    "scale": ((Q, K, V), {"scale": 0.3}),
    "float mask": ((Q, K, V, rand(3, 5)), {}),
    "hidden row": ((Q, K, V, SEEN), {}),
    "hidden row of −inf": ((Q, K, V, torch.where(SEEN, 0.0, -torch.inf)), {}),
    "mask of rows": ((Q, K, V, torch.tensor([[True], [False], [True]])), {}),
    "without heads": ((Q[0], K[0], V[0], SEEN[0]), {}),
    "grouped queries": ((Q, K[:, :2], V[:, :2]), {"enable_gqa": True}),
    "one key head": ((Q, K[:, :1], V[:, :1], SEEN), {"enable_gqa": True}),
    "float64": ((Q.double(), K.double(), V.double(), SEEN), {}),
    "float16": ((Q.half(), K.half(), V.half()), {}),
    "empty batch": ((Q[:0], K[:0], V[:0]), {}),
}


@pytest.mark.parametrize("name", ATTENTIONS)
def test_attention_gives_what_eager_gives_and_no_nan(name: str) -> None:
    args, kwargs = ATTENTIONS[name]
    check_both(F.scaled_dot_product_attention, *args, options=OWN, **kwargs)


RESIZED = {
    "nearest": ({"scale_factor": 2}, image()),
    "nearest by 0.7": ({"scale_factor": 0.7}, image()),
    "nearest exact by 1.3": ({"scale_factor": 1.3, "mode": "nearest-exact"}, image()),
    "nearest to a size": ({"size": (13, 3)}, image()),
    "nearest integers": ({"scale_factor": 2}, torch.arange(40, dtype=torch.uint8).reshape(1, 2, 4, 5)),
    "nearest float64": ({"size": (5, 9)}, image().double()),
    "nearest 3d": ({"scale_factor": 2}, image(1, 2, 4, 5, 3)),
    "linear": ({"scale_factor": 3.0, "mode": "linear"}, image(2, 3, 5)),
    "bilinear": ({"scale_factor": 2.5, "mode": "bilinear"}, image()),
    "bilinear to one": ({"size": (1, 3), "mode": "bilinear"}, image()),
    "bilinear corners": ({"size": (1, 9), "mode": "bilinear", "align_corners": True}, image()),
    "bicubic": ({"size": (5, 11), "mode": "bicubic"}, image()),
    "bicubic corners": ({"size": (5, 11), "mode": "bicubic", "align_corners": True}, image()),
    "trilinear": ({"size": (3, 7, 5), "mode": "trilinear"}, image(2, 3, 4, 5, 3)),
    "area": ({"size": (3, 5), "mode": "area"}, image()),
}


@pytest.mark.parametrize("name", RESIZED)
def test_interpolation_gives_what_eager_gives(name: str) -> None:
    options, x = RESIZED[name]
    check_both(lambda x: F.interpolate(x, **options), x, options=OWN)


def test_interpolation_to_a_size_that_moves() -> None:
    check_both(lambda x: F.interpolate(x, size=(x.shape[2] * 2, x.shape[3] + 1), mode="bilinear"), image(), options=OWN)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_antialiasing_is_exact_for_known_sizes(mode: str) -> None:
    check(lambda x: F.interpolate(x, size=(3, 13), mode=mode, antialias=True), image(), options=OWN)
    check(lambda x: F.interpolate(x, scale_factor=0.6, mode=mode, antialias=True), image(), options=OWN)


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_grid_samples_give_what_eager_gives(mode: str, opset: int) -> None:
    for padding, corners in (("zeros", True), ("border", False), ("reflection", False)):
        sample = by_weights(F.grid_sample, 1.3 * rand(2, 6, 7, 2).tanh(), mode=mode, padding_mode=padding, align_corners=corners)
        check(sample, image(2, 3, 4, 5), options=OWN | {"opset_version": opset})


@pytest.mark.parametrize("corners", [True, False])
def test_affine_grids_give_what_eager_gives(corners: bool) -> None:
    check_both(lambda t, x: F.affine_grid(t, list(x.shape), align_corners=corners), rand(2, 2, 3), image(2, 3, 4, 5), options=OWN)
    check_both(lambda t: F.affine_grid(t, [2, 3, 1, 5, 3], align_corners=corners), rand(2, 3, 4), options=OWN)


X, Y, P, SIGNS, CLASSES = rand(4, 3), rand(3, 4).t().contiguous(), rand(4, 3).sigmoid(), rand(4, 3).sign(), torch.tensor([0, 2, 1, 1])
LOSSES = {
    "mse": (F.mse_loss, X, Y),
    "mse promoted": (F.mse_loss, X, Y.double()),
    "l1": (F.l1_loss, X, Y),
    "smooth l1": (F.smooth_l1_loss, X, Y),
    "soft margin": (F.soft_margin_loss, X, SIGNS),
    "bce": (F.binary_cross_entropy, P, 1 - P),
    "bce of 0 and 1": (F.binary_cross_entropy, torch.tensor([0.0, 1, 0.5]), torch.tensor([0.0, 0, 1])),
    "bce with logits": (F.binary_cross_entropy_with_logits, 40 * X, P),
    "kl": (F.kl_div, X, torch.tensor([[0.0, 1, 2]] * 4)),
    "hinge": (F.hinge_embedding_loss, X, SIGNS),
    "margin ranking": (F.margin_ranking_loss, X, Y, SIGNS),
    "triplet": (F.triplet_margin_loss, X, Y, P),
    "cosine embedding": (F.cosine_embedding_loss, X, Y, SIGNS[:, 0].contiguous()),
    "poisson": (F.poisson_nll_loss, X, 4 * P),
    "multi margin": (F.multi_margin_loss, X, CLASSES),
    "multi margin of one": (F.multi_margin_loss, X[0], CLASSES[:1]),
    "multi margin of a number": (F.multi_margin_loss, X[0, 0], CLASSES[0]),
    "margin ranking of integers": (F.margin_ranking_loss, CLASSES, CLASSES * 2, CLASSES - 1),
    "triplet of integers": (F.triplet_margin_loss, CLASSES, CLASSES * 2, CLASSES + 1),
    "cosine embedding of integers": (F.cosine_embedding_loss, CLASSES.view(2, 2), CLASSES.view(2, 2) + 1, torch.tensor([1, -1])),
    "poisson of integers": (F.poisson_nll_loss, CLASSES, CLASSES + 1),
    "nll": (F.nll_loss, X, CLASSES),
    "cross entropy": (F.cross_entropy, X, CLASSES),
    "cross entropy of one": (F.cross_entropy, X[0], CLASSES[0]),
    "cross entropy of probabilities": (F.cross_entropy, X, P),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_give_what_eager_gives_for_every_reduction(name: str) -> None:
    function, *args = LOSSES[name]
    check(lambda *given: [function(*given, reduction=r) for r in ("none", "mean", "sum")], *args, dynamic=True, options=OWN)


WEIGHTED = {
    "nll 2d": (F.nll_loss, rand(2, 3, 4, 5), torch.arange(40).reshape(2, 4, 5) % 3, {"weight": P[0], "ignore_index": 1}),
    "cross entropy smoothed": (F.cross_entropy, X, CLASSES, {"weight": P[0], "ignore_index": 2, "label_smoothing": 0.1}),
    "cross entropy 2d": (F.cross_entropy, rand(2, 3, 4, 5), torch.arange(40).reshape(2, 4, 5) % 3, {"label_smoothing": 0.2}),
    "cross entropy of probabilities": (F.cross_entropy, X, P, {"weight": P[0], "label_smoothing": 0.2}),
    "all ignored": (F.cross_entropy, X, torch.full((4,), -100), {}),
    "bce": (F.binary_cross_entropy, P, 1 - P, {"weight": P}),
    "bce with logits": (F.binary_cross_entropy_with_logits, X, P, {"weight": P[0], "pos_weight": P[1]}),
    "smooth l1": (F.smooth_l1_loss, X, Y, {"beta": 0.3}),
    "huber": (F.huber_loss, X, Y, {"delta": 0.4}),
    "kl of logarithms": (F.kl_div, X, Y, {"log_target": True}),
    "triplet swapped": (F.triplet_margin_loss, X, Y, P, {"swap": True, "p": 1.0}),
    "poisson in full": (F.poisson_nll_loss, P, 4 * P, {"full": True, "log_input": False}),
    "multi margin": (F.multi_margin_loss, X, CLASSES, {"p": 2, "margin": 0.5, "weight": P[0]}),
}


@pytest.mark.parametrize("name", WEIGHTED)
def test_weighted_losses_give_what_eager_gives(name: str) -> None:
    function, *args, options = WEIGHTED[name]
    check(lambda *tensors: function(*tensors, **options), *args, options=OWN)


DRAWN = {
    "rand": lambda x: (torch.rand(x.shape), torch.rand_like(x), torch.randn(x.shape, dtype=torch.float64), torch.randn_like(x).half()),
    "normal": lambda x: (torch.normal(x, 2.0), torch.normal(1.0, x), torch.normal(x, x), torch.normal(1.0, 2.0, x.shape)),
    "integers": lambda x: (torch.randint(3, 9, x.shape), torch.randint_like(x, 9), torch.randint(5, x.shape, dtype=torch.int32)),
    "bernoulli": lambda x: (torch.bernoulli(x), torch.bernoulli(x, 0.3), torch.zeros(x.shape).bernoulli_(0.3)),
    "dropout": lambda x: (F.dropout(x, 0.3), F.dropout(x, 1.0), F.alpha_dropout(x, 0.3, True), torch.native_dropout(x, 0.3, True)[0]),
    "channel dropout": lambda x: F.dropout1d(x.reshape(-1, 20, 1), 0.3),
    "in place": lambda x: (torch.zeros(x.shape).uniform_(1, 3), torch.zeros(x.shape).normal_(2, 3), torch.zeros(x.shape).exponential_(2)),
    "multinomial": lambda x: (torch.multinomial(x, 50), torch.multinomial(x, 60, True)),
    "order": lambda x: torch.randperm(x.shape[0] * x.shape[1]),
}


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("dynamic", [False, True])
def test_random_numbers_have_the_sizes_dtypes_and_moments_of_torch(name: str, dynamic: bool) -> None:
    x = torch.rand(40, 50, generator=torch.Generator().manual_seed(0))
    shapes = (({0: Dim.AUTO, 1: Dim.AUTO},),) if dynamic else None
    expected = DRAWN[name](x)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for made, wanted in zip(to_onnx(Call(DRAWN[name], (x,), {}), (x,), dynamic_shapes=shapes, **OWN)(x), expected, strict=True):
        assert (made.shape, made.dtype) == (wanted.shape, wanted.dtype)
        assert abs(made.double().mean() - wanted.double().mean()) < 0.15 * (1 + wanted.double().std())
        assert abs(made.double().std() - wanted.double().std()) < 0.15 * (1 + wanted.double().std())


def test_a_permutation_is_one_and_samples_without_replacement_differ() -> None:
    x = torch.rand(3, 30) + 0.1
    order, samples = to_onnx(Call(lambda x: (torch.randperm(30), torch.multinomial(x, 30)), (x,), {}), (x,), **OWN)(x)
    assert order.sort().values.tolist() == list(range(30))
    assert samples.sort(-1).values.tolist() == [list(range(30))] * 3


def test_dropout_in_evaluation_leaves_no_node() -> None:
    program = to_onnx(nn.Sequential(nn.ReLU(), nn.Dropout(), nn.Dropout2d(), nn.AlphaDropout()).eval(), (rand(2, 3, 4),), **OWN)
    assert [node.op_type for node in program.model.graph] == ["Relu"]


RECURRENT = {
    "lstm": nn.LSTM(3, 4),
    "gru": nn.GRU(3, 4),
    "rnn": nn.RNN(3, 4),
    "lstm deep, both ways": nn.LSTM(3, 4, 2, bidirectional=True),
    "gru deep, both ways": nn.GRU(3, 4, 2, bidirectional=True, batch_first=False),
    "rnn of relu": nn.RNN(3, 4, 2, nonlinearity="relu", bidirectional=True),
    "lstm without biases": nn.LSTM(3, 4, bias=False),
    "gru in evaluation": nn.GRU(3, 4, 2, dropout=0.5).eval(),
}


@pytest.mark.parametrize("name", RECURRENT)
def test_recurrent_layers_give_what_eager_gives(name: str) -> None:
    module = RECURRENT[name]
    samples = [Sample((rand(5, batch, 3),)) for batch in (2, 7)]
    program = to_onnx(module, samples[0].args, dynamic_shapes=({1: Dim.DYNAMIC},), **OWN)
    verify(program, module, samples).check()


@pytest.mark.parametrize("module", [nn.LSTM(3, 4, 2, batch_first=True, bidirectional=True), nn.GRU(3, 4, batch_first=True)])
@pytest.mark.parametrize("opset", OPSETS)
def test_recurrent_layers_take_the_batch_first_and_one_sequence(module: nn.Module, opset: int) -> None:
    for x in (rand(2, 5, 3), rand(5, 3)):
        verify(to_onnx(module, (x,), opset_version=opset, **OWN), module, [Sample((x,))]).check()


@pytest.mark.parametrize(
    "module", [nn.LSTMCell(3, 4), nn.GRUCell(3, 4), nn.RNNCell(3, 4, nonlinearity="relu"), nn.GRUCell(3, 4, bias=False)]
)
def test_cells_give_what_eager_gives(module: nn.Module) -> None:
    check_both(module, rand(2, 3), options=OWN)


def test_a_recurrent_layer_is_one_node_and_weights() -> None:
    program = to_onnx(nn.LSTM(3, 4), (rand(5, 2, 3),), **OWN)
    assert [node.op_type for node in program.model.graph] == ["LSTM", "Squeeze"]


def test_a_projected_lstm_is_refused() -> None:
    with pytest.raises(ToOnnxError, match="projected"):
        to_onnx(nn.LSTM(3, 4, proj_size=2), (rand(5, 2, 3),), **OWN)


LAYERS = {
    "attention": (nn.MultiheadAttention(8, 2, batch_first=True).eval(), 3),
    "encoder": (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(), 1),
    "transformer": (nn.Transformer(8, 2, 1, 1, 16, batch_first=True).eval(), 2),
}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("opset", OPSETS)
def test_transformer_layers_give_what_eager_gives(name: str, opset: int) -> None:
    module, inputs = LAYERS[name]
    args = (rand(2, 3, 8),) * inputs
    verify(to_onnx(module, args, opset_version=opset, **OWN), module, [Sample(args)]).check()
