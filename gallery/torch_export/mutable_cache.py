"""
How do I export a model that updates a buffer, such as a KV cache?
==================================================================

Make the buffer an input and an output of the model. An ONNX model keeps no state between calls, so test two calls in a row.

An ONNX model doesn't keep state between calls, and ``torch.onnx.export`` doesn't warn when it drops a buffer update. This recipe finds
the buffers that a model changes, shows the first wrong answer, and exports models with the cache as an input and an output.
"""

# sphinx_gallery_thumbnail_number = -1
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import onnxruntime
import torch
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument
from torch import nn

from exportlab import compare, expect_failure, export, show, to_onnx, verify
from fx2onnx.errors import MutationError

# %%
# The model stores up to eight rows, and computes its output for each new row from all stored rows: attention without a softmax.


class Remembering(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.register_buffer("cache", torch.zeros(8, 4))
        self.register_buffer("filled", torch.zeros(1, dtype=torch.int64))

    def forward(self, x):
        self.cache[self.filled + torch.arange(x.shape[0])] = self.linear(x)
        self.filled.add_(x.shape[0])
        unknown = torch.arange(8) >= self.filled
        return (x @ self.cache.T).masked_fill(unknown, 0.0) @ self.cache


torch.manual_seed(0)
linear = nn.Linear(4, 4)


def fresh():
    model = Remembering().eval()
    model.linear.load_state_dict(linear.state_dict())
    return model


steps = [torch.randn(rows, 4) for rows in (2, 1, 3, 1)]
new = ({0: "new"},)

# %%
# What goes wrong: the second call
# --------------------------------
# We export with two rows and verify with three and with one, each time as the first call. The check *called twice* makes a second call:

samples = [(x,) for x in steps[:3]]
exporters = ("torch.export", "dynamo", "to_onnx")
compared = compare(fresh(), samples, dynamic_shapes=new, exporters=exporters)
assert compared.outcomes() == {"torch.export": "ok", "dynamo": "wrong", "to_onnx": "convert"}
report = compared["dynamo"].report
assert [check.name for check in report.failed] == ["called twice"]
report

# %%
# The model from ``torch.onnx.export`` ("dynamo") contains the empty cache as a constant, so every call behaves like the first.
# ``to_onnx`` raises an error with the names of the buffers:

with expect_failure(MutationError, match="the model changes cache, filled"):
    to_onnx(fresh(), samples[0], dynamic_shapes=new)

# %%
# Find the changed buffers with torch.export
# ------------------------------------------
# The captured graph contains your in-place writes: the operations whose names end in ``_``. ``buffers_to_mutate`` is empty until you call
# ``run_decompositions``. It replaces each write with a new value, and records the buffer that the value belongs to:

program = compared["torch.export"].artifact.model
assert program.graph_signature.buffers_to_mutate == {}
changed = program.run_decompositions().graph_signature.buffers_to_mutate
assert sorted(changed.values()) == ["cache", "filled"]
show.program(program)

# %%
# ``program.module()`` writes into the buffers of the program itself. The next module, or a file that you save later, starts with that
# state:

captured = export("torch.export", fresh(), samples[0], dynamic_shapes=new).model
captured.module()(steps[0])
assert captured.module().filled.item() == 2
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "used.pt2")
    torch.export.save(captured, path)
    assert torch.export.load(path).module().filled.item() == 2

# %%
# Save before you call the program, or reset the buffers:

captured.state_dict["filled"].zero_()
assert captured.module().filled.item() == 0

# %%
# Export the state as inputs and outputs with to_onnx
# ---------------------------------------------------
# With ``mutations="outputs"``, ``to_onnx`` makes each changed buffer an input and returns its new value after the results. The input
# *cache* becomes the output *cache_new*:

stateful = to_onnx(fresh(), samples[0], dynamic_shapes=new, mutations="outputs", output_names=["y"])
assert stateful.report.mutations == ("cache", "filled")
show.summary(stateful)

# %%
# The caller passes the state from one call to the next. ``report.state`` contains the initial values:


def session_of(program):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # what goes wrong is raised as well
    return onnxruntime.InferenceSession(
        program.model_proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


class Carried:
    def __init__(self, program, keep=True):
        self.session, self.keep = session_of(program), keep
        self.state = {name: value.numpy() for name, value in program.report.state.items()}

    def __call__(self, x):
        y, *new = self.session.run(None, {"x": x.numpy(), **self.state})
        self.state = dict(zip(self.state, new, strict=True)) if self.keep else self.state
        return torch.from_numpy(y)


eager, carried = fresh(), Carried(stateful)
for x in steps:
    torch.testing.assert_close(carried(x), eager(x))
assert carried.state["filled"].item() == eager.filled.item() == 7

# %%
# Start a new sequence with a new ``Carried``, or reset ``state``. Two more rows don't fit in the cache. Both eager and the ONNX model
# raise an error:

with expect_failure(IndexError, match="out of bounds"):
    eager(steps[0])
with expect_failure(InvalidArgument, match="ScatterND"):
    carried(steps[0])

# %%
# Make the cache an argument
# --------------------------
# If the model accepts the state as an argument and returns the new state, both exporters work. Write into a copy. Without the ``clone``,
# the captured program would change your tensor, and the :doc:`ONNX model wouldn't <inplace_index>`.


class Passing(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = linear

    # sphinx_gallery_start_answer
    def forward(self, x, cache, filled):
        cache = cache.clone()
        cache[filled + torch.arange(x.shape[0])] = self.linear(x)
        filled = filled + x.shape[0]
        scores = (x @ cache.T).masked_fill(torch.arange(8) >= filled, 0.0)
        return scores @ cache, cache, filled

    # sphinx_gallery_end_answer


def call(x, filled):
    return x, torch.randn(8, 4), torch.tensor([filled])


calls = [call(steps[0], 0), call(steps[1], 2), call(steps[2], 3)]
shapes = (*new, None, None)
passing = compare(Passing().eval(), calls, dynamic_shapes=shapes, exporters=exporters)
assert set(passing.outcomes().values()) == {"ok"}
passing

# %%
# Both ONNX models return the same results as the model with buffers, call by call:

for exporter in exporters[1:]:
    run, eager = passing[exporter].artifact, fresh()
    verify(run, Passing(), calls).check()
    state = (torch.zeros(8, 4), torch.zeros(1, dtype=torch.int64))
    for x in steps:
        y, *state = run(x, *state)
        torch.testing.assert_close(y, eager(x))

# %%
# The plot compares four ways to make the same four calls with eager:

runs = {
    "torch.export": compared["torch.export"].artifact.fresh(),
    "torch.onnx.export": compared["dynamo"].artifact,
    "to_onnx, state dropped": Carried(stateful, keep=False),
    "to_onnx, state passed on": Carried(stateful),
}
eager = fresh()
expected = [eager(x).detach() for x in steps]
apart = {
    name: [(run(x).detach() - y).abs().max().item() for x, y in zip(steps, expected, strict=True)]
    for name, run in runs.items()
}
assert max(apart["torch.export"] + apart["to_onnx, state passed on"]) < 1e-5
assert all(min(apart[name][1:]) > 1e-2 for name in ("torch.onnx.export", "to_onnx, state dropped"))

figure, axes = plt.subplots(figsize=(6.4, 3), layout="constrained")
for (name, differences), style in zip(apart.items(), ("o-", "s-", "x--", "+--"), strict=True):
    axes.plot(range(1, 5), differences, style, label=name)
axes.set(xticks=range(1, 5), xlabel="call", ylabel="largest difference from eager")
figure.suptitle("Without the state, results are wrong from the second call on")
axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
axes.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Next: :doc:`transformers caches <kwargs_and_caches>`, which are arguments already.
