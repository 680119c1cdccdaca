"""
What does torch.export make of my module?
=========================================

A graph of tensor operations, the weights, and a contract on the inputs. You will read all three for a small module, call the result,
send it through a file to a process that has never seen the module's code, and lower it to fewer kinds of operations.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from torch import nn

from exportlab import Sample, expect_failure, show, verify

# %%
# The module has two layers, a buffer, a keyword that is always given, and one that is not.


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.randn(8))
        self.norm, self.linear = nn.LayerNorm(8), nn.Linear(8, 4)

    def forward(self, x, *, scale, shift=None):
        y = torch.relu(self.linear(self.norm(x - self.mean)))
        if shift is not None:
            y = y + shift
        return y * scale


torch.manual_seed(0)
model = Scorer().eval()
samples = [
    Sample((torch.randn(rows, 8),), {"scale": torch.tensor(2.0 + rows)}) for rows in (4, 7, 1, 0)
]
args, kwargs = samples[0].args, dict(samples[0].kwargs)

program = torch.export.export(
    model, args, kwargs, dynamic_shapes={"x": {0: torch.export.Dim("batch")}, "scale": None}
)
show.program(program)

# %%
# One line for each operation, with dtype and shape; ``s77`` is the batch. The layers are gone, and so is the ``if``: nobody gave a
# ``shift`` at export, so the graph adds nothing.
#
# What else is in there
# ---------------------
# The object is a ``torch.export.ExportedProgram``. Weights and buffers are inputs of the graph like any other (``p_…``, ``b_…``), and
# the signature says which is which.

signature = program.graph_signature
parts = {
    "graph_signature.parameters": signature.parameters,
    "graph_signature.buffers": signature.buffers,
    "graph_signature.user_inputs": signature.user_inputs,
    "state_dict": program.state_dict,
    "range_constraints": [
        f"{symbol} in [{r.lower}, {r.upper}]" for symbol, r in program.range_constraints.items()
    ],
}
assert set(program.state_dict) == set(model.state_dict())
show.table([{"part": part, "holds": ", ".join(names)} for part, names in parts.items()])

# %%
# Each operation remembers the module and the line that it comes from:


def calls(program):
    return [node for node in program.graph.nodes if node.op == "call_function"]


def origin(node):
    path, kind = list(node.meta["nn_module_stack"].values())[-1]
    line = node.meta["stack_trace"].strip().splitlines()[-1].strip()
    return {
        "operation": node.name,
        "module": path or "(the model)",
        "class": kind.rpartition(".")[2],
        "line": line,
    }


show.table([origin(node) for node in calls(program)])

# %%
# How it is called
# ----------------
# Not directly. ``program.module()`` is a module again, and it keeps to what was exported: a ``shift`` is refused now.

with expect_failure(RuntimeError, match=r"You should use `exported_program.module\(\)`"):
    program(*args, **kwargs)
with expect_failure(ValueError, match="kwarg keyword mismatch"):
    program.module()(*args, **kwargs, shift=torch.ones(4))

# %%
# What it accepts, it answers as the module does. Seven rows, one and none were never seen at export:

verify(program, model, samples).check()

# %%
# A file without your code
# ------------------------
# ``torch.export.save`` writes graph, weights and example inputs. The process below loads the file and runs it. It imports ``torch`` and
# nothing else.

ELSEWHERE = """
import sys, torch
program = torch.export.load(sys.argv[1])
args, kwargs = program.example_inputs
torch.save(program.module()(*args, **kwargs).detach(), sys.argv[2])
"""

with tempfile.TemporaryDirectory() as folder:
    file, answer = Path(folder, "scorer.pt2"), Path(folder, "answer.pt")
    torch.export.save(program, file)
    subprocess.run(
        [sys.executable, "-c", ELSEWHERE, str(file), str(answer)], check=True, capture_output=True
    )
    torch.testing.assert_close(torch.load(answer), model(*args, **kwargs).detach())

# %%
# The example inputs came out of the file, so they are in it: do not export with data that you would not hand over.
#
# Fewer kinds of operations
# -------------------------
# What you saw so far is the *training IR*: about one operation for each function that the module calls. ``run_decompositions`` returns a
# program in terms of a smaller set, the one that backends implement. More operations, fewer kinds to support.


def lowered(layer):
    captured = torch.export.export(layer.eval(), (torch.randn(4, 8),))
    before, after = (
        [show.text.op_name(node) for node in calls(p)]
        for p in (captured, captured.run_decompositions())
    )
    return {
        "layer": type(layer).__name__,
        "captured": ", ".join(before),
        "decomposed": ", ".join(after),
    }


show.table(
    [lowered(layer) for layer in (nn.Linear(8, 4), nn.LayerNorm(8), nn.BatchNorm1d(8), nn.GELU())]
)

# %%
# The answers stay the same:

decomposed = program.run_decompositions()
verify(decomposed, model, samples).check()
assert (len(calls(program)), len(calls(decomposed))) == (5, 7)

show.graph(program, title="The whole module")

# %%
# An exported program writes down what your Python did once: what Python decided on the way cannot be decided again. Next: :doc:`which
# sizes it accepts, and how to ask for more <dynamic_shapes>`.
