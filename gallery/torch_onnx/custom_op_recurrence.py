"""
How do I translate a recurrent custom operator to an ONNX Scan?
===============================================================

Write the recurrence as a ``Scan``, so that the model is right for other sequence lengths.

Translate a custom operator that keeps a state from row to row, such as a filter, a moving average or a recurrent cell. A Python loop in
the translation fixes the number of steps. This recipe writes the recurrence as one ``Scan``, in an ``onnxscript`` function for both
``torch.onnx.export`` and ``to_onnx``.
"""

# sphinx_gallery_thumbnail_number = -1
import torch
from onnxscript import FLOAT, graph, opset18, script, values
from torch import nn

from exportlab import compare, export, show, verify

# %%
# The operator is an exponential average along the first axis. Each output row depends on the previous one:


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
DYNAMIC = ({0: "time", 1: "batch"},)

# %%
# What goes wrong: a Python loop in the translation
# -------------------------------------------------
# A translation runs once, during export, and the dimension ``time`` is a name there, not a number. This translation writes the five steps
# of the example:


def five_steps(g, x, keep):
    state, rows = None, []
    for time in range(5):
        row = g.Mul(g.Gather(x, [time], axis=0), 1 - keep)
        state = row if state is None else g.Add(g.Mul(state, keep), row)
        rows.append(state)
    return g.Concat(*rows, axis=0)


table = {torch.ops.lab_time.smooth.default: five_steps}
unrolled = export(
    "to_onnx", model, samples[0], dynamic_shapes=DYNAMIC, custom_translation_table=table
)
report = verify(unrolled, model, samples)
assert report.outcome == "frozen"
report

# %%
# The report is ``frozen``, which means right at the size of the export and wrong at another. The model is right for five rows, but for nine
# it returns only the first five, and for one row ONNX Runtime raises an error. A test with the size of the example doesn't reveal this.

# %%
# What works: one Scan
# --------------------
# ``Scan`` carries a state along the first axis of its input, and stacks the results of each step. In onnxscript, a step is a function
# with ``@graph()``. It receives the state and one row, and returns the new state and the value to stack. It can use values from the
# enclosing function, such as ``kept``.

domain = values.Opset("lab.time", 1)


@script(domain, default_opset=opset18)
def Smooth(x: FLOAT, keep: float) -> FLOAT:
    kept = opset18.CastLike(keep, x)
    rows = (opset18.CastLike(1.0, x) - kept) * x
    zeros = opset18.ConstantOfShape(opset18.Shape(x, start=1))

    # sphinx_gallery_start_answer
    @graph()
    def step(state, row):
        new = kept * state + row
        return new, new

    _, stacked = opset18.Scan(zeros, rows, body=step, num_scan_inputs=1)
    return stacked
    # sphinx_gallery_end_answer


table = {torch.ops.lab_time.smooth.default: Smooth}
compared = compare(
    model,
    samples,
    dynamic_shapes=DYNAMIC,
    exporters=("torch.export", "to_onnx", "dynamo"),
    options={name: {"custom_translation_table": table} for name in ("dynamo", "to_onnx")},
)
assert set(compared.outcomes().values()) == {"ok"}
compared

# %%
# Two details are important:
#
# - Keep computations that don't depend on the state outside ``step``: ``(1 - keep) * x`` is a single multiplication of the whole
#   sequence.
# - Compute the shape of the first state from the input with ``Shape(x, start=1)``. A constant shape would specialise the batch.
#
# The model has one ``Scan``, which contains the step once for any sequence length:

show.graph(compared["to_onnx"].artifact.model, title="One Scan, and its step")

# %%
# Next: :doc:`loop_over_the_batch`, because a recurrence in ``forward`` needs no translation. If each step only adds or multiplies, try
# ``cumsum`` or ``cumprod`` first, because a ``Scan`` runs the rows one after the other.
