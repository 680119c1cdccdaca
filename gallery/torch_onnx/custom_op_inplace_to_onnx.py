"""
Do I need a second version of my in-place operator for every exporter?
======================================================================

The official exporter wants a change in the model, in the graph or in the operator before it takes a custom op that writes into its
input. ``to_onnx`` wants one function. After this page you can write that function, trust it with views, and export a model that
changes its own buffers or inputs as *state in, state out*.

``to_onnx`` is this site's own exporter, so check what is said of it here on a model of your own.
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
# The operator writes into ``x`` and returns nothing; numpy computes it, so no exporter can look inside. The model calls it on two of its
# three columns, that is, on a view.


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
# What goes wrong
# ---------------
# Nobody knows the operator:

untold = compare(model, rows, dynamic_shapes=batch)
assert untold.outcomes() == {
    "torch.export": "ok",
    "to_onnx": "convert",
    "dynamo": "convert",
    "torchscript": "wrong",
}
untold

# %%
# ``to_onnx`` names it, and the line that calls it:

print(untold["to_onnx"].error)

# %%
# What works
# ----------
# A file has results and no changes. So a translation returns *the new value of what the operator changes*. Ours takes the graph under
# construction and the arguments of the operator; ``g.Clip`` appends a node of that name:


def clipped(g, x, limit):
    return g.Clip(x, -limit, limit)


table = {"custom_translation_table": {torch.ops.lab_state.clip_.default: clipped}}
told = compare(
    model, rows, dynamic_shapes=batch, exporters=("to_onnx", "dynamo"), options={"to_onnx": table}
)
assert told.outcomes() == {"to_onnx": "ok", "dynamo": "convert"}
told

# %%
# The official exporter has the same option and takes an ``onnxscript`` function in it, but does not come that far here;
# :doc:`what it needs <custom_op_inplace>` is a page of its own.
#
# Why a view is no trouble
# ------------------------
# ``clipped`` saw two columns and returned two. Capture keeps the call and nothing that says who reads ``y`` afterwards:

program = to_onnx(model, rows[0], dynamic_shapes=batch, **table)
show.program(program.exported_program)

# %%
# While ``to_onnx`` walks over these lines it keeps account of memory: ``slice_1`` shares that of ``linear``. After the write it puts the
# new columns back into the whole, with a ``ScatterND``, and ``mul`` reads the whole. Written without a view, the same op needs no more
# than its ``Clip``:


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
# What outlives the call
# ----------------------
# ``y`` was the model's own. It is another matter when the model changes a buffer, which the next call would see, or an input, which is
# yours. No file can do that. This model keeps a running sum, clipped in place:


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
# An input that is changed is the caller's to keep: the file computes with the new values, leaves the input as it is, and you are warned:


class Spoiling(nn.Module):
    def forward(self, x):
        clip_(x, 0.5)
        return x * 2


with heard() as said:
    spoiling = to_onnx(Spoiling().eval(), (rows[0][0].clone(),), dynamic_shapes=batch, **table)
assert spoiling.report.unchanged_inputs == ("x",)
said

# %%
# State in, state out
# -------------------
# ``mutations="outputs"`` makes an input of a changed buffer, and returns its new value after the results, under the buffer's name:

state = {"mutations": "outputs", "output_names": ["y"], **table}
stateful = to_onnx(summing, rows[0], dynamic_shapes=batch, **state)
assert stateful.report.mutations == ("total",)
session = onnxruntime.InferenceSession(stateful.model_proto.SerializeToString())
named = {"inputs": session.get_inputs(), "outputs": session.get_outputs()}
show.table([{role: ", ".join(v.name for v in found) for role, found in named.items()}])

# %%
# The caller keeps the state now. First call: what the buffer was at the export, which the report has. Second call, at a size that the export
# never saw: what the first one gave.

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
# Four, then eleven, clipped to ten. Forget to pass the state on, and the second call begins anew:

_, forgotten = session.run(None, {"x": second.numpy(), "total": total})
assert forgotten[0] == 7

# %%
# ``export`` and ``compare`` pass the state on for you, so that ``verify`` can call the file twice as it calls the model:

kept = export("to_onnx", summing, rows[0], dynamic_shapes=batch, **state)
report = verify(kept, summing, rows)
report.check()
report

# %%
# The sum leaves the file at the bottom, and you bring it back:

show.graph(stateful, title="State in, state out")

# %%
# Say what the new value is, and the exporter works out who reads it; you only carry what has to outlive the call. Next: :doc:`where did
# my submodules go? <submodules>`
