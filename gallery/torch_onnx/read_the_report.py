"""
What does report=True tell me?
==============================

``torch.onnx.export(..., report=True)`` writes a page about the export, whether it fails or not. You will get the page of four exports,
find in it what the error does not say, and learn which of its ticks you should not trust.
"""

import re
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import onnx
import torch
from torch import nn

from exportlab import expect_failure, show, to_onnx, verify
from exportlab.messages import heard
from fx2onnx.errors import UnsupportedOps

# %%
# Two operators of this model have no translation. The error names one of them:


class Spread(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 4)

    def forward(self, x):
        y = self.linear(x).unflatten(1, (2, 2))
        return torch.linalg.svdvals(y), torch.cdist(y, y, p=3.0)


def export(model, **options):
    shapes = ({0: "batch"},)
    return torch.onnx.export(
        model.eval(), (six,), dynamic_shapes=shapes, dynamo=True, verbose=False, **options
    )


torch.manual_seed(0)
six, three = torch.randn(6, 8), torch.randn(3, 8)
with expect_failure(torch.onnx.OnnxExporterError, match="_linalg_svd", lines=1):
    export(Spread())

# %%
# The page
# --------
# It is a Markdown file in the folder ``artifacts_dir``, which is the current one unless you say otherwise. What became of the export is
# the end of its name, after the time:


def reported(model, **options):
    """The end of the name, the page, and the program or the error."""
    with tempfile.TemporaryDirectory() as folder, heard():
        try:
            result = export(model, report=True, artifacts_dir=folder, **options)
        except torch.onnx.OnnxExporterError as error:
            result = error
        (page,) = Path(folder).iterdir()
        return re.sub(r"^onnx_export_[\d_-]+_", "", page.stem), page.read_text(), result


end, page, error = reported(Spread())
assert end == "conversion"
show.table(
    [{"heading": h} for h in re.findall(r"^#+ (.*)$", page, re.MULTILINE) if "File" not in h]
)

# %%
# What the error does not say
# ---------------------------
# *ONNX Conversion Information* goes through the whole graph. Here are both operators, each with its nodes:

missing = re.findall(r"^- `(aten\S+)`:     (.*?)\. Example node", page, re.MULTILINE)
assert [op for op, _ in missing] == ["aten._linalg_svd.default", "aten._cdist_forward.default"]
assert "_cdist_forward" not in str(error)
show.table([{"operator": op, "why": why} for op, why in missing])

# %%
# These are not the operators that you called. The graph was decomposed before it was translated, and *Decomposition comparison* has the
# names on both sides:

before, after = re.findall(r"Ops exist only in the ExportedProgram .*?: `\[(.*)\]`", page)
assert "aten.linalg_svdvals.default" in before
assert "aten._linalg_svd.default" in after
show.table([{"only before": before.replace("'", ""), "only after": after.replace("'", "")}])

# %%
# ``to_onnx`` writes a page for ``report=True`` as well. Its error has the list already, and it knows ``cdist``:

with expect_failure(UnsupportedOps, match="linalg_svdvals", lines=2):
    to_onnx(Spread().eval(), (six,))

# %%
# Ticks that you should not trust
# -------------------------------
# At the top of the page is a list of steps. With ``verify=True`` it has three more: the file is checked, run, and compared. Take three
# other models: one with an ``if`` on a value, one with an ``if`` on a size, and one whose output is asked to have the name of a value.


class ByValue(nn.Module):
    def forward(self, x):
        return x if x.sum() > 0 else -x


class BySize(nn.Module):
    def forward(self, x):
        return x * 2 if x.shape[0] > 4 else x * 3


class Turned(nn.Module):
    def forward(self, x):
        return x.softmax(-1).flip(0)


def steps(page):
    """Each step, with 'yes', 'no', or nothing where it was not taken."""
    marks = {"✅": "yes", "❌": "no", "⚪": ""}
    found = re.findall(r"^([✅❌⚪]) (.*)$", page, re.MULTILINE)
    return {text.replace("Obtain model graph with ", ""): marks[mark] for mark, text in found}


names = {"output_names": ["softmax"]}
pages = {
    "an operator is missing": (end, page, error),
    "if on a value": reported(ByValue(), verify=True),
    "if on a size": reported(BySize(), verify=True),
    "two of one name": reported(Turned(), verify=True, **names),
}
taken = {title: steps(text) for title, (_, text, _) in pages.items()}
assert [p[0] for p in pages.values()] == ["conversion", "pt_export", "success", "runtime"]
show.table([{"export": title, "end of the name": end} for title, (end, _, _) in pages.items()])

# %%
# *If on a size* is a success, ticked at every step, and the file is wrong. The page compares one size, that of the example, where the branch is right by
# definition:

program = pages["if on a size"][2]
assert set(taken["if on a size"].values()) == {"yes", ""}
assert verify(program, BySize(), [(six,), (three,)]).outcome == "frozen"

# %%
# *Two of one name* says that ``onnx.checker`` had no objection. Ask it yourself:

program = pages["two of one name"][2]
assert taken["two of one name"]["Run `onnx.checker` on the ONNX model"] == "yes"
with expect_failure(onnx.checker.ValidationError, match="softmax", lines=2):
    onnx.checker.check_model(program.model_proto)

# %%
# The checker is not called any more; in ``onnxscript``, the step has become a function that does nothing. ONNX Runtime did refuse the
# file, the page says so, and no error was raised: you were handed a program that cannot run. Nothing but the page tells.

assert isinstance(program, torch.onnx.ONNXProgram)
assert taken["two of one name"]["Execute the model with ONNX Runtime"] == "no"

# %%
# When it helps
# -------------
# - ``pt_export``: the capture failed, strict and not. The page has both errors, of which the exception shows the first.
# - ``conversion``: read *ONNX Conversion Information*, for all that is missing at once.
# - ``runtime``, ``accuracy``: only with ``verify=True``, and only there.
# - ``success``: a translation, at one size. Go on with :doc:`verify </docs/outcomes>`.
#
# It is what to attach to a bug report. Read it first: it has your lines of code with their paths, and the numbers of small weights.

assert "in forward, code: y = self.linear(x).unflatten(1, (2, 2))" in page

# %%
# The four pages at a glance; what is grey was not done:

colors = {"yes": show.OUTCOME_COLORS["ok"], "no": show.OUTCOME_COLORS["wrong"], "": "#DDDDDD"}
labels = [re.sub(r"`torch.export.export\(..., |\)?`", "", step) for step in taken["if on a size"]]
figure, axes = plt.subplots(figsize=(7.6, 3.4), layout="constrained")
for x, found in enumerate(taken.values()):
    for y, mark in enumerate(found.values()):
        axes.add_patch(plt.Rectangle((x, y), 1, 1, fc=colors[mark], ec="white", lw=2))
        axes.text(x + 0.5, y + 0.5, mark, ha="center", va="center", fontsize=8)
axes.set(xlim=(0, len(taken)), ylim=(len(labels), 0))
figure.suptitle('Three stop. "If on a size" passes every step, and its file is wrong')
axes.set_xticks([x + 0.5 for x in range(len(taken))], taken, fontsize=8)
axes.set_yticks([y + 0.5 for y in range(len(labels))], labels, fontsize=8)
axes.tick_params(length=0)
axes.spines[:].set_visible(False)
plt.show()

# %%
# The report says how far the export got, not whether the file is right. Next: :doc:`an operator that nobody translated
# <untranslated_op>`.
