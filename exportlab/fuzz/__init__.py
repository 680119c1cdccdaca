"""Export random programs with each exporter, compare them with eager mode, and reduce silent errors to minimal scripts."""

from .hunt import Hunt
from .program import Program

__all__ = ["Hunt", "Program"]
