"""Add a line to pages that compare exporters: `to_onnx` belongs to this site, and how the comparison is kept fair."""

from __future__ import annotations

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx import addnodes
from sphinx.application import Sphinx

OURS = "to_onnx"
LABEL = "fair-comparison"  # of the section of benchmarks/how_we_measure.py


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directive `own-exporter`."""
    app.add_directive("own-exporter", OwnExporter)
    return {"parallel_read_safe": True}


def build_line(docname: str) -> nodes.paragraph:
    """Return the line, with a link to the section on fairness."""
    target = {"refdomain": "std", "reftype": "ref", "reftarget": LABEL, "refexplicit": True, "refdoc": docname}
    link = addnodes.pending_xref("", nodes.inline("", "how we keep the comparison fair"), **target)
    return nodes.paragraph("", "", nodes.Text("We maintain "), nodes.literal("", OURS), nodes.Text(": "), link, classes=["own-exporter"])


class OwnExporter(Directive):
    """Insert the line."""

    def run(self) -> list[nodes.Node]:
        """Return the nodes of the line."""
        return [build_line(self.state.document.settings.env.docname)]
