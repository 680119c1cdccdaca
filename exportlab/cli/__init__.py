"""The command line of Export Lab."""

from .commands import main

__all__ = ["main"]
