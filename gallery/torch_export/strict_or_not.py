"""
torch.export strict=True or strict=False: when does it matter?
==============================================================

It matters for a few Python constructs that one mode refuses or captures wrongly. Use the default, and try ``strict=True`` if it fails or
if ``verify`` reports *wrong*.

Most models export the same way in both modes of ``torch.export``. But some Python code fails or produces a wrong graph in one of them.
This recipe shows a model that only strict mode exports correctly, lists the Python code that separates the modes, and explains which mode
``torch.onnx.export`` uses.
"""

import inspect
import logging
import time
from unittest import mock

import numpy as np
import torch
from torch import nn

from exportlab import compare, expect_failure, show, to_onnx, verify

# %%
# ``strict=False`` runs your Python code with tensors that have a shape but no values, and records the operations. ``strict=True`` doesn't
# run the code: it interprets the bytecode, and refuses what it doesn't support. The default is ``strict=False``:

assert inspect.signature(torch.export.export).parameters["strict"].default is False

# %%
# What goes wrong: an except that catches the export error
# --------------------------------------------------------
# The model divides its input by the largest absolute value. An empty batch has no largest value, and the ``except`` handles that case.


class ByLargest(nn.Module):
    def forward(self, x):
        try:
            largest = float(x.abs().max())
        except RuntimeError:
            largest = 1.0
        return x / largest


torch.manual_seed(0)
samples = [(torch.randn(rows, 3),) for rows in (4, 7, 1)]
batch = ({0: torch.export.Dim.DYNAMIC},)
model = ByLargest().eval()
# sphinx_gallery_start_answer
loose, strict = (
    torch.export.export(model, samples[0], dynamic_shapes=batch, strict=mode)
    for mode in (False, True)
)
# sphinx_gallery_end_answer

report = verify(loose, model, samples)
assert report.outcome == "wrong"
report

# %%
# The result is wrong at every size, including that of the export. Strict capture of the same model is right:

# sphinx_gallery_start_answer
verify(strict, model, samples).check()
# sphinx_gallery_end_answer

# %%
# Why the graph is wrong
# ----------------------
# ``float`` needs a value, and the tensor has none during capture. ``torch.export`` raises an error for this, but the error is a
# ``RuntimeError``, so your ``except`` catches it. The graph divides by the fallback:

assert issubclass(torch.fx.experimental.symbolic_shapes.GuardOnDataDependentSymNode, RuntimeError)
show.program(loose)

# %%
# Strict capture doesn't run the ``try``. It recognises ``float`` of a tensor as ``item``, and records it:

show.program(strict)

# %%
# What works in both modes
# ------------------------
# Keep the value in a tensor. No exception occurs, and the program also supports an empty batch, which the strict program doesn't:

with expect_failure(RuntimeError, match="Expected reduction dim to be specified", lines=1):
    strict.module()(torch.zeros(0, 3))


class ByLargestTensor(nn.Module):
    def forward(self, x):
        return x / torch.cat([x.abs().flatten(), x.new_zeros(1)]).max()


for mode in (False, True):
    program = torch.export.export(
        ByLargestTensor().eval(), samples[0], dynamic_shapes=batch, strict=mode
    )
    verify(program, model, [*samples, (torch.randn(0, 3),)]).check()

# %%
# Python code that separates the modes
# ------------------------------------
# Each model below contains one common Python construct. We capture it in both modes and verify the result:


class Calling(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class Counting(nn.Module):
    calls = 0

    def forward(self, x):
        self.calls += 1
        return x * self.calls


def formatted(x):
    LOGGER.debug(f"mean {x.mean():.2f}")
    return torch.relu(x)


def asserted(x):
    assert x.max() < 100, "too large"
    return torch.relu(x)


def timed(x):
    start = time.perf_counter()
    y = torch.relu(x)
    LOGGER.debug("%f s", time.perf_counter() - start)
    return y


LOGGER = logging.getLogger("scores")
MODELS = {
    "type(x) is torch.Tensor": Calling(
        lambda x: torch.relu(x) if type(x) is torch.Tensor else torch.sin(x)
    ),
    "isinstance(x, torch.Tensor)": Calling(
        lambda x: torch.relu(x) if isinstance(x, torch.Tensor) else torch.sin(x)
    ),
    'f"{x.mean():.2f}"': Calling(formatted),
    "assert x.max() < 100": Calling(asserted),
    "np.tanh(x.numpy())": Calling(lambda x: torch.from_numpy(np.tanh(x.numpy()))),
    "time.perf_counter()": Calling(timed),
    "if x.sum() > 0": Calling(lambda x: x + 1 if x.sum() > 0 else x - 1),
    "self.calls += 1": Counting(),
}


def outcome(model, **options):
    compared = compare(
        model.eval(),
        samples,
        dynamic_shapes=batch,
        exporters=("torch.export",),
        options={"torch.export": options},
    )
    return compared.outcomes()["torch.export"]


rows = [
    {"python": k, "strict=False": outcome(m), "strict=True": outcome(m, strict=True)}
    for k, m in MODELS.items()
]
pairs = [f"{row['strict=False']}/{row['strict=True']}" for row in rows]
assert pairs == [
    "wrong/ok",
    "ok/ok",
    "capture/ok",
    "capture/ok",
    "capture/ok",
    "ok/capture",
    "capture/capture",
    "wrong/wrong",
]
show.table(rows)

# %%
# ``type(x) is torch.Tensor`` is also wrong in non-strict mode: the tensor without values has another type, so the other branch is
# captured. Use ``isinstance`` for such a test. The last two models need another change: :doc:`torch.cond
# </generated/gallery/torch_onnx/cond>` for the branch on a value, and a buffer for the counter.
#
# Which mode torch.onnx.export uses
# ---------------------------------
# ``torch.onnx.export`` has no ``strict`` argument. It tries ``strict=False`` first, and strict capture only if that raises an error:

assert "strict" not in inspect.signature(torch.onnx.export).parameters


def modes_tried(model):
    with mock.patch("torch.export.export", wraps=torch.export.export) as export:
        torch.onnx.export(
            model.eval(), samples[0], dynamic_shapes=batch, dynamo=True, verbose=False
        )
    return [call.kwargs["strict"] for call in export.call_args_list]


assert modes_tried(Calling(formatted)) == [False, True]
assert modes_tried(model) == [False]

# %%
# A wrong non-strict graph therefore becomes a wrong ONNX model. To use strict mode, capture with ``torch.export.export`` and convert the
# program:

assert (
    verify(torch.onnx.export(loose, dynamo=True, verbose=False), model, samples).outcome == "wrong"
)
verify(torch.onnx.export(strict, dynamo=True, verbose=False), model, samples).check()

# %%
# ``to_onnx`` accepts ``strict``, and doesn't try the other mode:

verify(to_onnx(model, samples[0], dynamic_shapes=batch, strict=True), model, samples).check()
show.graphs({"strict=False": loose, "strict=True": strict})

# %%
# Next: :doc:`loops with scan <scan>`.
