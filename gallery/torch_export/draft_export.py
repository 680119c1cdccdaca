"""
How do I list all export errors with torch.export.draft_export?
===============================================================

``draft_export`` lists all problems of a model at once, each with your source line. Fix them, and then export with ``torch.export.export``.

``torch.export.export`` stops at the first line that it can't capture. ``torch.export.draft_export`` continues with the values of your
example and reports all problems at once. This recipe reads such a report, shows why you shouldn't use the draft program, and fixes each
entry until the real export passes.
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
# The model has three problems: a custom operator without a fake kernel, an ``if`` on a value, and an ``if`` on a size.


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
# What goes wrong: one error at a time
# ------------------------------------
# ``torch.export.export`` reports the operator. You would find the other problems one by one:

with expect_failure(RuntimeError, match="There was no fake impl registered"):
    torch.export.export(model, example, dynamic_shapes=shapes)

# %%
# Why torch.export stops
# ----------------------
# ``torch.export`` runs your ``forward`` without data. It needs a *fake kernel* for each operator, which computes the shape of the output,
# and it can't evaluate an ``if`` that depends on the data. ``draft_export`` also runs your example with real data. It uses the real
# values where ``torch.export`` would stop, and records each such place.
#
# Read the draft_export report
# ----------------------------
# ``draft_export`` also writes a log for other tools, into a temporary folder or the one in ``TORCH_DTRACE``. This helper discards it.


def drafted(module, shapes):
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.dict(os.environ, {"TORCH_DTRACE": folder}),
        heard(),
    ):
        # sphinx_gallery_start_answer
        draft = draft_export(module, example, dynamic_shapes=shapes)
        # sphinx_gallery_end_answer
    return draft


def entry(failure):
    known = failure.data
    return {
        "kind": str(failure.failure_type),
        "about": known.get("op") or known["expr"],
        "your line": known["user_stack"][-1]["loc"] if "user_stack" in known else "",
        "value used": known.get("result", ""),
    }


draft = drafted(model, shapes)
show.table([entry(failure) for failure in draft._report.failures])

# %%
# ``print(draft._report)`` prints the same information in full. The ``if`` on a value has two entries: the value that was needed, and the
# guard that resulted. ``u2`` is a number that is only known at run time. ``s77`` is the number of rows, and its guard contradicts
# ``Dim("batch")``.

# sphinx_gallery_start_answer
kinds = [str(failure.failure_type) for failure in draft._report.failures]
# sphinx_gallery_end_answer
assert kinds == ["MISSING_FAKE_KERNEL", "DATA_DEPENDENT_ERROR", "GUARD_ADDED", "GUARD_ADDED"]
assert not draft._report.successful()

# %%
# Don't use the draft program
# ---------------------------
# The draft is right for the example, but it contains only the branches of the example. It rejects other calls:

run = draft.module()
assert torch.equal(run(*example), model(*example))
with expect_failure(RuntimeError, match="Runtime assertion failed"):
    run(example[0], torch.tensor(0))
with expect_failure(AssertionError, match=r"Guard failed: x.size\(\)\[0\] >= 5"):
    run(example[0][:3], example[1])

# %%
# Use the report, and discard the program.
#
# Fix each entry
# --------------
# **The operator:** register a fake kernel. The model doesn't change.


@running.register_fake
def _(x):
    return torch.empty_like(x)


after_one = drafted(model, shapes)._report.failures
assert "MISSING_FAKE_KERNEL" not in [str(failure.failure_type) for failure in after_one]

# %%
# **The value:** the report suggests ``torch._check(limit.item() > 0)``. Use it if the condition is true for all your inputs. Otherwise
# compute both branches with ``torch.where``, or use :doc:`torch.cond </generated/gallery/torch_onnx/cond>`.


class Fixed(nn.Module):
    def forward(self, x, limit):
        y = running(x)
        y = torch.where(limit > 0, y.clamp(max=limit), y)
        return y - y.mean(0) if x.shape[0] > 4 else y


fixed = Fixed().eval()
after_two = drafted(fixed, shapes)._report.failures
assert [entry(failure)["about"] for failure in after_two] == ["s77 > 4"]

# %%
# **The size:** the requested range is too wide. This model is for five rows or more, so set ``min=5``:

wide = ({0: Dim("batch", min=5)}, None)
after_three = drafted(fixed, wide)._report
assert after_three.successful()

# %%
# The report is empty, and the real export passes. The program is right at sizes and limits that the export never saw:

program = torch.export.export(fixed, example, dynamic_shapes=wide)
calls = [example, *((torch.randn(rows, 8), torch.tensor(k)) for rows, k in ((5, 0), (20, 1)))]
verify(program, model, calls).check()

# %%
# Each change removes entries from the report:

left = [draft._report.failures, after_one, after_two, after_three.failures]
colors = {
    "MISSING_FAKE_KERNEL": "#0072B2",
    "DATA_DEPENDENT_ERROR": "#D55E00",
    "GUARD_ADDED": "#E69F00",
}
steps = ["original", "fake kernel", "torch.where", "Dim(min=5)"]
figure, axes = plt.subplots(figsize=(6.4, 2.8), layout="constrained")
start = [0] * len(left)
for kind, color in colors.items():
    counts = [sum(str(f.failure_type) == kind for f in failures) for failures in left]
    axes.barh(steps, counts, left=start, color=color, label=kind)
    start = [a + b for a, b in zip(start, counts, strict=True)]
axes.set(xlabel="entries in the report", xticks=range(5), title="Three changes fix all entries")
axes.invert_yaxis()
axes.legend(loc="lower right", frameon=False)
axes.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Next: :doc:`data-dependent sizes <data_dependent_sizes>`.
