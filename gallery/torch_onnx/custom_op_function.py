"""
How do I export an operator of my own?
======================================

Here a PyTorch operator is written in numpy, and the exporters know nothing about it. You will see the two things they ask for, how to
say in ONNX what the operator computes, once for the official exporter and for ``to_onnx``, and how to keep it in the file as one node.

``to_onnx`` is this site's own exporter, so check what is said of it here on a model of your own.
"""

# sphinx_gallery_thumbnail_number = -1
import numpy as np
import onnx_ir as ir
import onnxruntime
import torch
from onnxruntime.capi.onnxruntime_pybind11_state import Fail
from onnxscript import FLOAT, opset18, opset20, script, values
from torch import nn

from exportlab import compare, expect_failure, export, show, verify

# %%
# The operator is a smooth activation. The model is a linear layer followed by it.


@torch.library.custom_op("lab_fn::bend", mutates_args=())
def bend(x: torch.Tensor, sharpness: float) -> torch.Tensor:
    return torch.from_numpy(x.numpy() / (1 + np.exp(-sharpness * x.numpy())))


class BentLinear(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x):
        return bend(self.linear(x), 2.0)


torch.manual_seed(0)
model = BentLinear().eval()
rows = [(torch.randn(n, 4),) for n in (4, 7, 1, 0)]

# %%
# The first thing that is missing: a shape
# ----------------------------------------
# Capture runs the model on fake tensors, which have a shape and no values. Numpy can do nothing with those:

with expect_failure(
    RuntimeError, match=r"no fake impl registered for <CustomOpDef\(lab_fn::bend\)>", lines=1
):
    torch.export.export(model, rows[0])

# %%
# So say what comes out, without computing it. Then capture keeps the operator as one node:

bend.register_fake(lambda x, sharpness: torch.empty_like(x))
show.program(torch.export.export(model, rows[0], dynamic_shapes=({0: torch.export.Dim.DYNAMIC},)))

# %%
# The second thing that is missing: a translation
# -----------------------------------------------
# ``torch.export`` is content, because its graph calls your Python function. An ONNX file cannot call it:


def compared(function=None):
    table = {torch.ops.lab_fn.bend.default: function} if function else {}
    options = {name: {"custom_translation_table": table} for name in ("dynamo", "to_onnx")}
    return compare(
        model,
        rows,
        dynamic_shapes=({0: "batch"},),
        exporters=("torch.export", "to_onnx", "dynamo"),
        options=options,
    )


untold = compared()
assert untold.outcomes() == {"torch.export": "ok", "to_onnx": "convert", "dynamo": "convert"}
assert "No ONNX function found for <OpOverload(op='lab_fn.bend'" in str(untold["dynamo"].error)
untold

# %%
# ``to_onnx`` adds who called it, and what to do:

print(untold["to_onnx"].error)

# %%
# What works: say it in ONNX
# --------------------------
# Write the operator once more as an ``onnxscript`` function, and hand it over in ``custom_translation_table``, the same table to both.
# The ``float`` becomes an attribute. ``ok`` below includes batches of 7, 1 and 0 rows, which the export never saw.

domain = values.Opset("lab.fn", 1)


@script(domain, default_opset=opset18)
def Bend(x: FLOAT, sharpness: float) -> FLOAT:
    return x * opset18.Sigmoid(sharpness * x)


told = compared(Bend)
assert set(told.outcomes().values()) == {"ok"}
told

# %%
# The official exporter copies the body of ``Bend`` to the place of the call, and drops the function. ``to_onnx`` keeps both:

inlined, calling = told["dynamo"].artifact.model, told["to_onnx"].artifact.model
assert [node.op_type for node in inlined.graph] == ["Gemm", "Mul", "Sigmoid", "Mul"]
assert [node.op_type for node in calling.graph] == ["Gemm", "Bend"]
assert not inlined.functions
assert [function.name for function in calling.functions.values()] == ["Bend"]
show.graphs({"torch.onnx.export": inlined, "to_onnx": calling})

# %%
# ``to_onnx`` takes a shorter spelling as well, with no types and no opset to choose: a function of the graph ``g`` and of the arguments of
# the operator. It appends nodes by their ONNX names, and is spelt out in the file.


def bent(g, x, sharpness):
    return g.Mul(x, g.Sigmoid(g.Mul(x, sharpness)))


table = {torch.ops.lab_fn.bend.default: bent}
short = export(
    "to_onnx", model, rows[0], dynamic_shapes=({0: "batch"},), custom_translation_table=table
)
assert short.stats().ops == {"Gemm": 1, "Mul": 2, "Sigmoid": 1}
verify(short, model, rows).check()

# %%
# The official exporter's copying has two traps. The result needs its annotation, and the function has to be written in opset 18: the
# exporter starts from that one, although the file ends up in opset 20. ``to_onnx`` does not copy, and takes both functions.


@script(domain, default_opset=opset18)
def WithoutAnnotation(x: FLOAT, sharpness: float):
    return x * opset18.Sigmoid(sharpness * x)


@script(domain, default_opset=opset20)
def InOpset20(x: FLOAT, sharpness: float) -> FLOAT:
    return x * opset20.Sigmoid(sharpness * x)


assert inlined.opset_imports[""] == 20
tried = {function.name: compared(function) for function in (WithoutAnnotation, InOpset20)}
assert all(t.outcomes()["to_onnx"] == "ok" for t in tried.values())
errors = {name: t["dynamo"].error.__cause__ for name, t in tried.items()}
assert "number of values and replacements must match" in str(errors["WithoutAnnotation"])
assert "version 18 in the model but version 20 in the function" in str(errors["InOpset20"])
show.table([{"function": name, "message": str(error)} for name, error in errors.items()])

# %%
# The other choice: keep it as one node
# -------------------------------------
# If your runtime has a kernel of its own for the operator, the file should name the operator, not spell it out. The file with the call of
# ``Bend`` does. From the model, ``torch.onnx.ops.symbolic`` writes such a node, for both exporters; the ``if`` keeps the module running in
# Python. (``torch.onnx.is_in_onnx_export()`` is true for the official exporter alone.)


class OpaqueLinear(BentLinear):
    def forward(self, x):
        if not torch.compiler.is_exporting():
            return super().forward(x)
        y = self.linear(x)
        return torch.onnx.ops.symbolic(
            "lab.fn::Bend", (y,), {"sharpness": 2.0}, dtype=y.dtype, shape=y.shape, version=1
        )


opaque = OpaqueLinear().eval()
opaque.load_state_dict(model.state_dict())
for exporter in ("to_onnx", "dynamo"):
    kept = export(exporter, opaque, rows[0], dynamic_shapes=({0: "batch"},))
    assert [(node.domain, node.op_type) for node in kept.model.graph] == [
        ("", "Gemm"),
        ("lab.fn", "Bend"),
    ]

# %%
# ONNX Runtime refuses the file until you register a library with that kernel, written :doc:`in Python <custom_op_kernel>` or
# :doc:`in C++ </tutorials/308_onnx_in_cpp>`:

with expect_failure(Fail, match="lab.fn:Bend.* is not a registered function/op"):
    onnxruntime.InferenceSession(ir.to_proto(kept.model).SerializeToString())

# %%
# Or let the file bring the definition along: an ONNX model can hold functions, and ``Bend`` above can be written as one. Then the same
# node needs no library, and is right at the unseen sizes:

definition = ir.from_proto(Bend.to_function_proto())
kept.model.functions[definition.identifier()] = definition
show.graph(kept, title="Kept as one node")
verify(kept, model, rows).check()

# %%
# An exporter needs two things from you: the shape that comes out (``to_onnx`` may find it by running), and either the meaning of the operator
# or a name for it. Next:
# :doc:`an operator that walks along time <custom_op_recurrence>`, or :doc:`one that changes its input in place <custom_op_inplace>`.
