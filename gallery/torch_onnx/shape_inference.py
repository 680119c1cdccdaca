"""
What shape will the output have?
================================

If a file says what shapes its outputs have, you can plan for them: memory, batches, the next model. If it does not, you can infer the
shapes, or run the file and look. Here are five ways to find out, tried on one model whose sizes are sums, halves and counts, and compared
with what really comes out. One of the five is wrong, and says nothing.
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
# Two inputs of *n* and *m* rows. They are joined, halved, pooled, and the positive rows are picked out:


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
# What the exporters know
# -----------------------
# ``torch.export`` computes with sizes as symbols, so it has an expression for each. Both exporters write it into the file, in the names of
# your axes. ``u0`` is a size that depends on values:


def row(who, model):
    dims = {value.name: ", ".join(map(str, value.shape)) for value in model.graph.outputs}
    return {"who": who, **dims}


show.table([row(exporter, file.model) for exporter, file in files.items()])

# %%
# What goes wrong
# ---------------
# Files of other tools, and files that were edited, often have no such notes. Take them out, and have them inferred:


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
found = {tool: row(tool, model) for tool, model in inferred["dynamo"].items()}
show.table(list(found.values()))

# %%
# What each does, and where it gives up:
#
# - ``onnx.shape_inference`` has numbers and names, and no sums. What is neither becomes a new name, ``unk__`` and a number. It lost the 6 of
#   the half as well, since the end of a slice is computed.
# - ``data_prop=True`` follows sizes that are computed with ``Shape`` and ``Concat``, hence *n* in the third result. Sums stay unknown.
# - The pass of ``onnx_ir`` calls the same, with ``data_prop``.
# - ONNX Runtime's symbolic inference computes with expressions, and gives up at counts, which it names by the node.

assert [found[tool]["filled"] for tool in TOOLS] == ["unk__5, 2", "n, 2", "n, 2", "n, 2"]
assert [found[tool]["joined"] for tool in TOOLS][1:] == ["unk__4, 3, 2"] * 2 + ["m + n, 3, 2"]

# %%
# By running
# ----------
# Run the file at three sizes and compare. One row more in *x*: what grows? One more in *y*? A straight line through what was seen:


def sizes_of(file, n, m):
    return [list(result.shape) for result in file(*call(n, m))]


def by_running(file):
    base, more_n, more_m = (sizes_of(file, *sizes) for sizes in ((5, 7), (6, 7), (5, 8)))
    return [
        [line(*dims) for dims in zip(*shapes, strict=True)]
        for shapes in zip(base, more_n, more_m, strict=True)
    ]


def line(base, more_n, more_m):
    n, m = more_n - base, more_m - base
    return str(sympy.sympify(f"{n}*n + {m}*m + {base - 5 * n - 7 * m}"))


observed = dict(zip(RESULTS, by_running(files["dynamo"]), strict=True))
show.table([{name: ", ".join(dims) for name, dims in observed.items()}])

# %%
# It has an answer for every axis, the counts among them, and cannot know better. A half grows with every second row, so it looks like a
# constant here. Which axes move at all, this finds out if you take larger steps; how they move, it does not.

assert observed["first_half"] == ["6", "6"]

# %%
# Who is right?
# -------------
# Put sizes that nobody has seen into each expression, and hold it against what the file returns there. An axis is *unknown* when its
# expression has other names than *n* and *m*:

UNSEEN = ((8, 8), (3, 9), (1, 2), (20, 11))
n, m = sympy.symbols("n m")


def verdict(dim, actual):
    """Of one axis: `dim` is what was said, `actual` the sizes at `UNSEEN`."""
    said = sympy.sympify(dim)
    if said.free_symbols - {n, m}:
        return "unknown"
    promised = [said.subs({n: rows, m: others}) for rows, others in UNSEEN]
    return "right" if promised == actual else "wrong"


def verdicts(exporter):
    actual = [sizes_of(files[exporter], *sizes) for sizes in UNSEEN]
    said = {"written by the exporter": files[exporter].model, **inferred[exporter]}
    said = {who: [value.shape for value in model.graph.outputs] for who, model in said.items()}
    said["by running"] = by_running(files[exporter])
    places = [
        (result, axis) for result, shape in enumerate(actual[0]) for axis in range(len(shape))
    ]
    return {
        who: [
            verdict(str(dims[r][axis]), [shapes[r][axis] for shapes in actual])
            for r, axis in places
        ]
        for who, dims in said.items()
    }


counted = {exporter: verdicts(exporter) for exporter in files}
for found in counted.values():
    assert [who for who, axes in found.items() if "wrong" in axes] == ["by running"]
    assert found["written by the exporter"].count("unknown") == 1
    assert found["onnx"].count("right") < found["onnx, data_prop"].count("right")

right = {exporter: found["onnxruntime"].count("right") for exporter, found in counted.items()}
assert (
    right["to_onnx"]
    < right["dynamo"]
    == counted["dynamo"]["written by the exporter"].count("right")
)

COLORS = {
    "right": show.OUTCOME_COLORS["ok"],
    "unknown": "#CCCCCC",
    "wrong": show.OUTCOME_COLORS["wrong"],
}
figure, plots = plt.subplots(1, 2, figsize=(8, 3), sharey=True, layout="constrained")
for plot, (exporter, found) in zip(plots, counted.items(), strict=True):
    start = [0] * len(found)
    for kind, color in COLORS.items():
        lengths = [axes.count(kind) for axes in found.values()]
        plot.barh(list(found), lengths, left=start, color=color, label=kind)
        start = [a + b for a, b in zip(start, lengths, strict=True)]
    plot.set(xlabel="axes of the results", title=f"file of {exporter}")
    plot.spines[["top", "right"]].set_visible(False)
figure.suptitle("Only running the file gets an axis wrong; the tools leave it unknown")
plots[0].invert_yaxis()
figure.legend(
    *plots[0].get_legend_handles_labels(), ncols=3, loc="outside lower center", frameon=False
)
plt.show()

# %%
# ONNX Runtime knows as much of the one file as the exporter does. In the other, the half is computed with ``Mod``, which it does not follow.
#
# Trust a tool that says *unknown* when it does not know. The exporter computes with expressions and knows most, so keep the shapes that
# it wrote. Next: :doc:`names for axes <names>`, or the lesson on :doc:`shapes that move </tutorials/103_shapes_that_move>`.
