"""Tables and pictures from plain rows and graphs, for notebook, terminal and page alike."""

from .drawing import Drawing, Edge, Node
from .graph import graph, graphs
from .table import OUTCOME_COLORS, Table, Tabular, table
from .text import annotation, program, summary

__all__ = ["OUTCOME_COLORS", "Drawing", "Edge", "Node", "Table", "Tabular", "annotation", "graph", "graphs", "program", "summary", "table"]
