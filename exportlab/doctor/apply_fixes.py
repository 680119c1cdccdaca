"""Add the verified change of the user's code to the findings, and remove changes that failed verification."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .events import AppliedFix
from .facts import Facts
from .finding import Finding, join_names


def attach_change(findings: Sequence[Finding], facts: Facts) -> list[Finding]:
    """Return the findings with the verified change, and without the changes that failed verification."""
    found = facts.mended
    chosen = next((f for f in findings if found and f.place == found.at), findings[0] if found and findings else None)
    return [_attach_lines(f, found) if found and f is chosen else _drop_lines(f, facts) for f in findings]


def _attach_lines(finding: Finding, found: AppliedFix) -> Finding:
    fix = f"{found.what}; verified with {join_names(found.exporters)}"
    return replace(finding, place=finding.place or found.at, fix=fix, code=found.code)


def _drop_lines(finding: Finding, facts: Facts) -> Finding:
    searched = facts.searched and finding.code.startswith("# in place of")
    return replace(finding, code="") if searched else finding
