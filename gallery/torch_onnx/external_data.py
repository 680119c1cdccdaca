"""
Why does torch.onnx.export write model.onnx.data, and how do I get one file?
============================================================================

With a path, it writes the weights into a second file. Pass ``external_data=False`` for one file, or keep both files together under their
names.

``torch.onnx.export`` writes the graph into one file and the weights into a second file, called external data. This recipe shows when that
happens and why a moved or renamed model doesn't load. It also shows an undetected mix-up of two models, and how to get a single file.
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
# The two models have the same shape but different weights. We export each into its own folder.


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
# What goes wrong: copying only model.onnx
# ----------------------------------------
# Copy the model file without the data file:


def session(model):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def right(session, model):
    (given,) = session.get_inputs()
    answer = torch.from_numpy(session.run(None, {given.name: seven.numpy()})[0])
    return torch.allclose(answer, model(seven), atol=1e-5)


def refusal(path):
    """Return the error of ONNX Runtime without the name of the folder, or an empty string if the file loads."""
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
# Why: weights are stored by file name
# ------------------------------------
# The model stores a file name, an offset and a length for each external weight. The name is relative to the model, and is fixed at
# export. Weights smaller than 256 bytes stay in the model file:


def places(path):
    weights = onnx.load(path, load_external_data=False).graph.initializer
    return [{"weight": w.name, **{e.key: e.value for e in w.external_data}} for w in weights]


assert [len(place) for place in places(first / "model.onnx")] == [4, 4, 4, 1]
show.table(places(first / "model.onnx")[:3])

# %%
# Renaming both files doesn't help, because the renamed model still refers to the old name.

for name in ("model.onnx", "model.onnx.data"):
    shutil.copy(first / name, away / f"renamed_{name}")
assert '"away/model.onnx.data"' in refusal(away / "renamed_model.onnx")

# %%
# Mixed-up weights are not detected
# ---------------------------------
# Combine the graph of the first model with the weights of the second. They match in names and sizes, so the model runs:

shutil.copy(second / "model.onnx.data", away)
mixed = session(away / "model.onnx")
assert not right(mixed, model)
assert not right(mixed, later)

# %%
# The results match neither model. Three weights come from the second model, and the small one inside the graph file comes from the first.
#
# The files contain no checksum that would detect this. Give each model its own name or folder, and copy whole folders.

# %%
# When the exporters write external data
# --------------------------------------
# A protobuf message is limited to 2 GiB, or 536,870,912 weights of four bytes. Larger models need external data, and for smaller ones it
# is optional. The exporters have different thresholds. Here we set both to 10 kB, to show the effect with a small model.

small = (
    patch("torch.onnx._internal.exporter._onnx_program._LARGE_MODEL_THRESHOLD", 10_000),
    patch("fx2onnx.program.EXTERNAL_DATA_ABOVE", 10_000),
)
own = to_onnx(model, (four,), dynamic_shapes=({0: "b"},))
programs = {"torch.onnx.export": program, "to_onnx": own}


def written(program, **options):
    with tempfile.TemporaryDirectory() as folder:
        program.save(Path(folder, "model.onnx"), **options)
        return len(files(Path(folder)))


def count(**options):
    below = {name: written(p, **options) for name, p in programs.items()}
    with small[0], small[1]:
        above = {f"{name}, above": written(p, **options) for name, p in programs.items()}
    return below | above


choices = ({}, {"external_data": True}, {"external_data": False})
counts = [count(**options) for options in choices]
assert [list(counted.values()) for counted in counts] == [[1, 1, 2, 2], [2, 2, 2, 2], [1, 1, 2, 1]]
show.table(
    [
        {
            "save arguments": ", ".join(f"{k}={v}" for k, v in options.items()) or "none",
            **counted,
        }
        for options, counted in zip(choices, counts, strict=True)
    ]
)

# %%
# - ``program.save(path)`` writes one file below a threshold: 1,536 MiB for ``torch.onnx.export``, and 500 MB for ``to_onnx``. (A single
#   file needs several copies in memory.)
# - ``torch.onnx.export(…, path)`` saves with ``external_data=True`` for every size. Pass ``external_data=False`` to get one file, or
#   leave out the path and call ``save``.
# - Above its threshold, the program of ``torch.onnx.export`` ignores ``external_data=False``. The program of ``to_onnx`` writes one file
#   up to the protobuf limit.
#
# Merge external data into one file
# ---------------------------------
# ``onnx.load`` loads the weights, and ``onnx.save`` writes them into the model file. A model from ``onnx_ir.load`` still refers to the
# old data file when you save it, unless you call ``load_to_model``:

# sphinx_gallery_start_answer
onnx.save(onnx.load(first / "model.onnx"), away / "one.onnx")
# sphinx_gallery_end_answer
# sphinx_gallery_start_ignore
# sphinx_gallery_start_answer
program.save(away / "single.onnx", external_data=False)
# sphinx_gallery_end_answer
# sphinx_gallery_end_ignore
loaded = ir.load(first / "model.onnx")
ir.save(loaded, away / "points.onnx")
ir.save(ir.external_data.load_to_model(loaded), away / "whole.onnx")
sizes = files(away)
assert sizes["points.onnx"] < 10_000 < min(sizes["one.onnx"], sizes["whole.onnx"])
for name in ("one.onnx", "whole.onnx"):
    assert right(session(away / name), model)

# %%
# The exported programs are right, at a size that the export never saw:

for made in programs.values():
    verify(made, model, [(four,), (seven,)]).check()

# %%
# The plot shows what each call writes:

ways = {
    "torch.onnx.export(…, path)": files(first),
    "program.save(path)": {"model.onnx": sizes["one.onnx"]},
}
colors = {"model.onnx": "#0072B2", "model.onnx.data": "#E69F00"}
figure, axes = plt.subplots(figsize=(6.8, 2.3), layout="constrained")
for name, color in colors.items():
    lengths = [counted.get(name, 0) for counted in ways.values()]
    starts = [0 if name == "model.onnx" else counted["model.onnx"] for counted in ways.values()]
    axes.barh(list(ways), lengths, left=starts, color=color, label=name)
figure.suptitle("torch.onnx.export with a path writes two files; save() writes one", fontsize=11)
axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2, frameon=False)
axes.set(xlabel="bytes")
axes.invert_yaxis()
axes.spines[["top", "right"]].set_visible(False)
plt.show()
everything.cleanup()

# %%
# Next: :doc:`input, output and weight names <names>`.
