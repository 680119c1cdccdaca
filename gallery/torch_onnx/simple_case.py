"""
How do I export a model to ONNX?
================================

One convolution goes through both flavours of ``torch.onnx.export``, and through ``to_onnx``, the exporter of this site. You will see what
each one writes, how to run the file, what happens at another size, and how to allow other sizes.

``to_onnx`` is this site's own exporter, so check what is said of it here on a model of your own.
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
# The model: a convolution and a relu.


class ConvRelu(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 128, 5)

    def forward(self, x):
        return torch.relu(self.conv(x))


torch.manual_seed(0)
model = ConvRelu().eval()
picture = torch.rand(1, 1, 128, 128)

# %%
# Two flavours, one function, and a second function
# -------------------------------------------------
# ``dynamo=True`` captures the model with ``torch.export`` first. It is the default. ``dynamo=False`` records one run of the model; it
# is deprecated, and you will still meet it. ``to_onnx`` runs the model as well, at several sizes where sizes move, and captures with
# ``torch.export`` where runs do not show enough; it takes the same arguments. All want an example of the input.

folder = tempfile.TemporaryDirectory()
newer, single, older, own = (
    Path(folder.name) / f"{name}.onnx" for name in ("newer", "single", "older", "own")
)
torch.onnx.export(model, (picture,), newer, input_names=["input"], dynamo=True, verbose=False)
torch.onnx.export(
    model,
    (picture,),
    single,
    input_names=["input"],
    dynamo=True,
    verbose=False,
    external_data=False,
)
torch.onnx.export(model, (picture,), older, input_names=["input"], dynamo=False)
to_onnx(model, (picture,), input_names=["input"]).save(own)

# %%
# Side by side:


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


rows = [row(path) for path in (newer, single, older, own)]
assert [(r["opset"], r["nodes"], r["input"]) for r in rows] == [(20, "Conv, Relu", "input")] * 4
assert not list(own.parent.glob("own.onnx.*"))
assert [r["output"] for r in rows] == ["relu", "relu", "4", "relu"]
show.table(rows)

# %%
# The same two nodes, the same opset, the input named as asked. By default the newer flavour puts the weights into a second file,
# ``newer.onnx.data``, which has to travel with the first; ``external_data=False`` keeps everything in one. ``save`` of
# ``to_onnx`` keeps it in one until the weights are too large for that. An output that you do not name is called after the op that computes it;
# ``dynamo=False`` numbers it.
#
# Run it
# ------
# ONNX Runtime takes and gives numpy arrays, by the name of the input:

sessions = [onnxruntime.InferenceSession(path) for path in (newer, older, own)]
for session in sessions:
    (answer,) = session.run(None, {"input": picture.numpy()})
    torch.testing.assert_close(torch.from_numpy(answer), model(picture).detach())

# %%
# Another size is refused
# -----------------------
# No call said that anything may move, so all files hold the sizes of the example. Two smaller pictures do not pass, and all say the same:

for session in sessions:
    with expect_failure(InvalidArgument, match="Got invalid dimensions for input", lines=4):
        session.run(None, {"input": torch.rand(2, 1, 64, 96).numpy()})

# %%
# Name the axes that move
# -----------------------
# ``dynamic_shapes`` has one entry for each argument of ``forward``: which axes move, and what to call them.

axes = {0: "batch", 2: "height", 3: "width"}
two = torch.rand(2, 1, 128, 128)
program = torch.onnx.export(
    model, (two,), input_names=["input"], dynamic_shapes=(axes,), dynamo=True, verbose=False
)

# %%
# Hold it against the model, at sizes that the export never saw, an empty batch among them; then every exporter in the same way:

samples = [(two,)] + [
    (torch.rand(size),) for size in ((1, 1, 64, 96), (3, 1, 9, 200), (0, 1, 9, 9))
]
verify(program, model, samples).check()
compared = compare(model, samples, dynamic_shapes=(axes,))
assert set(compared.outcomes().values()) == {"ok"}
compared

# %%
# Why two pictures? ``torch.export`` by itself takes a size of 1 in the example for a constant, and refuses to move it. ``to_onnx`` tells it
# not to:

one = compare(
    model, [(picture,), (two,)], dynamic_shapes=(axes,), exporters=("torch.export", "to_onnx")
)
assert one.outcomes() == {"torch.export": "capture", "to_onnx": "ok"}
one

# %%
# ``dynamic_axes`` or ``dynamic_shapes``?
# ---------------------------------------
# ``dynamic_axes`` goes by the names of the file's inputs and belongs to ``dynamo=False``; ``dynamic_shapes`` goes by the arguments of
# ``forward`` and belongs to ``dynamo=True``. The older flavour refuses the newer spelling:

with expect_failure(
    ValueError, match="only supports dynamic shapes through parameter dynamic_axes"
):
    torch.onnx.export(
        model, (two,), older, input_names=["input"], dynamic_shapes=(axes,), dynamo=False
    )

# %%
# The newer flavour translates the older spelling, and warns:

with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always", UserWarning)
    torch.onnx.export(
        model,
        (two,),
        newer,
        input_names=["input"],
        dynamic_axes={"input": axes},
        dynamo=True,
        verbose=False,
    )
(warning,) = [
    str(w.message) for w in said if "dynamic_axes" in str(w.message) and w.category is UserWarning
]
print(textwrap.fill(warning, 96))
folder.cleanup()

# %%
# Here is the file with its named axes. The output knows how its size follows from the input's:

show.graph(program, title="A convolution in ONNX")

# %%
# A file takes the sizes of its example until you name the axes that move; then verify it at other sizes. Next: :doc:`does a trained model
# give the same answers? <linear_regression>`
