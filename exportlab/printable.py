"""Escape control characters in text from models, errors, records and file names, so that it is safe to print."""

from __future__ import annotations

import unicodedata

DANGEROUS = ("Cc", "Cf", "Cs", "Co")  # control, format, surrogate and private characters


def plain(text: object) -> str:
    """Escape control characters and those that change the text direction; keep line breaks."""
    return "\n".join(map(one_line, str(text).split("\n")))


def one_line(text: object) -> str:
    """Do the same for a single line: escape line breaks too."""
    return "".join(_escape_character(c) if unicodedata.category(c) in DANGEROUS else c for c in str(text))


def _escape_character(character: str) -> str:
    return "\\n" if character == "\n" else f"\\u{ord(character):04x}"
