"""
How do I get the output shapes of an ONNX model with shape inference?
=====================================================================

Keep the shapes that the exporter wrote. To infer missing ones, prefer a tool that reports *unknown* to one that guesses.

Output shapes tell you how much memory to allocate and how to connect the next model. If an ONNX model doesn't contain them, you can infer
them or measure them. This recipe compares five ways on a model whose sizes are sums, halves and counts. One of them gives a wrong shape.
"""

import matplotlib.pyplot as plt
import onnx
import onnx_ir as ir
import sympy
import torch
from onnx_ir.passes.common import ShapeInferencePass
from onnxruntime.tools.symbolic_shape_infer import SymbolicShapeInference
from torch import nn

from exportlab import export, show, verify

# %%
# The inputs have *n* and *m* rows. The model joins them, halves and pools the result, and selects its positive rows:


class Sizes(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 6)

    def forward(self, x, y):
        joined = torch.cat([self.linear(x), y])
        half = joined[: joined.shape[0] // 2]
        ones = torch.ones(x.shape[0], 2) * x[:, :2]
        positive = joined[joined[:, 0] > 0]
        return joined.reshape(-1, 3, 2), half, ones, torch.max_pool1d(joined.T, 3, 2), positive


def call(n, m):
    return torch.randn(n, 4), torch.randn(m, 6)


torch.manual_seed(0)
model = Sizes().eval()
axes = ({0: "n"}, {0: "m"})
samples = [call(5, 7), call(3, 9), call(1, 2), call(8, 8)]
RESULTS = ["joined", "first_half", "filled", "pooled", "positive"]
files = {
    name: export(name, model, samples[0], dynamic_shapes=axes, output_names=RESULTS)
    for name in ("dynamo", "to_onnx")
}
for file in files.values():
    verify(file, model, samples).check()

# %%
# Shapes that the exporters write
# -------------------------------
# ``torch.export`` computes with symbolic sizes. Both exporters write the resulting expressions into the ONNX model, with your names.
# ``u0`` is a size that depends on the data:


def row(source, model):
    dims = {value.name: ", ".join(map(str, value.shape)) for value in model.graph.outputs}
    return {"source": source, **dims}


show.table([row(exporter, file.model) for exporter, file in files.items()])
# sphinx_gallery_start_ignore
# sphinx_gallery_start_answer
declared = [str(value.shape) for value in files["dynamo"].model.graph.outputs]
proto = ir.to_proto(files["dynamo"].model)
inferred_proto = SymbolicShapeInference.infer_shapes(proto)
# sphinx_gallery_end_answer
# sphinx_gallery_end_ignore

# %%
# Infer missing shapes
# --------------------
# Models from other tools, and edited models, often lack these shapes. Remove them, and infer them again:


def bare(model):
    proto = ir.to_proto(model)
    del proto.graph.value_info[:]
    for output in proto.graph.output:
        output.type.tensor_type.ClearField("shape")
    return proto


def by_onnx_ir(proto):
    return ShapeInferencePass()(ir.from_proto(proto)).model


TOOLS = {
    "onnx": lambda proto: ir.from_proto(onnx.shape_inference.infer_shapes(proto)),
    "onnx, data_prop": lambda p: ir.from_proto(
        onnx.shape_inference.infer_shapes(p, data_prop=True)
    ),
    "onnx_ir": by_onnx_ir,
    "onnxruntime": lambda proto: ir.from_proto(SymbolicShapeInference.infer_shapes(proto)),
}
inferred = {
    exporter: {tool: infer(bare(file.model)) for tool, infer in TOOLS.items()}
    for exporter, file in files.items()
}
results = {tool: row(tool, model) for tool, model in inferred["dynamo"].items()}
show.table(list(results.values()))

# %%
# The tools support different sizes:
#
# - ``onnx.shape_inference`` supports numbers and names, but not sums. It gives any other size a new name, ``unk__`` with a number. It
#   also loses the size 6 of the halved output, because the end of the slice is computed.
# - ``data_prop=True`` follows sizes computed with ``Shape`` and ``Concat``, so it finds *n* in the third result. Sums remain unknown.
# - The pass of ``onnx_ir`` calls the same function with ``data_prop``.
# - ONNX Runtime's symbolic inference computes expressions. It doesn't support counts, which it names after the node.

assert [results[tool]["filled"] for tool in TOOLS] == ["unk__5, 2", "n, 2", "n, 2", "n, 2"]
assert [results[tool]["joined"] for tool in TOOLS][1:] == ["unk__4, 3, 2"] * 2 + ["m + n, 3, 2"]

# %%
# Measure shapes by running the model
# -----------------------------------
# Run the model at three sizes: a base size, one more row in *x*, and one more in *y*. Fit a linear expression to each output size:


def sizes_of(file, n, m):
    return [list(result.shape) for result in file(*call(n, m))]


def from_runs(file):
    base, more_n, more_m = (sizes_of(file, *sizes) for sizes in ((5, 7), (6, 7), (5, 8)))
    return [
        [line(*dims) for dims in zip(*shapes, strict=True)]
        for shapes in zip(base, more_n, more_m, strict=True)
    ]


def line(base, more_n, more_m):
    n, m = more_n - base, more_m - base
    return str(sympy.sympify(f"{n}*n + {m}*m + {base - 5 * n - 7 * m}"))


observed = dict(zip(RESULTS, from_runs(files["dynamo"]), strict=True))
show.table([{name: ", ".join(dims) for name, dims in observed.items()}])

# %%
# This gives an expression for every dimension, including counts, but it can be wrong. A half grows with every second row, so it looks
# constant here. Larger steps show which dimensions are dynamic, but not how they change.

assert observed["first_half"] == ["6", "6"]

# %%
# Compare the results
# -------------------
# Insert sizes that no run used into each expression, and compare them with the actual shapes. A dimension is *unknown* if its expression
# contains names other than *n* and *m*:

UNSEEN = ((8, 8), (3, 9), (1, 2), (20, 11))
n, m = sympy.symbols("n m")


def verdict(dim, actual):
    """Compare the expression `dim` of an axis with its `actual` sizes at `UNSEEN`."""
    declared = sympy.sympify(dim)
    if declared.free_symbols - {n, m}:
        return "unknown"
    expected = [declared.subs({n: rows, m: others}) for rows, others in UNSEEN]
    return "right" if expected == actual else "wrong"


def verdicts(exporter):
    actual = [sizes_of(files[exporter], *sizes) for sizes in UNSEEN]
    declared = {"from the exporter": files[exporter].model, **inferred[exporter]}
    declared = {
        source: [value.shape for value in model.graph.outputs] for source, model in declared.items()
    }
    declared["from runs"] = from_runs(files[exporter])
    positions = [
        (result, axis) for result, shape in enumerate(actual[0]) for axis in range(len(shape))
    ]
    return {
        source: [
            verdict(str(dims[r][axis]), [shapes[r][axis] for shapes in actual])
            for r, axis in positions
        ]
        for source, dims in declared.items()
    }


counted = {exporter: verdicts(exporter) for exporter in files}
for results in counted.values():
    assert [source for source, axes in results.items() if "wrong" in axes] == ["from runs"]
    assert results["from the exporter"].count("unknown") == 1
    assert results["onnx"].count("right") < results["onnx, data_prop"].count("right")

right = {exporter: results["onnxruntime"].count("right") for exporter, results in counted.items()}
assert right["to_onnx"] < right["dynamo"] == counted["dynamo"]["from the exporter"].count("right")

COLORS = {
    "right": show.OUTCOME_COLORS["ok"],
    "unknown": "#CCCCCC",
    "wrong": show.OUTCOME_COLORS["wrong"],
}
figure, plots = plt.subplots(1, 2, figsize=(8, 3), sharey=True, layout="constrained")
for plot, (exporter, results) in zip(plots, counted.items(), strict=True):
    start = [0] * len(results)
    for kind, color in COLORS.items():
        lengths = [axes.count(kind) for axes in results.values()]
        plot.barh(list(results), lengths, left=start, color=color, label=kind)
        start = [a + b for a, b in zip(start, lengths, strict=True)]
    plot.set(xlabel="axes of the outputs", title=f"model from {exporter}")
    plot.spines[["top", "right"]].set_visible(False)
figure.suptitle("Shapes from runs contain errors; the tools report unknown instead")
plots[0].invert_yaxis()
figure.legend(
    *plots[0].get_legend_handles_labels(), ncols=3, loc="outside lower center", frameon=False
)
plt.show()

# %%
# For the model from ``torch.onnx.export`` ("dynamo"), ONNX Runtime finds as many shapes as the exporter wrote. In the model from
# ``to_onnx``, the half uses ``Mod``, which ONNX Runtime doesn't follow.
#
# Next: :doc:`names of dimensions <names>`, or the lesson on :doc:`dynamic shapes </tutorials/103_shapes_that_move>`.
