"""
How do I get a model in float16 or bfloat16?
============================================

Export a module that is in half precision, convert a float32 file, or halve the weights alone: not all of these three ways run in ONNX
Runtime on a CPU. You get the size of each file, how far its answers are from float32, and what happens to numbers that do not fit.
``to_onnx`` is this site's own exporter, so check what is said of it here on a model of your own.
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
# The middle of a transformer layer, in float32. Its answers are what everything below is held against.


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
# What goes wrong
# ---------------
# A module in ``bfloat16`` is exported by all three. The file of torch.onnx.export, here "dynamo", does not load:

exporters = ("torch.export", "to_onnx", "dynamo")
brain, brain_samples = in_dtype(torch.bfloat16)
compared = compare(brain, brain_samples, dynamic_shapes=batch, exporters=exporters)
assert compared.outcomes() == {"torch.export": "ok", "to_onnx": "ok", "dynamo": "load"}
compared

# %%
# Why
# ---
# ONNX Runtime has no such kernels for a CPU: not for ``Gemm``, nor for much else. ``to_onnx`` computes in float32 there, and rounds after each
# operation, as torch does. All its further nodes are casts, which an accelerator with bfloat16 kernels doesn't need:

ops = compared["to_onnx"].artifact.ops()
assert ops["Cast"] == ops.total() - compared["dynamo"].artifact.ops().total()
dict(ops.most_common())

# %%
# What works: float16
# -------------------
# Both files run, at every size:

half, half_samples = in_dtype(torch.float16)
compared_half = compare(half, half_samples, dynamic_shapes=batch, exporters=exporters)
assert set(compared_half.outcomes().values()) == {"ok"}
compared_half

# %%
# There are few kernels for float16 either, yet ONNX Runtime puts the casts in by itself. It also leaves out those that meet. The square of
# 300 is beyond float16, whose largest number is 65,504, and in the file it never was float16:


class Length(nn.Module):
    def forward(self, x):
        return (x * x).mean(-1).sqrt()


big = torch.full((2, 4), 300.0, dtype=torch.float16)
files = {name: export(name, Length().eval(), (big,)) for name in ("to_onnx", "dynamo")}
answers = {name: run(big)[0].item() for name, run in {"eager": Length(), **files}.items()}
assert list(answers.values()) == [float("inf"), 300.0, 300.0]
answers

# %%
# Do not rely on it: the same file has the infinity where kernels for float16 exist. Which operation is it? ``first_difference`` computes
# each in float64, too, and says what its rounding comes to, what float32 there would bring, and who is nearer:

found = first_difference(files["to_onnx"], big)
assert found.node == "mul"
assert [row.node for row in found.rows if row.named] == ["mul", "mean"]
found

# %%
# The square overflows, and so does the mean: one in float32 is not enough, the two are. In the model, write ``x.float()`` before a square,
# a sum or a norm, and ``.to(x.dtype)`` after it. Then no operation is to blame:


class LengthInFloat(nn.Module):
    def forward(self, x):
        wide = x.float()
        return (wide * wide).mean(-1).sqrt().to(x.dtype)


mended = export("to_onnx", LengthInFloat().eval(), (big,))
assert first_difference(mended, big).node is None
assert LengthInFloat()(big)[0].item() == mended(big)[0].item() == 300

# %%
# Converting a file
# -----------------
# Where you have no module, convert the file. ``keep_io_types`` leaves inputs and outputs in float32. Weights that do not fit become the
# largest number, or the smallest, without a word. A sum that overflows makes the file wrong as written; lesson 210 keeps it in float32:

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
moved = convert_float_to_float16(to_onnx(extreme, (torch.ones(1, 2),)).model_proto)
weights = [onnx.numpy_helper.to_array(w).ravel() for w in moved.graph.initializer]
(large, small), *_ = (weight for weight in weights if len(weight) == 2)
assert large > 65_000 > 1e-7 > small > 0

# %%
# Half the weights alone
# ----------------------
# If it is the size that matters, store the weights in half and compute in float32. Rounding happens once, and no kernel but that of
# ``Cast`` has to know the type. The official exporter computes the casts when it optimises, and stores float32 again; it keeps them
# with ``optimize=False``:


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
# How far apart, how large
# ------------------------
# Against float32, at seven rows that no export saw:

x = samples[1][0]


def of_file(proto):
    return proto.ByteSize(), answers_of(proto, x)


def of_artifact(artifact, x=x):
    return artifact.stats().bytes, artifact(x)


ways = {
    "float32": of_file(program.model_proto),
    "float16 module": of_artifact(compared_half["to_onnx"].artifact, x.half()),
    "bfloat16 module": of_artifact(compared["to_onnx"].artifact, x.bfloat16()),
    "converted, float32 outside": of_file(converted[True]),
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
# ``float16`` keeps about three decimal digits and ``bfloat16`` about two; what it has instead is the range of float32.

assert measures[2]["largest difference"] > 2 * measures[1]["largest difference"]
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3), sharey=True, layout="constrained")
left.barh(list(ways), [row["bytes"] for row in measures], color="#0072B2")
right.barh(list(ways), [row["largest difference"] for row in measures], color="#E69F00")
left.set(xlabel="bytes of the file", title="About half the bytes")
right.set(xlabel="difference from float32", xscale="log", title="bfloat16 strays further")
plt.show()

# %%
# On a CPU, use half precision to make the file smaller. Next: :doc:`lesson 210 </tutorials/210_half_precision>`.
