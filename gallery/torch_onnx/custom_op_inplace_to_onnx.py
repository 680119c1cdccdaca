"""
How do I export an in-place custom operator with to_onnx?
=========================================================

Write a translation that returns the new value of the tensor; ``to_onnx`` updates the later uses. You pass on the state of buffers
yourself.

Write one translation for a custom operator that changes its input, including calls on a view. This recipe also exports a model that
changes a buffer: the state becomes an input and an output of the ONNX model.
"""

# sphinx_gallery_thumbnail_number = -1
import numpy as np
import onnxruntime
import torch
from torch import nn

from exportlab import compare, expect_failure, export, show, to_onnx, verify
from exportlab.messages import heard
from fx2onnx.errors import MutationError

# %%
# The operator writes into ``x`` and returns nothing. It is implemented in numpy, so exporters can't trace it. The model calls it on a
# view: two of its three columns.


@torch.library.custom_op("lab_state::clip_", mutates_args={"x"})
def clip_(x: torch.Tensor, limit: float) -> None:
    np.clip(x.numpy(), -limit, limit, out=x.numpy())


class TwoColumns(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x):
        y = self.linear(x)
        clip_(y[:, :2], 0.5)
        return y * 2


torch.manual_seed(0)
model = TwoColumns().eval()
rows = [(torch.randn(n, 4),) for n in (4, 7, 1, 0)]
batch = ({0: "batch"},)
assert (model.linear(rows[0][0])[:, :2].abs() > 0.5).any()

# %%
# What goes wrong: an operator without a translation
# --------------------------------------------------
# The exporters have no translation for the operator:

without_table = compare(model, rows, dynamic_shapes=batch)
assert without_table.outcomes() == {
    "torch.export": "ok",
    "to_onnx": "convert",
    "dynamo": "convert",
    "torchscript": "wrong",
}
without_table

# %%
# The error of ``to_onnx`` contains the operator and the line that calls it:

print(without_table["to_onnx"].error)

# %%
# What works: return the new value
# --------------------------------
# ONNX operators return values and don't change their inputs. So the translation returns *the new value of the tensor that the operator
# changes*. It accepts the graph under construction and the operator's arguments. ``g.Clip`` appends a ``Clip`` node:


# sphinx_gallery_start_answer
def clipped(g, x, limit):
    return g.Clip(x, -limit, limit)


# sphinx_gallery_end_answer


# sphinx_gallery_start_answer
table = {"custom_translation_table": {torch.ops.lab_state.clip_.default: clipped}}
# sphinx_gallery_end_answer
with_table = compare(
    model, rows, dynamic_shapes=batch, exporters=("to_onnx", "dynamo"), options={"to_onnx": table}
)
assert with_table.outcomes() == {"to_onnx": "ok", "dynamo": "convert"}
with_table

# %%
# ``torch.onnx.export`` ("dynamo") has the same option, with an ``onnxscript`` function, but it fails before it uses the table. :doc:`This
# recipe <custom_op_inplace>` shows three ways to fix it.
#
# How views are handled
# ---------------------
# ``clipped`` received two columns and returned two. The captured graph contains the call, but no link from it to the later use of ``y``:

# sphinx_gallery_start_answer
program = to_onnx(model, rows[0], dynamic_shapes=batch, **table)
# sphinx_gallery_end_answer
show.program(program.exported_program)

# %%
# ``to_onnx`` tracks which tensors share memory: ``slice_1`` shares the memory of ``linear``. After the write, it puts the new columns
# back into the full tensor with a ``ScatterND``, and ``mul`` uses the full tensor. Without a view, the operator is just a ``Clip``:


class AllColumns(TwoColumns):
    def forward(self, x):
        y = self.linear(x)
        clip_(y, 0.5)
        return y * 2


whole = to_onnx(AllColumns().eval(), rows[0], dynamic_shapes=batch, **table)
assert [node.op_type for node in whole.model.graph] == ["Gemm", "Clip", "Mul"]
assert "ScatterND" in [node.op_type for node in program.model.graph]
verify(program, model, rows).check()

# %%
# Changes to buffers and inputs
# -----------------------------
# ``y`` is local to the call. A change to a buffer or an input remains visible after the call, which an ONNX model doesn't support. This
# model keeps a running sum, clipped in place:


class Summing(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(4))

    def forward(self, x):
        self.total.add_(x.sum(0))
        clip_(self.total, 10.0)
        return x + self.total


summing = Summing().eval()
with expect_failure(MutationError, match="the model changes total"):
    to_onnx(summing, rows[0], dynamic_shapes=batch, **table)

# %%
# If the model changes an input, the ONNX model computes with the new values but leaves the input unchanged. ``to_onnx`` emits a warning:


class Spoiling(nn.Module):
    def forward(self, x):
        clip_(x, 0.5)
        return x * 2


with heard() as messages:
    spoiling = to_onnx(Spoiling().eval(), (rows[0][0].clone(),), dynamic_shapes=batch, **table)
assert spoiling.report.unchanged_inputs == ("x",)
messages

# %%
# Export the state as an input and an output
# ------------------------------------------
# With ``mutations="outputs"``, a changed buffer becomes an input, and its new value is an additional output with the buffer's name:

state = {"mutations": "outputs", "output_names": ["y"], **table}
stateful = to_onnx(summing, rows[0], dynamic_shapes=batch, **state)
assert stateful.report.mutations == ("total",)
session = onnxruntime.InferenceSession(stateful.model_proto.SerializeToString())
named = {"inputs": session.get_inputs(), "outputs": session.get_outputs()}
show.table([{role: ", ".join(v.name for v in values) for role, values in named.items()}])

# %%
# The caller now keeps the state. The first call uses the buffer's value at export, which is in ``report.state``. The second call uses the
# result of the first, at a size that the export never saw.

first, second = torch.ones(4, 4), torch.ones(7, 4)
total = stateful.report.state["total"].numpy()
y1, total1 = session.run(None, {"x": first.numpy(), "total": total})
y2, total2 = session.run(None, {"x": second.numpy(), "total": total1})
eager = Summing().eval()
for x, y in ((first, y1), (second, y2)):
    torch.testing.assert_close(torch.from_numpy(y), eager(x))
torch.testing.assert_close(torch.from_numpy(total2), eager.total)
assert (total1[0], total2[0]) == (4, 10)

# %%
# The sum is four, then eleven, which is clipped to ten. If you don't pass the state on, the second call starts from zero again:

_, restarted = session.run(None, {"x": second.numpy(), "total": total})
assert restarted[0] == 7

# %%
# ``export`` and ``compare`` pass the state on, so ``verify`` can call the ONNX model twice, as it calls the original model:

kept = export("to_onnx", summing, rows[0], dynamic_shapes=batch, **state)
report = verify(kept, summing, rows)
report.check()
report

# %%
# The graph shows the new sum as an output:

show.graph(stateful, title="State in, state out")

# %%
# Next: :doc:`what happens to submodules <submodules>`.
