"""
My model writes into a cache: what does an export keep?
=======================================================

A captured program keeps a buffer that the model writes into, and shares it with everything that is made from it. An ONNX file keeps nothing
between calls, and the official exporter does not say so. You will find out what a program changes, see the first answer that is wrong, and
get files that take the cache and give it back, from either exporter.

``to_onnx`` is this site's own exporter, so check what is said of it here on a model of your own.
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
# The model keeps what it was given, up to eight rows, and answers each new row by all that it has kept: attention without a softmax.


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
# What goes wrong
# ---------------
# Exported with two rows and verified at three and at one, each time as the first call. One check calls twice:

samples = [(x,) for x in steps[:3]]
exporters = ("torch.export", "dynamo", "to_onnx")
compared = compare(fresh(), samples, dynamic_shapes=new, exporters=exporters)
assert compared.outcomes() == {"torch.export": "ok", "dynamo": "wrong", "to_onnx": "convert"}
report = compared["dynamo"].report
assert [check.name for check in report.failed] == ["called twice"]
report

# %%
# The official file has the cache as a weight, empty as it was at the export. Every call is its first. ``to_onnx`` refuses, by name:

with expect_failure(MutationError, match="the model changes cache, filled"):
    to_onnx(fresh(), samples[0], dynamic_shapes=new)

# %%
# What torch.export keeps
# -----------------------
# The captured graph writes as you wrote it, with the operations that end in ``_``. The signature does not say so yet. Ask after
# ``run_decompositions``, which turns each write into a new value, and a note of the buffer that it belongs to:

program = compared["torch.export"].artifact.model
assert program.graph_signature.buffers_to_mutate == {}
changed = program.run_decompositions().graph_signature.buffers_to_mutate
assert sorted(changed.values()) == ["cache", "filled"]
show.program(program)

# %%
# The buffers are those of the program itself. A module that is made of it writes into them, so the next module begins where that one
# ended, and so does whoever loads a file that is saved afterwards:

captured = export("torch.export", fresh(), samples[0], dynamic_shapes=new).model
captured.module()(steps[0])
assert captured.module().filled.item() == 2
with tempfile.TemporaryDirectory() as folder:
    torch.export.save(captured, path := Path(folder, "used.pt2"))
    assert torch.export.load(path).module().filled.item() == 2

# %%
# Save before you call, or set the buffers back:

captured.state_dict["filled"].zero_()
assert captured.module().filled.item() == 0

# %%
# What works: state in, state out
# -------------------------------
# With ``mutations="outputs"``, ``to_onnx`` makes an input of each changed buffer, and returns the new values after the results, named after
# the buffers: *cache* goes in, *cache_new* comes out.

stateful = to_onnx(fresh(), samples[0], dynamic_shapes=new, mutations="outputs", output_names=["y"])
assert stateful.report.mutations == ("cache", "filled")
show.summary(stateful)

# %%
# Whoever calls it carries the state. The report has what the first call gets:


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
# A new conversation is a new ``Carried``, or the first ``state`` again. Two rows more do not fit. Eager raises, and so does the file:

with expect_failure(IndexError, match="out of bounds"):
    eager(steps[0])
with expect_failure(InvalidArgument, match="ScatterND"):
    carried(steps[0])

# %%
# What works with both: the cache as an argument
# ----------------------------------------------
# Take the state and return the new one, and nothing is changed that somebody else could see. Do write into a copy. Without the
# ``clone``, a program would write into *your* tensor and :doc:`a file would not <inplace_index>`.


class Passing(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = linear

    def forward(self, x, cache, filled):
        cache = cache.clone()
        cache[filled + torch.arange(x.shape[0])] = self.linear(x)
        filled = filled + x.shape[0]
        scores = (x @ cache.T).masked_fill(torch.arange(8) >= filled, 0.0)
        return scores @ cache, cache, filled


def call(x, filled):
    return x, torch.randn(8, 4), torch.tensor([filled])


calls = [call(steps[0], 0), call(steps[1], 2), call(steps[2], 3)]
shapes = (*new, None, None)
passing = compare(Passing().eval(), calls, dynamic_shapes=shapes, exporters=exporters)
assert set(passing.outcomes().values()) == {"ok"}
passing

# %%
# Step by step, either file answers as the model with the buffers does:

for exporter in exporters[1:]:
    run, eager = passing[exporter].artifact, fresh()
    verify(run, Passing(), calls).check()
    state = (torch.zeros(8, 4), torch.zeros(1, dtype=torch.int64))
    for x in steps:
        y, *state = run(x, *state)
        torch.testing.assert_close(y, eager(x))

# %%
# Four ways to make the same four calls, held against eager:

runs = {
    "torch.export": compared["torch.export"].artifact.fresh(),
    "official file": compared["dynamo"].artifact,
    "to_onnx, state forgotten": Carried(stateful, keep=False),
    "to_onnx, state carried": Carried(stateful),
}
eager = fresh()
expected = [eager(x).detach() for x in steps]
apart = {
    name: [(run(x).detach() - y).abs().max().item() for x, y in zip(steps, expected, strict=True)]
    for name, run in runs.items()
}
assert max(apart["torch.export"] + apart["to_onnx, state carried"]) < 1e-5
assert all(min(apart[name][1:]) > 1e-2 for name in ("official file", "to_onnx, state forgotten"))

figure, axes = plt.subplots(figsize=(6.4, 3), layout="constrained")
for (name, found), style in zip(apart.items(), ("o-", "s-", "x--", "+--"), strict=True):
    axes.plot(range(1, 5), found, style, label=name)
axes.set(xticks=range(1, 5), xlabel="call", ylabel="largest difference from eager")
figure.suptitle("From the second call on, a forgotten state is a wrong answer")
axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
axes.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# The first call can be right and the second wrong, so test two calls in a row: what the model writes has to be carried from one to the
# next. Next: :doc:`the caches of transformers <kwargs_and_caches>`, which are arguments already.
