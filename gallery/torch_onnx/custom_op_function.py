"""
How do I export a custom operator with custom_translation_table?
================================================================

Register a fake kernel that returns the shape, write the operator as an ``onnxscript`` function, and pass it in
``custom_translation_table``.

Export an operator that you registered with ``torch.library.custom_op``. This recipe adds the fake kernel that ``torch.export`` needs. It
then translates the operator to ONNX for ``torch.onnx.export`` and ``to_onnx``, and shows how to keep it as a single node.
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
# The operator is a smooth activation, implemented in numpy. The model applies it after a linear layer.


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
# Add a fake kernel
# -----------------
# ``torch.export`` runs the model on fake tensors, which have a shape but no values. The numpy code can't use them:

with expect_failure(
    RuntimeError, match=r"no fake impl registered for <CustomOpDef\(lab_fn::bend\)>", lines=1
):
    torch.export.export(model, rows[0])

# %%
# Register a function that returns the output shape without computing the values. ``torch.export`` then keeps the operator as one node:

# sphinx_gallery_start_answer
bend.register_fake(lambda x, sharpness: torch.empty_like(x))
# sphinx_gallery_end_answer
show.program(torch.export.export(model, rows[0], dynamic_shapes=({0: torch.export.Dim.DYNAMIC},)))

# %%
# What goes wrong: an operator without a translation
# --------------------------------------------------
# ``torch.export`` succeeds, because its graph calls your Python function. An ONNX model can't call Python:


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


without_table = compared()
assert without_table.outcomes() == {"torch.export": "ok", "to_onnx": "convert", "dynamo": "convert"}
assert "No ONNX function found for <OpOverload(op='lab_fn.bend'" in str(
    without_table["dynamo"].error
)
without_table

# %%
# The error of ``to_onnx`` also contains the line that calls the operator, and a suggestion:

print(without_table["to_onnx"].error)

# %%
# What works: an onnxscript function
# ----------------------------------
# Write the operator as an ``onnxscript`` function, and pass it in ``custom_translation_table``. Both exporters accept the same table. The
# ``float`` becomes an attribute. The outcome ``ok`` includes batches of 7, 1 and 0 rows, which the export never saw.

domain = values.Opset("lab.fn", 1)


# sphinx_gallery_start_answer
@script(domain, default_opset=opset18)
def Bend(x: FLOAT, sharpness: float) -> FLOAT:
    return x * opset18.Sigmoid(sharpness * x)


# sphinx_gallery_end_answer


with_table = compared(Bend)
# sphinx_gallery_start_ignore
# sphinx_gallery_start_answer
table = {torch.ops.lab_fn.bend.default: Bend}
torch.onnx.export(model, rows[0], custom_translation_table=table, dynamo=True, verbose=False)
# sphinx_gallery_end_answer
# sphinx_gallery_end_ignore
assert set(with_table.outcomes().values()) == {"ok"}
with_table

# %%
# ``torch.onnx.export`` inlines the body of ``Bend``. ``to_onnx`` keeps the call and the function:

inlined, calling = with_table["dynamo"].artifact.model, with_table["to_onnx"].artifact.model
assert [node.op_type for node in inlined.graph] == ["Gemm", "Mul", "Sigmoid", "Mul"]
assert [node.op_type for node in calling.graph] == ["Gemm", "Bend"]
assert not inlined.functions
assert [function.name for function in calling.functions.values()] == ["Bend"]
show.graphs({"torch.onnx.export": inlined, "to_onnx": calling})

# %%
# ``to_onnx`` also accepts a Python function of the graph ``g`` and the operator's arguments, without types or an opset. It appends nodes
# by their ONNX names, and is inlined.


def bent(g, x, sharpness):
    return g.Mul(x, g.Sigmoid(g.Mul(x, sharpness)))


table = {torch.ops.lab_fn.bend.default: bent}
short = export(
    "to_onnx", model, rows[0], dynamic_shapes=({0: "batch"},), custom_translation_table=table
)
assert short.stats().ops == {"Gemm": 1, "Mul": 2, "Sigmoid": 1}
verify(short, model, rows).check()

# %%
# ``torch.onnx.export`` has two requirements because it inlines the function. The function needs a return annotation, and it must use
# opset 18: the exporter starts from that version, although the final model uses opset 20. ``to_onnx`` accepts both functions below.


@script(domain, default_opset=opset18)
def WithoutAnnotation(x: FLOAT, sharpness: float):
    return x * opset18.Sigmoid(sharpness * x)


@script(domain, default_opset=opset20)
def InOpset20(x: FLOAT, sharpness: float) -> FLOAT:
    return x * opset20.Sigmoid(sharpness * x)


assert inlined.opset_imports[""] == 20
attempts = {function.name: compared(function) for function in (WithoutAnnotation, InOpset20)}
assert all(t.outcomes()["to_onnx"] == "ok" for t in attempts.values())
errors = {name: t["dynamo"].error.__cause__ for name, t in attempts.items()}
assert "number of values and replacements must match" in str(errors["WithoutAnnotation"])
assert "version 18 in the model but version 20 in the function" in str(errors["InOpset20"])
show.table([{"function": name, "message": str(error)} for name, error in errors.items()])

# %%
# Keep the operator as one node
# -----------------------------
# If your runtime has a kernel for the operator, the model should contain a node with its name. The model that calls ``Bend`` does. In the
# PyTorch model, ``torch.onnx.ops.symbolic`` adds such a node with both exporters, and the ``if`` lets the module run in Python.
# (``torch.onnx.is_in_onnx_export()`` is true only for ``torch.onnx.export``.)


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
# ONNX Runtime rejects the model until you register a library with the kernel, written :doc:`in Python <custom_op_kernel>` or :doc:`in C++
# </tutorials/308_onnx_in_cpp>`:

with expect_failure(Fail, match="lab.fn:Bend.* is not a registered function/op"):
    onnxruntime.InferenceSession(ir.to_proto(kept.model).SerializeToString())

# %%
# Alternatively, add the definition of ``Bend`` to the model as a function. The same node then runs without a library, and is right at the
# unseen sizes:

definition = ir.from_proto(Bend.to_function_proto())
kept.model.functions[definition.identifier()] = definition
show.graph(kept, title="Kept as one node")
verify(kept, model, rows).check()

# %%
# Next: :doc:`an operator with a recurrence <custom_op_recurrence>`, or :doc:`an operator that changes its input in place
# <custom_op_inplace>`.
