"""
How do I translate an operator that walks along time?
=====================================================

An operator of your own keeps a state from row to row: a filter, a moving average, a cell of a recurrent network. A translation runs once,
while the file is made, and the file is called with sequences of every length. You will see what a Python loop in a translation does, and
how to write the recurrence as one ``Scan``, in a function that the official exporter and ``to_onnx`` both take.

``to_onnx`` is this site's own exporter, so check what is said of it here on a model of your own.
"""

# sphinx_gallery_thumbnail_number = -1
import torch
from onnxscript import FLOAT, graph, opset18, script, values
from torch import nn

from exportlab import compare, export, show, verify

# %%
# The operator is an exponential average along the first axis. Each row that comes out needs the one before it:


@torch.library.custom_op("lab_time::smooth", mutates_args=())
def smooth(x: torch.Tensor, keep: float) -> torch.Tensor:
    rows, state = [], torch.zeros_like(x[0])
    for row in x:
        state = keep * state + (1 - keep) * row
        rows.append(state)
    return torch.stack(rows)


smooth.register_fake(lambda x, keep: torch.empty_like(x))


class SmoothedLinear(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 4)

    def forward(self, x):
        return smooth(self.linear(x), 0.9)


torch.manual_seed(0)
model = SmoothedLinear().eval()
samples = [(torch.randn(time, batch, 3),) for time, batch in ((5, 2), (9, 3), (1, 1), (300, 2))]
MOVING = ({0: "time", 1: "batch"},)

# %%
# What goes wrong: a loop in Python
# ---------------------------------
# A translation knows the axis ``time`` as a name, not as a number. Write the five steps of the example, and you have a file of five steps:


def five_steps(g, x, keep):
    state, rows = None, []
    for time in range(5):
        row = g.Mul(g.Gather(x, [time], axis=0), 1 - keep)
        state = row if state is None else g.Add(g.Mul(state, keep), row)
        rows.append(state)
    return g.Concat(*rows, axis=0)


table = {torch.ops.lab_time.smooth.default: five_steps}
unrolled = export(
    "to_onnx", model, samples[0], dynamic_shapes=MOVING, custom_translation_table=table
)
report = verify(unrolled, model, samples)
assert report.outcome == "frozen"
report

# %%
# The file is right for five rows. For nine it returns the first five of them, and for one row ONNX Runtime stops at a row that is not there.
# The size of the export does not show that.

# %%
# What works: one ``Scan``
# ------------------------
# ``Scan`` carries a state along the first axis of what it walks along, and stacks what each step returns. In onnxscript its step is a function
# of its own with ``@graph()``. It gets the state and one row, and returns the new state, and what is stacked. It may read what stands around
# it: ``kept``.

domain = values.Opset("lab.time", 1)


@script(domain, default_opset=opset18)
def Smooth(x: FLOAT, keep: float) -> FLOAT:
    kept = opset18.CastLike(keep, x)
    rows = (opset18.CastLike(1.0, x) - kept) * x
    zeros = opset18.ConstantOfShape(opset18.Shape(x, start=1))

    @graph()
    def step(state, row):
        new = kept * state + row
        return new, new

    _, every = opset18.Scan(zeros, rows, body=step, num_scan_inputs=1)
    return every


table = {torch.ops.lab_time.smooth.default: Smooth}
told = compare(
    model,
    samples,
    dynamic_shapes=MOVING,
    exporters=("torch.export", "to_onnx", "dynamo"),
    options={name: {"custom_translation_table": table} for name in ("dynamo", "to_onnx")},
)
assert set(told.outcomes().values()) == {"ok"}
told

# %%
# Two things in it are easy to get wrong:
#
# - What does not depend on the state stands outside of ``step``: ``(1 - keep) * x`` is one multiplication of the whole sequence, not one for
#   each row.
# - The first state is made for the input, ``Shape(x, start=1)``: a state of the example's shape would freeze the batch.
#
# The file has one ``Scan``, and its step stands once, however long the sequence is:

show.graph(told["to_onnx"].artifact.model, title="One Scan, and its step")

# %%
# A recurrence that is written in ``forward``, and not inside of an operator, needs no translation: ``to_onnx`` rolls a loop over rows up, and
# :doc:`loop_over_the_batch` does it with ``torch`` alone. If each step only adds or multiplies, look for a form without a recurrence first
# (``cumsum``, ``cumprod``): a ``Scan`` runs one row after the other.
