"""
What does torch.export.save write into a .pt2 file?
===================================================

A ``.pt2`` file contains everything that the graph needs: weights, constants and example inputs. It contains your custom operators only by
name.

``torch.export.save`` writes a program that another process can run without your code. This recipe loads the file in such a process and
checks that its constraints still apply. It lists the contents of the file, including your example inputs and source lines, and shows what
isn't saved.
"""

import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from pathlib import Path

import matplotlib.pyplot as plt
import torch
from torch import nn
from torch.export import Dim

from exportlab import expect_failure, show, verify

# %%
# The model stores values in five ways: as parameters, a buffer, a non-persistent buffer, a plain tensor attribute, and a Python number.


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(64, 32)
        self.register_buffer("mean", torch.randn(64))
        self.register_buffer("window", torch.linspace(0, 1, 64), persistent=False)
        self.labels = torch.arange(32.0)
        self.threshold = 0.5

    def forward(self, x):
        y = self.linear((x - self.mean) * self.window) + self.labels
        return y.where(y > self.threshold, torch.tensor([-1.0]))


torch.manual_seed(0)
model = Scorer().eval()
samples = [(torch.randn(rows, 64),) for rows in (4, 7, 1, 16)]
program = torch.export.export(model, samples[0], dynamic_shapes=({0: Dim("batch", max=16)},))

# %%
# A second model calls a custom operator:


@torch.library.custom_op("lab_saved::halved", mutates_args=())
def halved(x: torch.Tensor) -> torch.Tensor:
    return x / 2


@halved.register_fake
def _(x):
    return torch.empty_like(x)


class Halved(nn.Module):
    def forward(self, x):
        return halved(x)


custom = torch.export.export(Halved(), samples[0])

# %%
# Load the files in another process
# ---------------------------------
# The process below imports only ``torch``. It receives the module from ``torch.save`` and both programs from ``torch.export.save``. It
# reports each file that it can't load. It runs the others on your samples, and on 17 rows, one more than the maximum.

OTHER_PROCESS = """
import sys, torch

def answers(run, samples):
    right = [run(x).detach() for x in samples]
    try:
        return right, run(torch.ones(17, 64))
    except AssertionError as error:
        return right, str(error)

def attempt(load, samples):
    try:
        return answers(load(), samples)
    except Exception as error:
        return f"{type(error).__name__}: {error}"

module, program, custom, samples, answer = sys.argv[1:]
inputs = torch.load(samples)
results = [
    attempt(lambda: torch.load(module, weights_only=False), inputs),
    attempt(lambda: torch.export.load(program).module(), inputs),
    attempt(lambda: torch.export.load(custom).module(), inputs),
]
torch.save(results, answer)
"""

folder = tempfile.TemporaryDirectory()
names = ("scorer.pt", "scorer.pt2", "custom.pt2", "samples.pt", "answer.pt")
paths = [Path(folder.name, name) for name in names]
torch.save(model, paths[0])
# sphinx_gallery_start_answer
torch.export.save(program, paths[1])
# sphinx_gallery_end_answer
torch.export.save(custom, paths[2])
torch.save([x for (x,) in samples], paths[3])
call = [sys.executable, "-c", OTHER_PROCESS, *map(str, paths)]
subprocess.run(call, check=True, capture_output=True)
from_module, from_program, from_custom = torch.load(paths[4])

# %%
# What goes wrong: torch.save
# ---------------------------
# ``torch.save`` writes the values and the *name* of the class. The other process has no such class:

assert "Can't get attribute 'Scorer'" in from_module
print(from_module)

# %%
# What works: torch.export.save
# -----------------------------
# A program doesn't need the class. The other process returns the model's results at four sizes, three of which the export never saw. It
# rejects 17 rows, so the range was saved too:

for (x,), answer in zip(samples, from_program[0], strict=True):
    torch.testing.assert_close(answer, model(x).detach())
assert from_program[1] == "Guard failed: x.size()[0] <= 16"
from_program[1]

# %%
# Import custom operators before torch.export.load
# ------------------------------------------------
# The graph contains only the name of a custom operator. Loading fails until the process registers the operator. (The log above the error
# names it.)

assert "error when deserializing" in from_custom
print(from_custom)
assert torch.equal(torch.export.load(paths[2]).module()(*samples[0]), samples[0][0] / 2)

# %%
# Weights and constants in the file
# ---------------------------------
# The file is a zip archive with one entry for each weight. It also has one for each *constant*, which is a tensor that the graph uses but
# the ``state_dict`` doesn't contain:

# sphinx_gallery_start_answer
loaded = torch.export.load(paths[1])
# sphinx_gallery_end_answer
assert set(loaded.state_dict) == set(model.state_dict()) == {"linear.weight", "linear.bias", "mean"}
assert set(loaded.constants) == {"window", "labels", "lifted_tensor_0"}
kept = {
    "weights": ("the state_dict", loaded.state_dict),
    "constants": ("other tensors of the graph", loaded.constants),
}
show.table(
    [{"folder": f, "what": what, "names": ", ".join(names)} for f, (what, names) in kept.items()]
)

# %%
# ``labels`` was an attribute, and ``lifted_tensor_0`` is the ``torch.tensor([-1.0])`` in ``forward``. The Python number has no entry: it
# is an argument in the graph, like the shapes:

show.program(loaded)

# %%
# Example inputs and source lines in the file
# -------------------------------------------
# The file also contains the example inputs, and the source line and file path of each operation. Check this before you share a file:


def entries(archive):
    with zipfile.ZipFile(archive) as opened:
        return {info.filename.partition("/")[2]: opened.read(info) for info in opened.infolist()}


inside = entries(paths[1])
assert torch.equal(loaded.example_inputs[0][0], samples[0][0])
graph = inside["models/model.json"].decode()
assert "y = self.linear((x - self.mean) * self.window) + self.labels" in graph
assert ", in forward" in graph
assert '"opset_version": {"aten": ' in graph  # and the version of its operators

# %%
# Add other information with extra_files
# --------------------------------------
# Attributes that are not tensors, methods, ``train()`` and ``eval()`` are not saved, because the capture fixed what depends on them. Add
# other information about the model as text, with ``extra_files``:

# sphinx_gallery_start_answer
module = loaded.module()
# sphinx_gallery_end_answer
assert not hasattr(module, "threshold")
with expect_failure(NotImplementedError, match="train"):
    module.train()
torch.export.save(program, paths[1], extra_files={"note.txt": "threshold 0.5"})
notes = {"note.txt": ""}
torch.export.load(paths[1], extra_files=notes)
assert notes == {"note.txt": "threshold 0.5"}

# %%
# The loaded program is right at sizes that its export never saw:

verify(loaded, model, samples).check()

# %%
# The plot shows the size of each part. In a model this small, the graph with your source lines is about as large as the weights:

sizes = Counter()
for name, content in inside.items():
    sizes[name.rpartition("/")[0].removeprefix("data/") or "format"] += len(content)
folders = [f for f in ("weights", "constants", "models", "sample_inputs") if f in sizes]
figure, axes = plt.subplots(figsize=(6.4, 2.6), layout="constrained")
bars = axes.barh(folders, [sizes[f] for f in folders], color="#0072B2")
axes.bar_label(bars, [f"{sizes[f]:,}" for f in folders], padding=4)
axes.set(xlabel="bytes", title="The graph is the largest part", xlim=(0, 1.2 * max(sizes.values())))
axes.invert_yaxis()
axes.spines[["top", "right"]].set_visible(False)
plt.show()
folder.cleanup()

# %%
# Next: :doc:`the graph of an ExportedProgram <first_graph>`.
