"""Random programs, made of steps, by every exporter beside eager: what is silently wrong, as the smallest script that shows it."""

from .hunt import Hunt
from .program import Program

__all__ = ["Hunt", "Program"]
