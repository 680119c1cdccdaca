"""
strict=True or strict=False: when does it matter?
=================================================

Rarely, and then it decides between a right graph and a wrong one. You will see a model that only one of the two gets right, without an
error from the other, a table of the Python that separates them, and which of the two ``torch.onnx.export`` uses.

``to_onnx`` is this site's own exporter, so check what is said of it here on a model of your own.
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
# ``strict=False`` runs your Python as it is, with tensors that have a shape and no values, and records the operations. ``strict=True``
# does not run it: it reads the bytecode, works out what it would do, and refuses what it does not understand. The first is the default:

assert inspect.signature(torch.export.export).parameters["strict"].default is False

# %%
# What goes wrong
# ---------------
# This model divides its input by the largest value in it. An empty batch has none, and the ``except`` is there for that.


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
loose, strict = (
    torch.export.export(model, samples[0], dynamic_shapes=batch, strict=mode)
    for mode in (False, True)
)

report = verify(loose, model, samples)
assert report.outcome == "wrong"
report

# %%
# Wrong everywhere, at the export's own inputs too. Strict capture of the same model is right:

verify(strict, model, samples).check()

# %%
# Why
# ---
# A tensor without values has no ``float``. Asking for it raises an error that ``torch.export`` would have shown you, but it is a
# ``RuntimeError``, and your ``except`` is nearer. The graph divides by the fallback:

assert issubclass(torch.fx.experimental.symbolic_shapes.GuardOnDataDependentSymNode, RuntimeError)
show.program(loose)

# %%
# Strict capture does not run the ``try``. It sees that ``float`` of a tensor is an ``item``, and records that:

show.program(strict)

# %%
# What works in both
# ------------------
# Keep the value in a tensor. Then there is nothing to catch, and an empty batch works as well, which strict capture had lost:

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
# What else separates them
# ------------------------
# More ordinary Python, each in a model of its own, captured in both ways and verified:


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
found = [f"{row['strict=False']}/{row['strict=True']}" for row in rows]
assert found == [
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
# The first line is silent as well: the tensor without values is of another type, so the other branch is taken. ``isinstance`` is safe.
# The last two are beyond both: a branch on a value needs :doc:`torch.cond </generated/gallery/torch_onnx/cond>`, and a counter has to be
# a buffer.
#
# Which one does torch.onnx.export use?
# -------------------------------------
# It has no ``strict`` to set. It tries the default first, and strict capture only where that raises an error:

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
# So a silent difference goes into the file. Capture it yourself, and hand the program on:

assert (
    verify(torch.onnx.export(loose, dynamo=True, verbose=False), model, samples).outcome == "wrong"
)
verify(torch.onnx.export(strict, dynamo=True, verbose=False), model, samples).check()

# %%
# ``to_onnx`` takes ``strict``, and tries nothing else:

verify(to_onnx(model, samples[0], dynamic_shapes=batch, strict=True), model, samples).check()
show.graphs({"strict=False": loose, "strict=True": strict})

# %%
# Stay with the default, and try ``strict=True`` if that fails or ``verify`` says *wrong*: the two stumble over different kinds of Python.
# Next: :doc:`loops that survive <scan>`.
