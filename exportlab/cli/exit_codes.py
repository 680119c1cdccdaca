"""How a command ends that does not end well: each with its exit code."""

from __future__ import annotations

NOT_RIGHT, BAD_INPUT, INTERRUPTED = 1, 2, 130


class Interrupted(Exception):
    """By the user; what was done is kept."""


class NotRight(Exception):
    """The export failed, or its result differs from eager."""
