"""
What does a recipe look like?
=============================

The title is the question or the symptom that somebody would type. This paragraph says what they get: here, a template to copy.

``to_onnx`` is this site's own exporter, so check what is said of it here on a model of your own.
"""

import torch
from torch import nn

from exportlab import compare, expect_failure, export, show, verify

# %%
# The model: 5–15 lines, in the cell, seeded, in evaluation mode.


class Scale(nn.Module):
    def forward(self, x):
        return 2 * x


model = Scale().eval()
four, seven = torch.randn(4, 3), torch.randn(7, 3)

# %%
# What goes wrong
# ---------------
# The failing way comes first, where there is one. ``expect_failure`` fails when nothing is raised, so the page cannot go out of date:

static = export("torch.export", model, (four,))
with expect_failure(AssertionError, match="Guard failed"):
    static(seven)

# %%
# Why
# ---
# One or two sentences. Whoever reads them should be able to guess what follows.
#
# What works
# ----------
# Every exporter side by side, at a size that the export never saw:

compared = compare(model, [(four,), (seven,)], dynamic_shapes=({0: "batch"},))
assert set(compared.outcomes().values()) == {"ok"}
compared

# %%
# A check that can fail, of the official exporter and of ``to_onnx``, then the picture that becomes the thumbnail:

for exporter in ("dynamo", "to_onnx"):
    program = export(exporter, model, (four,), dynamic_shapes=({0: "batch"},))
    verify(program, model, [(four,), (seven,)]).check()
show.graph(program)

# %%
# End with the one sentence to remember. Next: :doc:`all recipes </generated/gallery/index>`.
