"""
What is in a .pt2 file, and what does it need to run?
=====================================================

``torch.export.save`` writes a program that another process runs without your code. You will look into the file, see that it still refuses
what it refused before, find out what is missing and what should not be there, and see the one thing that the other side imports.
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
# The model keeps numbers in every way there is: parameters, a buffer, a buffer that its ``state_dict`` leaves out, a tensor that is a plain
# attribute, a Python number.


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
# A second one calls an operator of your own:


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
# A stranger
# ----------
# The process below imports ``torch`` and nothing of yours. It gets three files: the module as ``torch.save`` writes it, and both programs
# as ``torch.export.save`` does. What it cannot load it reports; what it can load it runs, on your samples and on 17 rows, one more than
# was promised.

STRANGER = """
import sys, torch

def answers(run, samples):
    right = [run(x).detach() for x in samples]
    try:
        return right, run(torch.ones(17, 64))
    except AssertionError as refused:
        return right, str(refused)

def tried(load, samples):
    try:
        return answers(load(), samples)
    except Exception as error:
        return f"{type(error).__name__}: {error}"

module, program, custom, samples, answer = sys.argv[1:]
given = torch.load(samples)
found = [
    tried(lambda: torch.load(module, weights_only=False), given),
    tried(lambda: torch.export.load(program).module(), given),
    tried(lambda: torch.export.load(custom).module(), given),
]
torch.save(found, answer)
"""

folder = tempfile.TemporaryDirectory()
names = ("scorer.pt", "scorer.pt2", "custom.pt2", "samples.pt", "answer.pt")
paths = [Path(folder.name, name) for name in names]
torch.save(model, paths[0])
torch.export.save(program, paths[1])
torch.export.save(custom, paths[2])
torch.save([x for (x,) in samples], paths[3])
call = [sys.executable, "-c", STRANGER, *map(str, paths)]
subprocess.run(call, check=True, capture_output=True)
from_module, from_program, from_custom = torch.load(paths[4])

# %%
# What goes wrong
# ---------------
# ``torch.save`` writes the numbers and the *name* of the class. The stranger has the name, and no class:

assert "Can't get attribute 'Scorer'" in from_module
print(from_module)

# %%
# What works
# ----------
# A program has no class to look for. At four sizes, of which the export saw one, the stranger's answers are those of the model. It refuses
# 17 rows, so the range made the journey:

for (x,), answer in zip(samples, from_program[0], strict=True):
    torch.testing.assert_close(answer, model(x).detach())
assert from_program[1] == "Guard failed: x.size()[0] <= 16"
from_program[1]

# %%
# What the stranger has to import
# -------------------------------
# An operator of your own is in the graph by its name, and the name is all there is. Loading fails until somebody has registered it. (Which
# one it is stands in the log, above the error.)

assert "error when deserializing" in from_custom
print(from_custom)
assert torch.equal(torch.export.load(paths[2]).module()(*samples[0]), samples[0][0] / 2)

# %%
# What is in the file
# -------------------
# It is a zip archive. Weights have one entry each, and so have *constants*: tensors that the graph reads and the ``state_dict`` does not
# have.

loaded = torch.export.load(paths[1])
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
# ``labels`` was an attribute, ``lifted_tensor_0`` is the ``torch.tensor([-1.0])`` in the middle of ``forward``. The Python number has no
# entry. It is an argument in the graph, and so are the shapes:

show.program(loaded)

# %%
# What came along uninvited
# -------------------------
# The example inputs are in the file. So is, for every operation, the line of your code and the path of the file that it stands in. Look
# before you hand a file to strangers:


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
# What stayed behind
# ------------------
# Attributes that are no tensors, methods, ``train()`` and ``eval()``: there is nobody left to ask. What depended on them was decided at
# the capture. Whatever else belongs to the model goes beside it, as text, with ``extra_files``:

module = loaded.module()
assert not hasattr(module, "threshold")
with expect_failure(NotImplementedError, match="train"):
    module.train()
torch.export.save(program, paths[1], extra_files={"note.txt": "threshold 0.5"})
torch.export.load(paths[1], extra_files=(notes := {"note.txt": ""}))
assert notes == {"note.txt": "threshold 0.5"}

# %%
# What did come back is right at sizes that its export never saw:

verify(loaded, model, samples).check()

# %%
# What takes the room? In a model this small, the graph with your lines of code is about as large as the weights:

sizes = Counter()
for name, content in inside.items():
    sizes[name.rpartition("/")[0].removeprefix("data/") or "format"] += len(content)
folders = [f for f in ("weights", "constants", "models", "sample_inputs") if f in sizes]
figure, axes = plt.subplots(figsize=(6.4, 2.6), layout="constrained")
bars = axes.barh(folders, [sizes[f] for f in folders], color="#0072B2")
axes.bar_label(bars, [f"{sizes[f]:,}" for f in folders], padding=4)
axes.set(xlabel="bytes", title="The graph weighs the most", xlim=(0, 1.2 * max(sizes.values())))
axes.invert_yaxis()
axes.spines[["top", "right"]].set_visible(False)
plt.show()
folder.cleanup()

# %%
# A ``.pt2`` file holds everything that the graph reads; of your classes and operators it holds only the names. Next: :doc:`what the graph
# itself looks like <first_graph>`.
