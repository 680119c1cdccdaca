"""Define the steps of programs: the steps in this file, layers of torch, parts of the test suite, and operators of torch's test database.

A step is an expression of `x` and `y`, both two-dimensional. Its result has any number of rows and the same number of columns. It may
contain `{k}`, a small number, `{n}`, the number of columns, and `{layer}`, the module that it creates.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from .form import Form

ELEMENTWISE = {
    "relu": "torch.relu(x)",
    "sigmoid": "torch.sigmoid(x)",
    "tanh": "torch.tanh(x)",
    "sin": "torch.sin(x)",
    "erf": "torch.erf(x)",
    "gelu": "F.gelu(x)",
    "silu": "F.silu(x)",
    "hardswish": "F.hardswish(x)",
    "softplus": "F.softplus(x)",
    "log1p": "torch.log1p(x.abs())",
    "sqrt": "torch.sqrt(x.abs())",
    "floor": "torch.floor(x)",
    "round": "torch.round(x)",
    "sign": "torch.sign(x)",
    "clamp": "x.clamp(-{k}, {k})",
    "power": "x ** {k}",
    "add": "x + {k}",
    "multiply": "x * {k}",
    "divide": "x / {k}",
    "remainder": "torch.remainder(x, {k})",
    "fmod": "torch.fmod(x, {k})",
    "floor_divide": "torch.floor_divide(x, {k})",
    "where": "torch.where(x > 0, x, {k})",
    "masked_fill": "x.masked_fill(x < 0, {k})",
    "to whole numbers and back": "x.clamp(-9, 9).long().float()",
}
SHAPES = {
    "rows from": "x[{k}:]",
    "rows up to": "x[:-{k}]",
    "every row": "x[::{k}]",
    "flip": "x.flip(0)",
    "roll": "x.roll({k}, 0)",
    "repeat": "x.repeat({k}, 1)",
    "repeat_interleave": "x.repeat_interleave({k}, 0)",
    "transpose": "x.T.reshape(-1, {n})",
    "expand": "x[None].expand({k}, -1, -1).reshape(-1, {n})",
    "pad": "F.pad(x, (0, 0, {k}, 0))",
    "concatenate": "torch.cat([x, y])",
    "stack": "torch.stack([x, x * {k}]).reshape(-1, {n})",
    "unfold": "x.T.reshape(-1).unfold(0, {n}, {k})",
    "columns turned": "x.roll({k}, 1)",
    "triangle": "torch.tril(x, {k})",
    "split": "torch.cat(x.split({k})[::-1])",
    "chunk": "torch.cat(x.chunk({k} + 1, 1)[::-1], 1)",
    "rows of both": "torch.cat([x[: y.shape[0]], y[: x.shape[0]]])",
}
REDUCTIONS = {
    "sum": "x - x.sum(0)",
    "mean": "x - x.mean(0, keepdim=True)",
    "largest": "x - x.amax(0)",
    "smallest": "x - x.amin(1, keepdim=True)",
    "var": "x * x.var(1, keepdim=True)",
    "norm": "x / (x.norm(dim=1, keepdim=True) + 1)",
    "cumsum": "x.cumsum(0)",
    "cummax": "x.cummax(0).values",
    "logsumexp": "x - x.logsumexp(0)",
    "logcumsumexp": "x.logcumsumexp(1)",
    "softmax": "x.softmax(0)",
    "log_softmax": "x.log_softmax(1)",
    "sort": "x.sort(0).values",
    "topk": "torch.cat([x, x.topk(1, 0).values])",
    "argmax": "x + x.argmax(0)",
    "count": "x * (x > 0).sum(0)",
    "any": "x * (x > {k}).any(0)",
}
INDEXING = {
    "rows by number": "x[torch.arange(x.shape[0]) // {k}]",
    "gather": "x.gather(1, (x > 0).long())",
    "index_select": "x.index_select(1, torch.tensor([3, 1, 0, 2]))",
    "scatter": "x.scatter(1, torch.zeros_like(x).long()[:, :1], {k}.0)",
    "rows where": "x[x[:, 0] > -{k}]",
    "index_add": "x.index_add(0, torch.zeros(x.shape[0]).long(), x)",
    "one_hot": "F.one_hot((x[:, 0] > 0).long(), 4) * x",
    "rows by nonzero": "x[(x[:, 0] > -{k}).nonzero()[:, 0]]",
    "columns by argsort": "x[:, x[0].argsort()]",
    "write rows": "x.index_put((torch.arange(x.shape[0]) // {k},), x, accumulate=True)",
    "select by mask": "x + x.masked_select(x > 0).sum()",
    "number of a mask": "x * (x > 0).sum().item()",
    "as many rows as positive": "torch.cat([x, y.new_ones((x[:, 0] > 0).sum().item(), {n})])",
    "row by row": "torch.vmap(lambda row: row.flip(0) * {k})(x)",
}
FUNCTIONS = {
    "linear": "F.linear(x, torch.arange(16.0).reshape(4, 4) / 16)",
    "layer_norm": "F.layer_norm(x, (4,))",
    "group_norm": "F.group_norm(x, 2)",
    "attention": "F.scaled_dot_product_attention(x[None], x[None], x[None])[0]",
    "causal attention": "F.scaled_dot_product_attention(x[None], x[None], x[None], is_causal=True)[0]",
    "attention to y": "F.scaled_dot_product_attention(x[None], y[None], y[None])[0]",
    "matmul": "x @ x.T @ x / x.shape[0]",
    "matmul with y": "x @ y.T @ y / y.shape[0]",
    "distances to y": "torch.cdist(x, y) @ y",
    "einsum": 'torch.einsum("ij,jk->ik", x, torch.ones(4, 4))',
    "conv1d": "F.conv1d(x.T[None], torch.ones(4, 1, 3), padding=1, groups=4)[0].T",
    "avg_pool1d": "F.avg_pool1d(x[None], 3, 1, 1)[0]",
    "max_pool1d": "F.max_pool1d(x[None], 3, 1, 1)[0]",
    "interpolate": "F.interpolate(x.T[None], scale_factor={k}, mode='nearest')[0].T",
}
LAYERS = {
    "Linear": Form("{layer}(x)", "nn.Linear(4, 4)"),
    "LayerNorm": Form("{layer}(x)", "nn.LayerNorm(4)"),
    "RMSNorm": Form("{layer}(x)", "nn.RMSNorm(4)"),
    "BatchNorm1d": Form("{layer}(x)", "nn.BatchNorm1d(4)"),
    "GroupNorm": Form("{layer}(x)", "nn.GroupNorm(2, 4)"),
    "Conv1d": Form("{layer}(x.T[None])[0].T", "nn.Conv1d(4, 4, 3, padding=1)"),
    "dilated Conv1d": Form("{layer}(x.T[None])[0].T", "nn.Conv1d(4, 4, 3, padding='same', dilation={k})"),
    "ConvTranspose1d": Form("{layer}(x.T[None])[0].T", "nn.ConvTranspose1d(4, 4, 3, stride={k})"),
    "Conv2d": Form("{layer}(x[None, None])[0, 0]", "nn.Conv2d(1, 1, 3, padding=1)"),
    "GRU": Form("{layer}(x)[0]", "nn.GRU(4, 4)"),
    "LSTM": Form("{layer}(x[None])[0][0]", "nn.LSTM(4, 4, batch_first=True)"),
    "LSTM both ways": Form("{layer}(x)[0]", "nn.LSTM(4, 2, bidirectional=True)"),
    "RNN": Form("{layer}(x)[0]", "nn.RNN(4, 4, num_layers=2)"),
    "GRUCell": Form("{layer}(x)", "nn.GRUCell(4, 4)"),
    "MultiheadAttention": Form("{layer}(x[None], x[None], x[None])[0][0]", "nn.MultiheadAttention(4, 2, batch_first=True)"),
    "MultiheadAttention to y": Form("{layer}(x, y, y, need_weights=False)[0]", "nn.MultiheadAttention(4, 2)"),
    "TransformerEncoderLayer": Form("{layer}(x[None])[0]", "nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)"),
    "TransformerDecoderLayer": Form("{layer}(x[None], y[None])[0]", "nn.TransformerDecoderLayer(4, 2, 8, batch_first=True)"),
    "Embedding": Form("{layer}(x[:, 0].clamp(0, 4).long())", "nn.Embedding(5, 4)"),
    "EmbeddingBag": Form("{layer}(x.clamp(0, 4).long())", "nn.EmbeddingBag(5, 4, mode='max')"),
    "Bilinear": Form("{layer}(x, x.flip(0))", "nn.Bilinear(4, 4, 4)"),
    "PReLU": Form("{layer}(x)", "nn.PReLU()"),
    "AdaptiveAvgPool1d": Form("x * {layer}(x.T[None])[0].T", "nn.AdaptiveAvgPool1d(1)"),
    "PixelShuffle": Form("{layer}(x.reshape(-1, 4, 1, 1)).reshape(-1, 4)", "nn.PixelShuffle(2)"),
}
ZOO = {  # test cases that map (rows, features) to (any rows, features): number of input and output features
    (3, 3): (
        "names_that_are_stripped", "one_module_two_names", "weight_and_its_transpose", "equal_but_not_shared", "buffer_not_saved",
        "constants_made_in_forward", "weights_in_lists", "symmetric_weight", "cond_on_value", "where_on_value", "cond_with_a_layer",
        "cond_in_cond", "layers_in_a_list", "parts_of_two_rows", "scan_backwards",
        "branch_for_each_row", "half_of_the_rows", "halves_exchanged", "middle_by_narrow", "last_three", "differences_of_neighbours",
        "divided_by_the_number_found", "slice_add", "transposed_view", "columns_swapped_by_views",
        "residual_overwritten", "autograd_function",
    ),
    (3, 4): ("weight_norm", "weights_in_eight_bits"),
    (4, 4): ("experts_all_at_once",),
    (5, 5): ("masked_set", "quantize_dequantize_pair"),
    (9, 9): ("shifted_frequencies",),
    (16, 4): ("mlp", "int8_weights"),
    (16, 16): ("row_loop", "called_twice", "block_stack"),
}  # fmt: skip
STEPS = {name: Form(source) for name, source in (ELEMENTWISE | SHAPES | REDUCTIONS | INDEXING | FUNCTIONS).items()}


def _resize_columns(source: str, features: int, wanted: int) -> str:
    """Return the expression, resized to the requested number of columns."""
    if features == wanted:
        return source
    return f"{source}[:, :{wanted}]" if features > wanted else f"F.pad({source}, (0, {wanted - features}))"


PARTS = {
    f"zoo {name}": Form(_resize_columns("{layer}(" + _resize_columns("x", 4, taken) + ")", given, 4), f"registered_case({name!r}).module()")
    for (taken, given), names in ZOO.items()
    for name in names
}
WRITTEN = STEPS | LAYERS | PARTS


@cache
def forms() -> Mapping[str, Form]:
    """Return all steps by name. The first call imports and runs torch's database of operators, which takes seconds."""
    from .database import operators

    return MappingProxyType(WRITTEN | operators())


def form(name: str) -> Form:
    """Return a step by name.

    Raises:
        KeyError: the name is unknown.
    """
    return WRITTEN[name] if name in WRITTEN else forms()[name]
