"""
How do I see all the lines that torch.export refuses, at once?
==============================================================

``torch.export.export`` stops at the first line that it cannot capture. ``torch.export.draft_export`` goes on, with the values of your
example, and lists them all. You will read such a list, see why you should not use the program that comes with it, and make the smallest
change for each entry, until the real export passes.
"""

import os
import tempfile
from unittest.mock import patch

import matplotlib.pyplot as plt
import torch
from torch import nn
from torch.export import Dim, draft_export

from exportlab import expect_failure, show, verify
from exportlab.messages import heard

# %%
# This model asks for trouble three times: an operator of which torch knows no more than the name, an ``if`` on a value, and an ``if`` on
# a size.


@torch.library.custom_op("lab_draft::running", mutates_args=())
def running(x: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(x.numpy().cumsum(-1))


class Trend(nn.Module):
    def forward(self, x, limit):
        y = running(x)
        if limit.item() > 0:
            y = y.clamp(max=limit)
        return y - y.mean(0) if x.shape[0] > 4 else y


torch.manual_seed(0)
model = Trend().eval()
example = (torch.randn(6, 8), torch.tensor(2))
shapes = ({0: Dim("batch")}, None)

# %%
# What goes wrong
# ---------------
# The export names the operator. What else there is, you would find out one by one:

with expect_failure(RuntimeError, match="There was no fake impl registered"):
    torch.export.export(model, example, dynamic_shapes=shapes)

# %%
# Why
# ---
# A capture runs your ``forward`` without data. For each operator it needs a function that knows the shape of the result, the *fake
# kernel*, and it cannot take an ``if`` whose answer is in the data. ``draft_export`` has the data too: it runs your example beside the
# fake tensors, asks them when it would have to give up, and writes down that it did.
#
# The list
# --------
# It also writes a log for tools to read, into a temporary folder that ``TORCH_DTRACE`` may choose. Here all of it is thrown away.


def drafted(module, shapes):
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.dict(os.environ, {"TORCH_DTRACE": folder}),
        heard(),
    ):
        return draft_export(module, example, dynamic_shapes=shapes)


def entry(failure):
    known = failure.data
    return {
        "kind": str(failure.failure_type),
        "about": known.get("op") or known["expr"],
        "your line": known["user_stack"][-1]["loc"] if "user_stack" in known else "",
        "taken for granted": known.get("result", ""),
    }


draft = drafted(model, shapes)
show.table([entry(failure) for failure in draft._report.failures])

# %%
# ``print(draft._report)`` has the same at length. The ``if`` on a value is there twice, first as a value that was needed and then as the
# guard that came of it; ``u2`` is a number that only a run can tell. ``s77`` is the number of rows, and ``Dim("batch")`` had promised any.

kinds = [str(failure.failure_type) for failure in draft._report.failures]
assert kinds == ["MISSING_FAKE_KERNEL", "DATA_DEPENDENT_ERROR", "GUARD_ADDED", "GUARD_ADDED"]
assert not draft._report.successful()

# %%
# The draft is no program to use
# ------------------------------
# It is right for the example. Both branches are those of the example, though. The program at least knows, and refuses another call:

run = draft.module()
assert torch.equal(run(*example), model(*example))
with expect_failure(RuntimeError, match="Runtime assertion failed"):
    run(example[0], torch.tensor(0))
with expect_failure(AssertionError, match=r"Guard failed: x.size\(\)\[0\] >= 5"):
    run(example[0][:3], example[1])

# %%
# So read the list, and throw the program away.
#
# The smallest change for each
# ----------------------------
# **The operator**: say what comes out. Nothing in the model changes.


@running.register_fake
def _(x):
    return torch.empty_like(x)


after_one = drafted(model, shapes)._report.failures
assert "MISSING_FAKE_KERNEL" not in [str(failure.failure_type) for failure in after_one]

# %%
# **The value**: the report suggests a ``torch._check``, here of ``limit.item() > 0``. That is a promise, fine where you can keep it. Where both answers
# happen, compute both sides and pick one, or use :doc:`torch.cond </generated/gallery/torch_onnx/cond>`.


class Mended(nn.Module):
    def forward(self, x, limit):
        y = running(x)
        y = torch.where(limit > 0, y.clamp(max=limit), y)
        return y - y.mean(0) if x.shape[0] > 4 else y


mended = Mended().eval()
after_two = drafted(mended, shapes)._report.failures
assert [entry(failure)["about"] for failure in after_two] == ["s77 > 4"]

# %%
# **The size**: the promise was too wide. Five rows or more are all that this model is for, so say that:

wide = ({0: Dim("batch", min=5)}, None)
after_three = drafted(mended, wide)._report
assert after_three.successful()

# %%
# Nothing is left, and the real export passes. It is right at sizes and limits that it never saw:

program = torch.export.export(mended, example, dynamic_shapes=wide)
calls = [example, *((torch.randn(rows, 8), torch.tensor(k)) for rows, k in ((5, 0), (20, 1)))]
verify(program, model, calls).check()

# %%
# Fewer entries with each change, and none in the end:

left = [draft._report.failures, after_one, after_two, after_three.failures]
colors = {
    "MISSING_FAKE_KERNEL": "#0072B2",
    "DATA_DEPENDENT_ERROR": "#D55E00",
    "GUARD_ADDED": "#E69F00",
}
steps = ["as it was", "fake kernel", "torch.where", "Dim(min=5)"]
figure, axes = plt.subplots(figsize=(6.4, 2.8), layout="constrained")
start = [0] * len(left)
for kind, color in colors.items():
    counts = [sum(str(f.failure_type) == kind for f in failures) for failures in left]
    axes.barh(steps, counts, left=start, color=color, label=kind)
    start = [a + b for a, b in zip(start, counts, strict=True)]
axes.set(xlabel="entries in the list", xticks=range(5), title="Three changes empty the list")
axes.invert_yaxis()
axes.legend(loc="lower right", frameon=False)
axes.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Draft to see every obstacle, then export for real: a draft that was not ``successful()`` is a list, not a program. Next:
# :doc:`sizes that the data decide <data_dependent_sizes>`.
