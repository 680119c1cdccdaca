"""Text of others made safe to print: from models, errors, records and names of files."""

from __future__ import annotations

import unicodedata

DANGEROUS = ("Cc", "Cf", "Cs", "Co")  # control, format, surrogate and private characters


def plain(text: object) -> str:
    """Return a text in which control characters, and those that turn its direction, are shown and do nothing; lines stay lines."""
    return "\n".join(map(one_line, str(text).split("\n")))


def one_line(text: object) -> str:
    """Return the same for a text that has no lines: their ends are shown too."""
    return "".join(_escape_character(c) if unicodedata.category(c) in DANGEROUS else c for c in str(text))


def _escape_character(character: str) -> str:
    return "\\n" if character == "\n" else f"\\u{ord(character):04x}"
