"""
Why are there two files, and what breaks when I move one?
=========================================================

``torch.onnx.export`` writes the graph into one file and the weights into another beside it. You will see who decides that and when,
what happens to a file that is moved, renamed or copied without its weights, the one mix-up that nobody notices, and how to get a single
file back.
"""

import shutil
import tempfile
from pathlib import Path
from unittest.mock import patch

import matplotlib.pyplot as plt
import onnx
import onnx_ir as ir
import onnxruntime
import torch
from onnxruntime.capi.onnxruntime_pybind11_state import Fail
from torch import nn

from exportlab import show, to_onnx, verify
from exportlab.messages import muffled

# %%
# Two models of one shape, the second trained longer, say. Each gets a folder.


def network():
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 8)).eval()


def exported(model, *path):
    shapes = ({0: "batch"},)
    with muffled():
        return torch.onnx.export(
            model, (four,), *path, dynamic_shapes=shapes, dynamo=True, verbose=False
        )


torch.manual_seed(0)
model, later = network(), network()
four, seven = torch.randn(4, 64), torch.randn(7, 64)
everything = tempfile.TemporaryDirectory()
first, second, away = (Path(everything.name, name) for name in ("first", "second", "away"))
for folder in (first, second, away):
    folder.mkdir()
program = exported(model, first / "model.onnx")
exported(later, second / "model.onnx")


def files(folder):
    return {file.name: file.stat().st_size for file in sorted(folder.iterdir())}


show.table([{"file": name, "bytes": f"{size:,}"} for name, size in files(first).items()])

# %%
# What goes wrong
# ---------------
# Copy the file that is called a model, and leave the other:


def session(model):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def right(session, model):
    (given,) = session.get_inputs()
    answer = torch.from_numpy(session.run(None, {given.name: seven.numpy()})[0])
    return torch.allclose(answer, model(seven), atol=1e-5)


def refusal(path):
    """Why ONNX Runtime refuses a file, without the folder that the files are in; nothing where it takes it."""
    try:
        session(path)
    except Fail as error:
        reason = str(error).replace(f"{everything.name}/", "")
        return reason[reason.rindex("External data") :]
    return ""


assert right(session(first / "model.onnx"), model)
shutil.copy(first / "model.onnx", away)
reason = refusal(away / "model.onnx")
assert 'External data path does not exist: "away/model.onnx.data"' in reason
print(reason)

# %%
# Why
# ---
# Where a weight should be, there is the name of a file, a position in it, and a length. The name is relative to the model and was written
# down at the export. What is smaller than 256 bytes stays in the model:


def places(path):
    weights = onnx.load(path, load_external_data=False).graph.initializer
    return [{"weight": w.name, **{e.key: e.value for e in w.external_data}} for w in weights]


assert [len(place) for place in places(first / "model.onnx")] == [4, 4, 4, 1]
show.table(places(first / "model.onnx")[:3])

# %%
# So renaming both does not help either: the renamed model looks for the old name.

for name in ("model.onnx", "model.onnx.data"):
    shutil.copy(first / name, away / f"renamed_{name}")
assert '"away/model.onnx.data"' in refusal(away / "renamed_model.onnx")

# %%
# The mix-up that nobody notices
# ------------------------------
# Put the weights of the second model beside the graph of the first. Names, positions and lengths fit, so the file loads and runs:

shutil.copy(second / "model.onnx.data", away)
mixed = session(away / "model.onnx")
assert not right(mixed, model)
assert not right(mixed, later)

# %%
# The answers are those of neither. Three weights came from the second model, and the small one, inside the graph, from the first.
#
# Nothing in either file says that they belong together. Give each model a name or a folder of its own, and move folders.

# %%
# Who decides
# -----------
# One file is one protobuf message, and a message ends at 2 GiB: 536,870,912 weights of four bytes. Above that there have to be two, and
# below, it is a choice. The two exporters choose at different sizes; to see it with a small model, both are set to 10 kB here.

small = (
    patch("torch.onnx._internal.exporter._onnx_program._LARGE_MODEL_THRESHOLD", 10_000),
    patch("fx2onnx.program.EXTERNAL_DATA_ABOVE", 10_000),
)
programs = {"official": program, "to_onnx": to_onnx(model, (four,), dynamic_shapes=({0: "b"},))}


def written(program, **options):
    with tempfile.TemporaryDirectory() as folder:
        program.save(Path(folder, "model.onnx"), **options)
        return len(files(Path(folder)))


def count(**options):
    below = {name: written(p, **options) for name, p in programs.items()}
    with small[0], small[1]:
        above = {f"{name}, above": written(p, **options) for name, p in programs.items()}
    return below | above


asked = ({}, {"external_data": True}, {"external_data": False})
counts = [count(**options) for options in asked]
assert [list(found.values()) for found in counts] == [[1, 1, 2, 2], [2, 2, 2, 2], [1, 1, 2, 1]]
show.table(
    [
        {
            "asked of program.save": ", ".join(f"{k}={v}" for k, v in options.items()) or "nothing",
            **found,
        }
        for options, found in zip(asked, counts, strict=True)
    ]
)

# %%
# - ``program.save(path)`` writes one file below a threshold: 1,536 MiB for the official program, 500 MB for that of ``to_onnx``. (A
#   single file is put together in memory, several times over; a second one is streamed.)
# - ``torch.onnx.export(…, path)`` saves with ``external_data=True``, whatever the size. That is where your two files come from; pass
#   ``external_data=False``, or leave out the path and call ``save``.
# - Above its threshold, the official program does not take ``False`` for an answer. ``to_onnx`` does, up to where protobuf ends.
#
# To get a single file back
# -------------------------
# ``onnx.load`` fetches the weights, ``onnx.save`` writes them into the model. ``onnx_ir`` does not fetch what nobody asked for. Saved
# again, its model still points at the old file, until ``load_to_model``:

onnx.save(onnx.load(first / "model.onnx"), away / "one.onnx")
loaded = ir.load(first / "model.onnx")
ir.save(loaded, away / "points.onnx")
ir.save(ir.external_data.load_to_model(loaded), away / "whole.onnx")
sizes = files(away)
assert sizes["points.onnx"] < 10_000 < min(sizes["one.onnx"], sizes["whole.onnx"])
for name in ("one.onnx", "whole.onnx"):
    assert right(session(away / name), model)

# %%
# The programs themselves are right, at a size that the export never saw, however they are saved:

for made in programs.values():
    verify(made, model, [(four,), (seven,)]).check()

# %%
# What is where:

ways = {
    "torch.onnx.export(…, path)": files(first),
    "program.save(path)": {"model.onnx": sizes["one.onnx"]},
}
colors = {"model.onnx": "#0072B2", "model.onnx.data": "#E69F00"}
figure, axes = plt.subplots(figsize=(6.8, 2.3), layout="constrained")
for name, color in colors.items():
    lengths = [found.get(name, 0) for found in ways.values()]
    starts = [0 if name == "model.onnx" else found["model.onnx"] for found in ways.values()]
    axes.barh(list(ways), lengths, left=starts, color=color, label=name)
figure.suptitle("Given a path, torch.onnx.export writes two files; save() writes one", fontsize=11)
axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2, frameon=False)
axes.set(xlabel="bytes")
axes.invert_yaxis()
axes.spines[["top", "right"]].set_visible(False)
plt.show()
everything.cleanup()

# %%
# Two files are one model: move them together, under their own names, in a folder of their own. Next: :doc:`what goes into names
# <names>`.
