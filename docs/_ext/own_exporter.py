"""Who compares whom: a box on every page that compares exporters says that one of them is this site's own, and how that is kept fair."""

from __future__ import annotations

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

OURS = "to_onnx"
SAID = (
    " is this site's own exporter. Every exporter gets the same models and inputs, and is held against eager by the same checks. "
    "What is wrong is not timed; times are taken by turns on one machine; a test computes each headline a second time. "
    "One advantage remains: ours was mended where this site showed it wrong or slow, and the others were not. "
    "torchscript is torch.onnx.export with dynamo=False; in commands and records, dynamo is torch.onnx.export."
)


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directive `own-exporter`."""
    app.add_directive("own-exporter", OwnExporter)
    return {"parallel_read_safe": True}


def box() -> nodes.note:
    """Return the box."""
    words = nodes.paragraph("", "", nodes.literal("", OURS), nodes.Text(SAID))
    return nodes.note("", words, classes=["own-exporter"])


class OwnExporter(Directive):
    """Put the box here."""

    def run(self) -> list[nodes.Node]:
        """Return it."""
        return [box()]
