"""
How do I export a PyTorch model to ONNX with torch.onnx.export?
===============================================================

Call ``torch.onnx.export`` with the model, an example input, a path and ``dynamic_shapes``. Without ``dynamic_shapes``, the ONNX model
accepts only the sizes of the example.

If ``forward`` tests a size, :doc:`capture with Dim first </docs/choosing>`, because the model may be wrong at other sizes. This recipe
exports a convolution with a dynamic batch, height and width, and runs it in ONNX Runtime. Install ``onnx``, ``onnxscript`` and
``onnxruntime`` first. It then compares ``torch.onnx.export`` with its legacy mode ``dynamo=False`` and with ``to_onnx``.
"""

import tempfile
import textwrap
import warnings
from pathlib import Path

import onnx
import onnxruntime
import torch
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument
from torch import nn

from exportlab import compare, expect_failure, show, to_onnx, verify

# %%
# The model is a convolution followed by a relu.


class ConvRelu(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 128, 5)

    def forward(self, x):
        return torch.relu(self.conv(x))


torch.manual_seed(0)
model = ConvRelu().eval()
picture = torch.rand(1, 1, 128, 128)
folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "model.onnx"

# %%
# Export, load and run
# --------------------
# ``dynamic_shapes`` has one entry for each argument of ``forward``. Each entry maps dynamic dimensions to their names. ONNX Runtime takes a
# dictionary that maps input names to NumPy arrays:

# sphinx_gallery_start_answer
two = torch.rand(2, 1, 128, 128)  # an example input of your model
axes = {0: "batch", 2: "height", 3: "width"}  # the dynamic dimensions and their names
program = torch.onnx.export(
    model, (two,), path, input_names=["input"], dynamic_shapes=(axes,), verbose=False
)
session = onnxruntime.InferenceSession(path)
(output,) = session.run(None, {"input": two.numpy()})
# sphinx_gallery_end_answer
torch.testing.assert_close(torch.from_numpy(output), model(two).detach())

# %%
# This is the graph with its named dimensions. The height and the width of the output are expressions of those of the input:

show.graph(program, title="A convolution in ONNX")

# %%
# Export with the three exporters
# -------------------------------
# ``torch.onnx.export`` with ``dynamo=True``, the default, captures the model with ``torch.export``. ``dynamo=False`` is the legacy
# exporter: it records one run of the model, and is deprecated. ``to_onnx`` also runs the model, at several sizes if some are dynamic, and
# uses ``torch.export`` if the runs are not sufficient. We maintain ``to_onnx``. It accepts most arguments of ``torch.onnx.export``. All
# three need an example input. We also export with ``external_data=False``, to compare the files:

default, single, legacy, own = (
    Path(folder.name) / f"{name}.onnx" for name in ("default", "single", "legacy", "to_onnx")
)
torch.onnx.export(model, (picture,), default, input_names=["input"], dynamo=True, verbose=False)
torch.onnx.export(
    model,
    (picture,),
    single,
    input_names=["input"],
    dynamo=True,
    verbose=False,
    external_data=False,
)
torch.onnx.export(model, (picture,), legacy, input_names=["input"], dynamo=False)
to_onnx(model, (picture,), input_names=["input"]).save(own)

# %%
# Compare the results:


def row(path):
    model = onnx.load(path)
    return {
        "file": path.name,
        "opset": model.opset_import[0].version,
        "nodes": ", ".join(node.op_type for node in model.graph.node),
        "input": model.graph.input[0].name,
        "output": model.graph.output[0].name,
        "bytes": " + ".join(
            f"{file.stat().st_size:,} ({file.suffix})"
            for file in sorted(path.parent.glob(f"{path.name}*"))
        ),
    }


rows = [row(path) for path in (default, single, legacy, own)]
assert [(r["opset"], r["nodes"], r["input"]) for r in rows] == [(20, "Conv, Relu", "input")] * 4
assert not list(own.parent.glob("to_onnx.onnx.*"))
assert [r["output"] for r in rows] == ["relu", "relu", "4", "relu"]
show.table(rows)

# %%
# All models have the same two nodes, the same opset, and the requested input name. By default, ``torch.onnx.export`` writes the weights
# into a second file, ``default.onnx.data``, which has to stay with the first. ``external_data=False`` writes a single file. ``to_onnx``
# writes a single file unless the weights exceed 500 MB. If you don't pass ``output_names``, the output is named after its operator. The
# legacy exporter uses a number instead.
#
# In ONNX Runtime, each model gives the same result as PyTorch:

sessions = [onnxruntime.InferenceSession(path) for path in (default, legacy, own)]
for session in sessions:
    (answer,) = session.run(None, {"input": picture.numpy()})
    torch.testing.assert_close(torch.from_numpy(answer), model(picture).detach())

# %%
# Sizes are static by default
# ---------------------------
# We didn't request dynamic dimensions for these models, so they accept only the size of the example. With two smaller images, all three
# raise the same error:

for session in sessions:
    with expect_failure(InvalidArgument, match="Got invalid dimensions for input", lines=4):
        session.run(None, {"input": torch.rand(2, 1, 64, 96).numpy()})

# %%
# Verify the model at other sizes
# -------------------------------
# The model from the first export has dynamic dimensions. Verify it at sizes that the export never saw, including an empty batch. Then
# compare all exporters:

samples = [(two,)] + [
    (torch.rand(size),) for size in ((1, 1, 64, 96), (3, 1, 9, 200), (0, 1, 9, 9))
]
verify(program, model, samples).check()
compared = compare(model, samples, dynamic_shapes=(axes,))
assert set(compared.outcomes().values()) == {"ok"}
compared

# %%
# It is safer to use an example with two images. ``torch.export.export`` refuses to make a dimension dynamic if its size is 1 in the
# example. ``torch.onnx.export`` and ``to_onnx`` accept it, but :doc:`not for all models <model_mlp>`:

one = compare(
    model,
    [(picture,), (two,)],
    dynamic_shapes=(axes,),
    exporters=("torch.export", "dynamo", "to_onnx"),
)
assert one.outcomes() == {"torch.export": "capture", "dynamo": "ok", "to_onnx": "ok"}
one

# %%
# dynamic_axes or dynamic_shapes
# ------------------------------
# Pass ``dynamic_shapes``, which follows the arguments of ``forward``, with ``dynamo=True``. Pass ``dynamic_axes``, whose keys are input
# names, with ``dynamo=False``. The legacy exporter rejects ``dynamic_shapes``:

with expect_failure(
    ValueError, match="only supports dynamic shapes through parameter dynamic_axes"
):
    torch.onnx.export(
        model, (two,), legacy, input_names=["input"], dynamic_shapes=(axes,), dynamo=False
    )

# %%
# ``dynamo=True`` converts ``dynamic_axes``, with a warning:

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always", UserWarning)
    torch.onnx.export(
        model,
        (two,),
        default,
        input_names=["input"],
        dynamic_axes={"input": axes},
        dynamo=True,
        verbose=False,
    )
(warning,) = [
    str(w.message) for w in caught if "dynamic_axes" in str(w.message) and w.category is UserWarning
]
print(textwrap.fill(warning, 96))
folder.cleanup()

# %%
# Next: :doc:`differences between PyTorch and ONNX Runtime <linear_regression>`.
