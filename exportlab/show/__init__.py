"""Render rows and graphs as tables and pictures, for notebooks, terminals and pages."""

from .drawing import Drawing, Edge, Node
from .graph import graph, graphs
from .table import OUTCOME_COLORS, Table, Tabular, table
from .text import annotation, program, summary

__all__ = ["OUTCOME_COLORS", "Drawing", "Edge", "Node", "Table", "Tabular", "annotation", "graph", "graphs", "program", "summary", "table"]
