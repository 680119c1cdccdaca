"""
What is in the ExportedProgram that torch.export returns?
=========================================================

An ``ExportedProgram`` contains a graph of tensor operations, the weights and buffers, and the constraints on its inputs. Decisions that
Python made during capture are fixed.

An ``ExportedProgram`` contains a graph of tensor operations, the weights, and the constraints on its inputs. This recipe reads all three
for a small module and calls the program. It also runs the saved program in a process without the module's code, and decomposes it into
fewer kinds of operators.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from torch import nn

from exportlab import Sample, expect_failure, show, verify

# %%
# The module has two layers, a buffer, a required keyword argument and an optional one.


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

# sphinx_gallery_start_answer
program = torch.export.export(
    model, args, kwargs, dynamic_shapes={"x": {0: torch.export.Dim("batch")}, "scale": None}
)
# sphinx_gallery_end_answer
show.program(program)

# %%
# Each line is an operation with its dtype and shape. ``s77`` is the batch size. The layers are gone, and so is the ``if``: we exported
# without a ``shift``, so the graph adds nothing.
#
# The same graph as a picture:

show.graph(program, title="The whole module")

# %%
# Read graph_signature, state_dict and range_constraints
# ------------------------------------------------------
# Weights and buffers are inputs of the graph (``p_…``, ``b_…``). The signature maps them to their names.

# sphinx_gallery_start_answer
signature = program.graph_signature
# sphinx_gallery_end_answer
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
show.table([{"part": part, "contents": ", ".join(names)} for part, names in parts.items()])

# %%
# Each operation records its module and source line:


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
# Call the program with program.module()
# --------------------------------------
# You can't call an ``ExportedProgram`` directly. ``program.module()`` returns a module, which accepts only the arguments that were
# exported. It rejects a ``shift``:

with expect_failure(RuntimeError, match=r"You should use `exported_program.module\(\)`"):
    program(*args, **kwargs)
with expect_failure(ValueError, match="kwarg keyword mismatch"):
    program.module()(*args, **kwargs, shift=torch.ones(4))

# %%
# It returns the same results as the original module, also for seven rows, one and none, which the export never saw:

verify(program, model, samples).check()

# %%
# Save and load without your code
# -------------------------------
# ``torch.export.save`` writes the graph, the weights and the example inputs. The process below loads the file and runs it. It imports
# only ``torch`` and ``sys``.

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
# The file contains the example inputs, so don't export with data that you wouldn't share.
#
# Decompose with run_decompositions
# ---------------------------------
# The graph above is the *training IR*, with about one operation for each function that the module calls. ``run_decompositions`` returns a
# program with a smaller operator set, which backends implement. It has more operations, but of fewer kinds.


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
# The results don't change:

# sphinx_gallery_start_answer
decomposed = program.run_decompositions()
# sphinx_gallery_end_answer
verify(decomposed, model, samples).check()
assert (len(calls(program)), len(calls(decomposed))) == (5, 7)

# %%
# Next: :doc:`which sizes it accepts, and how to request more <dynamic_shapes>`.
