"""What one file of Python names: modules and their attributes, strings, paths. Notebooks and lessons are read by their code cells."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import TypeGuard

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
MAGIC = re.compile(r"\s*[%!]")
MYST_CELL = re.compile(r"^```\{code-cell\}.*?\n(?:---\n.*?\n---\n)?(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Reference:
    """An attribute of a module that some code uses; without attributes the module itself, as a whole.

    Args:
        level: as of a relative import: 0 is absolute, 1 the file's own package.
        module: dotted, may be empty where `level` is not 0.
        names: what is taken from it, an attribute of an attribute after it.
        arguments: where it is called, its arguments as far as they are strings written out; None stands for anything else.
    """

    level: int
    module: str
    names: tuple[str, ...] = ()
    arguments: tuple[str | None, ...] | None = None


@dataclass(frozen=True)
class Facts:
    """What some statements name, and the names of their own module that they use."""

    references: frozenset[Reference]
    strings: frozenset[str]
    paths: frozenset[tuple[str, ...]]
    names: frozenset[str]


Bindings = dict[str, set[Reference]]


@cache
def tree_of(path: Path) -> ast.Module:
    """Return the syntax tree of a script, a module, or of the code cells of a notebook.

    Raises:
        SyntaxError: the code is none; the message names the file.
    """
    tree = ast.parse(code_of(path), filename=str(path))
    return _with_late_imports(tree) if path.name == "__init__.py" else tree


def _with_late_imports(tree: ast.Module) -> ast.Module:
    """A package that has `__getattr__` imports what is asked for: what stands under `if TYPE_CHECKING:`, which is put in its place."""
    if not any(isinstance(statement, DEFINITIONS) and statement.name == "__getattr__" for statement in tree.body):
        return tree
    bodies = [statement.body if _is_for_types(statement) else [statement] for statement in tree.body]
    return ast.Module([statement for body in bodies for statement in body], tree.type_ignores)


def _is_for_types(statement: ast.AST) -> TypeGuard[ast.If]:
    """Whether it is `if TYPE_CHECKING:`."""
    return isinstance(statement, ast.If) and isinstance(statement.test, ast.Name) and statement.test.id == "TYPE_CHECKING"


def code_of(path: Path) -> str:
    """Return the code of a file; of a notebook that of its code cells, without the lines that only IPython reads."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        return "\n".join(map(_without_magic, _cells_of_notebook(text)))
    if path.suffix == ".md":
        return "\n".join(map(_without_magic, MYST_CELL.findall(text)))
    return text


@cache
def words_of_text(path: Path) -> frozenset[str]:
    """Return every word of a text."""
    return frozenset(re.findall(r"\w+", path.read_text(encoding="utf-8")))


def _cells_of_notebook(text: str) -> list[str]:
    return ["".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]


def _without_magic(cell: str) -> str:
    return "\n".join(line for line in cell.splitlines() if not MAGIC.match(line))


@cache
def facts_of(path: Path) -> Facts:
    """Return what a whole file names."""
    return facts(tree_of(path).body, bindings_in(path))


@cache
def bindings_in(path: Path) -> Bindings:
    """Return what each name that a file imports stands for."""
    return bindings_of(tree_of(path))


@cache
def statements_by_name(path: Path) -> dict[str, list[ast.stmt]]:
    """Return the statements of a module that bind each of its names; those that bind none, and act, stand under the empty name."""
    found: dict[str, list[ast.stmt]] = {}
    for statement in tree_of(path).body:
        for name in _bound_by(statement):
            found.setdefault(name, []).append(statement)
    return found


def only_imports(path: Path) -> bool:
    """Return whether a module does nothing but hand on what it imports."""
    return all(_is_docstring(s) or isinstance(s, ast.Import | ast.ImportFrom) or _bound_by(s) == ["__all__"] for s in tree_of(path).body)


def _bound_by(statement: ast.stmt) -> Iterable[str]:
    """The names that a statement binds; the empty name for one that does something else."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name.partition(".")[0] for alias in statement.names]
    if isinstance(statement, DEFINITIONS):
        return [statement.name]
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        return [node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)] or [""]
    return [] if _is_docstring(statement) else [""]


def bindings_of(tree: ast.AST) -> Bindings:
    """Return what each imported name stands for, wherever in the code it is imported; what only a type checker imports is left out."""
    found: Bindings = {}
    for node in _executed(tree):
        for name, reference in _imported(node):
            found.setdefault(name, set()).add(reference)
    return found


def _imported(node: ast.AST) -> Iterator[tuple[str, Reference]]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield alias.asname or alias.name.partition(".")[0], Reference(0, alias.name if alias.asname else alias.name.partition(".")[0])
    if isinstance(node, ast.ImportFrom):
        for alias in node.names:
            yield alias.asname or alias.name, Reference(node.level, node.module or "", () if alias.name == "*" else (alias.name,))


def facts(statements: Iterable[ast.stmt], bindings: Bindings) -> Facts:
    """Return what some statements of a file name, given what the imports of that file bind."""
    nodes = list(_executed(ast.Module(list(statements), [])))
    skipped = docstrings(nodes)
    used = {node.id for node in nodes if isinstance(node, ast.Name)}
    paths = list(_paths(nodes))
    skipped |= {id(part) for path in paths for part in path}
    strings = {text for node in nodes if id(node) not in skipped and (text := _text(node)) is not None}
    references = {*_used(nodes, bindings), *_only_imported(nodes, used)}
    return Facts(frozenset(references), frozenset(strings), frozenset(map(_texts, paths)), frozenset(used))


def _executed(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node but those under `if TYPE_CHECKING:`."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if _is_for_types(node):
            waiting += node.orelse
        else:
            waiting += ast.iter_child_nodes(node)


def docstrings(nodes: Iterable[ast.AST]) -> set[int]:
    """Return the ids of those nodes that are docstrings."""
    bodies = [node.body for node in nodes if isinstance(node, (ast.Module, *DEFINITIONS))]
    return {id(body[0].value) for body in bodies if body and _is_docstring(body[0])}


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant) and isinstance(statement.value.value, str)


def _used(nodes: Iterable[ast.AST], bindings: Bindings) -> Iterator[Reference]:
    """What is taken from imported names: the longest chain of attributes at each, and the arguments where that is called."""
    inner = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    calls = {id(node.func): node for node in nodes if isinstance(node, ast.Call)}
    for node in nodes:
        if isinstance(node, ast.Name | ast.Attribute) and id(node) not in inner:
            base, names = _chain(node)
            arguments = _arguments(calls[id(node)]) if id(node) in calls else None
            for start in bindings.get(base, ()):
                yield Reference(start.level, start.module, (*start.names, *names), arguments)


def _chain(node: ast.expr) -> tuple[str, list[str]]:
    """The name that a chain of attributes begins with, and the attributes; an empty name where it begins with something else."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.insert(0, node.attr)
        node = node.value
    return (node.id if isinstance(node, ast.Name) else ""), names


def _arguments(call: ast.Call) -> tuple[str | None, ...]:
    return tuple(_text(argument) for argument in (*call.args, *(keyword.value for keyword in call.keywords)))


def _text(node: ast.AST) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _texts(nodes: Iterable[ast.Constant]) -> tuple[str, ...]:
    return tuple(node.value for node in nodes)


def _only_imported(nodes: Iterable[ast.AST], used: set[str]) -> Iterator[Reference]:
    """The modules that import statements load, and what they import for its effect or to hand it on."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (Reference(0, alias.name) for alias in node.names if "." in alias.name and not alias.asname)
        for name, reference in _imported(node):
            if name not in used:
                yield reference


def _paths(nodes: Iterable[ast.AST]) -> Iterator[tuple[ast.Constant, ...]]:
    """The parts of each path put together by `/`, up to the first that is not written out.

    One that is put together of a folder with a name begins with the parts of that folder, which then is not read as a whole.
    """
    divisions = [node for node in nodes if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)]
    inner = {id(node.left) for node in divisions}
    paths = {id(node): _operands(node) for node in divisions if id(node) not in inner}
    folders = {
        node.targets[0].id: node.value
        for node in nodes
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and id(node.value) in paths
    }
    begun = Counter(base.id for base, first, *_ in paths.values() if isinstance(base, ast.Name) and _text(first))
    loaded = Counter(node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
    only_begin = {id(value) for name, value in folders.items() if begun[name] and begun[name] == loaded[name]}
    for path, (base, *operands) in paths.items():
        before = paths[id(folders[base.id])][1:] if isinstance(base, ast.Name) and base.id in folders else []
        parts = tuple(takewhile(_text, (*before, *operands)))
        if parts and path not in only_begin:
            yield parts


def _operands(node: ast.expr) -> list[ast.expr]:
    """What stands at each `/`, the base first."""
    found: list[ast.expr] = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        found.insert(0, node.right)
        node = node.left
    return [node, *found]
