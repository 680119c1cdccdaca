"""Publish the first fix of each known error, by its name and its code, for the box that finds errors."""

from __future__ import annotations

import ast
import json

from known_errors import snippets
from site_files import STATIC, write

from exportlab.errors import KnownError, load_known_errors

NAME = "error-fixes.json"


def store_fixes() -> None:
    """Write the fixes by the page of their error."""
    fixes = {error.page: describe_fix(error) for error in load_known_errors() if error.fixes}
    write(STATIC / NAME, json.dumps(fixes, ensure_ascii=False, separators=(",", ":")))


def describe_fix(error: KnownError) -> dict[str, str]:
    """Return the name of the first fix, and its code."""
    fix = error.fixes[0]
    return {"name": fix.name.replace("`", ""), "code": cut_claim(snippets(error)[fix.make.__name__])}


def cut_claim(code: str) -> str:
    """Return the code of a fix without what only `verify` needs: the model to compare with, and the samples.

    A fix that changes only a call of the reproducer's own functions doesn't show anything by itself. Its code is empty.
    """
    *before, function = ast.parse(code).body
    if any(isinstance(statement, ast.ClassDef | ast.FunctionDef) for statement in before):
        return "\n".join(code.splitlines()[: function.lineno - 1]).strip()
    call = ast.get_source_segment(code, find_claim(function)) or ""
    setting = [ast.get_source_segment(code, statement) or "" for statement in (*before, *getattr(function, "body", [])[:-1])]
    return "\n".join([*setting, f"exported = {call}"]) if "export(" in call else ""


def find_claim(function: ast.stmt) -> ast.expr:
    """Return the first element of what a fix returns: the exported model."""
    returned = next(node.value for node in reversed(list(ast.walk(function))) if isinstance(node, ast.Return) and node.value)
    return returned.elts[0] if isinstance(returned, ast.Tuple) else returned
