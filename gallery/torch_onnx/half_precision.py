"""
How do I export a float16 or bfloat16 model to ONNX?
====================================================

Convert the module with ``.half()`` and export it as usual. On a CPU, half precision makes the file smaller; a bfloat16 model may not load.

Export a module in half precision, convert a float32 ONNX file, or store only the weights in half precision. Not all of these models run
in ONNX Runtime on a CPU. This recipe compares their sizes and errors, and shows what happens to numbers that don't fit.
"""

import copy

import matplotlib.pyplot as plt
import onnx
import onnxruntime
import torch
from onnxruntime.transformers.float16 import convert_float_to_float16
from torch import nn

from exportlab import compare, export, show, to_onnx
from exportlab.verification.divergence import first_difference

# %%
# The model is the feed-forward block of a transformer layer. Its float32 output is the reference for everything below.


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(32), nn.Linear(32, 128), nn.Linear(128, 32)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


torch.manual_seed(0)
model = Block().eval()
samples = [(torch.randn(rows, 32),) for rows in (4, 7, 1, 0)]
batch = ({0: "batch"},)


def in_dtype(dtype):
    return copy.deepcopy(model).to(dtype), [(x.to(dtype),) for (x,) in samples]


# %%
# What goes wrong: bfloat16 on a CPU
# ----------------------------------
# All three exporters export the ``bfloat16`` module. ONNX Runtime doesn't load the model from ``torch.onnx.export`` ("dynamo"):

exporters = ("torch.export", "to_onnx", "dynamo")
brain, brain_samples = in_dtype(torch.bfloat16)
compared = compare(brain, brain_samples, dynamic_shapes=batch, exporters=exporters)
assert compared.outcomes() == {"torch.export": "ok", "to_onnx": "ok", "dynamo": "load"}
compared

# %%
# Why bfloat16 doesn't load
# -------------------------
# ONNX Runtime's CPU provider has no bfloat16 kernel for ``Gemm`` or for most other operators. An accelerator that has them can run this
# model. ``to_onnx`` writes for CPUs: it computes in float32 and rounds after each operation. All additional nodes are casts:

ops = compared["to_onnx"].artifact.ops()
assert ops["Cast"] == ops.total() - compared["dynamo"].artifact.ops().total()
dict(ops.most_common())

# %%
# Export a float16 module
# -----------------------
# Both ONNX models run at every size:

half, half_samples = in_dtype(torch.float16)
# sphinx_gallery_start_ignore
# sphinx_gallery_start_answer
half, x = copy.deepcopy(model).half(), torch.randn(4, 32).half()
program = torch.onnx.export(half, (x,), dynamic_shapes=({0: "batch"},), dynamo=True, verbose=False)
# sphinx_gallery_end_answer
# sphinx_gallery_end_ignore
compared_half = compare(half, half_samples, dynamic_shapes=batch, exporters=exporters)
assert set(compared_half.outcomes().values()) == {"ok"}
compared_half

# %%
# The CPU provider has few float16 kernels too, but ONNX Runtime inserts casts. It also removes casts that cancel, so intermediate results
# can stay in float32. The square of 300 exceeds 65,504, the largest float16 number. Eager returns infinity, and both ONNX models return
# 300:


class Length(nn.Module):
    def forward(self, x):
        return (x * x).mean(-1).sqrt()


big = torch.full((2, 4), 300.0, dtype=torch.float16)
files = {name: export(name, Length().eval(), (big,)) for name in ("to_onnx", "dynamo")}
answers = {name: run(big)[0].item() for name, run in {"eager": Length(), **files}.items()}
assert list(answers.values()) == [float("inf"), 300.0, 300.0]
answers

# %%
# Don't rely on this: the same model returns infinity where float16 kernels exist. Use ``first_difference`` to find the operation that
# overflows. It repeats each operation in float64, and reports its rounding error, that of float32, and whether eager or ONNX is closer:

difference = first_difference(files["to_onnx"], big)
assert difference.node == "mul"
assert [row.node for row in difference.rows if row.named] == ["mul", "mean"]
difference

# %%
# Both the square and the mean overflow, so computing one of them in float32 isn't enough. In the model, write ``x.float()`` before a
# square, a sum or a norm, and ``.to(x.dtype)`` after it. ``first_difference`` then names no operation:


class LengthInFloat(nn.Module):
    def forward(self, x):
        wide = x.float()
        return (wide * wide).mean(-1).sqrt().to(x.dtype)


fixed = export("to_onnx", LengthInFloat().eval(), (big,))
assert first_difference(fixed, big).node is None
assert LengthInFloat()(big)[0].item() == fixed(big)[0].item() == 300

# %%
# Convert a file with convert_float_to_float16
# --------------------------------------------
# If you have no module, convert the ONNX file. ``keep_io_types`` keeps inputs and outputs in float32. Weights that don't fit become the
# largest or smallest float16 number without a warning. If a sum overflows, the converted model is wrong; lesson 210 keeps it in float32:

program = to_onnx(model, samples[0], dynamic_shapes=batch)
converted = {
    keep: convert_float_to_float16(copy.deepcopy(program.model_proto), keep_io_types=keep)
    for keep in (True, False)
}


def answers_of(proto, x):
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    (given,) = session.get_inputs()
    x = x.half() if given.type == "tensor(float16)" else x
    return torch.from_numpy(session.run(None, {given.name: x.numpy()})[0])


for (x,) in samples[:3]:
    for proto in converted.values():
        assert (answers_of(proto, x).float() - model(x)).abs().max() < 1e-2

extreme = nn.Linear(2, 1).eval()
extreme.weight.data = torch.tensor([[1e6, 1e-9]])
converted_extreme = convert_float_to_float16(to_onnx(extreme, (torch.ones(1, 2),)).model_proto)
weights = [onnx.numpy_helper.to_array(w).ravel() for w in converted_extreme.graph.initializer]
(large, small), *_ = (weight for weight in weights if len(weight) == 2)
assert large > 65_000 > 1e-7 > small > 0

# %%
# Store only the weights in half precision
# ----------------------------------------
# To make only the file smaller, store the weights in half precision and compute in float32. The weights are rounded once, and only
# ``Cast`` needs a kernel for the type. ``torch.onnx.export`` folds the casts when it optimises, and stores float32 weights again. With
# ``optimize=False`` it keeps the casts:


class Stored(nn.Module):
    def __init__(self, dtype):
        super().__init__()
        self.block = in_dtype(dtype)[0]

    def forward(self, x):
        weights = {name: w.float() for name, w in self.block.state_dict(keep_vars=True).items()}
        return torch.func.functional_call(self.block, weights, (x,))


stored = {
    dtype: compare(Stored(dtype).eval(), samples, dynamic_shapes=batch, exporters=exporters[1:])
    for dtype in (torch.float16, torch.bfloat16)
}
for comparison in stored.values():
    assert set(comparison.outcomes().values()) == {"ok"}
    assert comparison["dynamo"].artifact.ops()["Cast"] == 0
kept = export("dynamo", Stored(torch.float16).eval(), *samples[:1], optimize=False)
assert kept.ops()["Cast"] == len(model.state_dict())
stored[torch.bfloat16]

# %%
# Compare sizes and accuracy
# --------------------------
# We compare all models with float32 on seven rows, a size that no export saw:

x = samples[1][0]


def of_file(proto):
    return proto.ByteSize(), answers_of(proto, x)


def of_artifact(artifact, x=x):
    return artifact.stats().bytes, artifact(x)


ways = {
    "float32": of_file(program.model_proto),
    "float16 module": of_artifact(compared_half["to_onnx"].artifact, x.half()),
    "bfloat16 module": of_artifact(compared["to_onnx"].artifact, x.bfloat16()),
    "converted, float32 I/O": of_file(converted[True]),
    "converted": of_file(converted[False]),
    "float16 weights": of_artifact(stored[torch.float16]["to_onnx"].artifact),
    "bfloat16 weights": of_artifact(stored[torch.bfloat16]["to_onnx"].artifact),
}
apart = [(answer.float() - model(x)).abs().max().item() for _, answer in ways.values()]
measures = [
    {"way": way, "bytes": size, "largest difference": float(f"{largest:.1e}")}
    for (way, (size, _)), largest in zip(ways.items(), apart, strict=True)
]
show.table([{**row, "bytes": f"{row['bytes']:,}"} for row in measures])

# %%
# ``float16`` keeps about three decimal digits. ``bfloat16`` keeps about two, but it has the range of float32.

assert measures[2]["largest difference"] > 2 * measures[1]["largest difference"]
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3), sharey=True, layout="constrained")
left.barh(list(ways), [row["bytes"] for row in measures], color="#0072B2")
right.barh(list(ways), [row["largest difference"] for row in measures], color="#E69F00")
left.set(xlabel="file size in bytes", title="About half the size")
right.set(xlabel="difference from float32", xscale="log", title="bfloat16 differs more")
plt.show()

# %%
# Next: :doc:`lesson 210 on float16 and bfloat16 </tutorials/210_half_precision>`.
