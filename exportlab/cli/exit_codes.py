"""Define the exit codes of failed commands, and the exceptions for them."""

from __future__ import annotations

NOT_RIGHT, BAD_INPUT, INTERRUPTED = 1, 2, 130


class Interrupted(Exception):
    """The user interrupted the command. Finished work is kept."""


class NotRight(Exception):
    """The export failed, or its result differs from eager."""
