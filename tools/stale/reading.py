"""What a file reads, step by step: what it imports, names in strings and paths, and asks for by name.

Of a package, and of a module that only hands on what it imports, the name that is taken is followed, not all that stands there: `from
exportlab import verify` does not read the doctor. Whatever cannot be told from the text counts as read.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from pathlib import Path

from .content import BY_NAME, CONTENT, FINDERS, holding, is_content, modules, named
from .source import Facts, Reference, bindings_in, bindings_of, facts, facts_of, only_imports, statements_by_name, words_of_text
from .tree import PACKAGES, ROOT, data_beside, folders, import_roots, meant_by, module_at, project, within

MODULE = re.compile(rf"({'|'.join(PACKAGES)})(\.\w+)+")
CODE = re.compile(rf"\b(?:import|from)\s+((?:{'|'.join(PACKAGES)})\b[\w.]*)")
HERE = Path(__file__).parent  # what is only looked at to tell what is read is not read
DATA = {".csv", ".json", ".jsonl", ".txt"}
FOR_ALL = tuple(ROOT / name for name in ("requirements.txt", "constraints.txt", "pyproject.toml"))


@dataclass(frozen=True)
class Step:
    """Something that is read: a whole file, one name of a package's `__init__`, the text of a file, or content."""

    path: Path


class Whole(Step):
    """A module or script with all that it names."""


@dataclass(frozen=True)
class Name(Step):
    """One name of a package's `__init__`, or of a module of content; the empty name is what importing it does."""

    name: str


class Text(Step):
    """The text of a file, of whatever kind, as data."""


class Named(Step):
    """Content, of a folder, that is taken by names which are put together elsewhere: in a string of a script, or in data that it reads."""


def is_machinery(path: Path) -> bool:
    """Return whether a file belongs to the packages, and is not content."""
    return path.relative_to(ROOT).parts[0] in PACKAGES and not is_content(path)


@cache
def next_steps(step: Step) -> frozenset[Step]:
    """Return what is read directly because of a step."""
    if isinstance(step, Whole):
        return frozenset(_of_file(step.path))
    if isinstance(step, Name):
        return frozenset(_of_name(step.path, step.name))
    return frozenset()


def _of_file(path: Path) -> Iterator[Step]:
    if path.suffix not in (".py", ".ipynb", ".md"):
        yield Text(path)
        return
    found = facts_of(path)
    yield from _of_facts(replace(found, strings=frozenset(), paths=frozenset()) if path.parent == HERE else found, path)
    yield from _around(path)


def _around(path: Path) -> Iterator[Step]:
    """What comes with a module: the packages it is in, the data beside it, and what pytest loads for a test."""
    for parent in path.parents:
        if not parent.is_relative_to(ROOT) or parent == ROOT:
            break
        if (init := module_at(parent)) is not None and init != path and init.name == "__init__.py":
            yield Name(init, "")
        if parent.relative_to(ROOT).parts[0] == "tests" and (conftest := module_at(parent / "conftest")) is not None:
            yield Whole(conftest)
    if is_machinery(path):
        yield from map(Text, data_beside(path.parent))


def _of_name(init: Path, name: str) -> Iterator[Step]:
    yield from _around(init)
    if name:
        yield Name(init, "")
    bindings = bindings_in(init)
    for statement in statements_by_name(init).get(name, ()):
        if isinstance(statement, ast.Import | ast.ImportFrom):
            yield from (step for reference in bindings[name] for step in resolved(reference, init))
        else:
            found = facts([statement], bindings)
            yield from _of_facts(found, init)
            yield from (Name(init, used) for used in found.names if used in statements_by_name(init) and used != name)


def _of_facts(found: Facts, path: Path) -> Iterator[Step]:
    for reference in found.references:
        yield from resolved(reference, path)
    for text in found.strings:
        yield from _of_string(text, path)
    for parts in found.paths:
        name = "/".join(parts)
        yield from _of_place(
            place for place in meant_by(name, path) if place not in folders() or place in (ROOT / name, path.parent / name)
        )


def _of_string(text: str, path: Path) -> Iterator[Step]:
    """What a string names: files, a module, code; outside the machinery folders too, and the command of the package."""
    if MODULE.fullmatch(text):
        yield from _of_module(text)
    if CODE.search(text):
        yield from _of_code(text, path)
    if text in PACKAGES:
        yield from () if is_machinery(path) else _of_command(text)
        return
    yield from _of_place(place for place in meant_by(text, path) if place not in folders() or _is_plain_folder(place, text, path))


def _is_plain_folder(place: Path, text: str, path: Path) -> bool:
    """A bare word that is a folder somewhere around the file says nothing; one of the root, in a script, a test or a page, does."""
    return not is_machinery(path) and place == ROOT / text.rstrip("/")


def _of_module(name: str) -> Iterator[Step]:
    """The module that begins a dotted name; a package alone says nothing, for groups of entry points are named like it."""
    places = (ROOT.joinpath(*name.split(".")[:end]) for end in range(name.count(".") + 1, 1, -1))
    modules_found = filter(None, map(module_at, places))
    yield from (Whole(module) for module in islice(modules_found, 1) if module.name != "__init__.py")


def _of_command(name: str) -> Iterator[Step]:
    scripts = project()["project"].get("scripts", {})
    if name in scripts:
        module, _, _ = scripts[name].partition(":")
        yield from resolved(Reference(0, module), ROOT / "pyproject.toml")


def _of_code(text: str, path: Path) -> Iterator[Step]:
    """What code in a string imports; what is no whole program is read by its import statements."""
    try:
        tree = ast.parse(textwrap.dedent(text))
    except SyntaxError:
        for module in CODE.findall(text):
            yield from resolved(Reference(0, module.rstrip(".")), path)
    else:
        yield from _of_facts(facts(tree.body, bindings_of(tree)), path)


def _of_place(places: Iterable[Path]) -> Iterator[Step]:
    for place in places:
        for path in within(place) if place in folders() else (place,):
            yield Text(path)
            if path.suffix == ".py":
                yield Whole(path)


def resolved(reference: Reference, path: Path) -> Iterator[Step]:
    """Yield what a reference in a file reads; nothing for a module of another project."""
    starts = import_roots(path.parent)
    if reference.level:
        starts = (path.parents[reference.level - 1],)
    for start in starts:
        yield from _walked(start, reference.module.split(".") if reference.module else [], reference, path)


def _walked(start: Path, parts: list[str], reference: Reference, path: Path) -> Iterator[Step]:
    place = start.joinpath(*parts)
    module = module_at(place) if parts or reference.level else None
    if module is None:
        if reference.names and (submodule := module_at(place / reference.names[0])) is not None:
            yield from _taken(submodule, replace(reference, names=reference.names[1:]), path)
        return
    yield from _taken(module, reference, path)


def _taken(module: Path, reference: Reference, path: Path) -> Iterator[Step]:
    """What taking an attribute of a module reads."""
    if reference.names:
        yield from _asked(module, reference, path)
    if reference.names and (module.name == "__init__.py" or only_imports(module)):
        yield Name(module, "")
        yield from _taken_of_face(module, reference, path)
    else:
        yield Whole(module)
        yield from map(Whole, modules(module.parent) if module.parent in CONTENT and module.name == "__init__.py" else ())


def _taken_of_face(init: Path, reference: Reference, path: Path) -> Iterator[Step]:
    """What stands behind a name of a package, or of a module that only hands on: what it imports or defines, or a module of that name."""
    name, *rest = reference.names
    submodule = module_at(init.parent / name) if init.name == "__init__.py" else None
    handed_on = [replace(found, names=(*found.names, *rest), arguments=reference.arguments) for found in bindings_in(init).get(name, ())]
    behind = [step for found in handed_on for step in resolved(found, init)] if init != path else []
    still_loading = submodule is not None and Whole(path) in behind  # the `__init__` has not bound the name yet
    if init != path and handed_on and not still_loading:
        yield from behind
    elif init != path and name in statements_by_name(init) and not handed_on:
        yield Name(init, name)
    elif submodule is not None:
        yield from _taken(submodule, replace(reference, names=tuple(rest)), path)
    elif init != path:
        yield Whole(init)


def _asked(module: Path, reference: Reference, path: Path) -> Iterator[Step]:
    """The content that a call of a finder hands out."""
    finder = FINDERS.get((module, reference.names[0]))
    if finder is None:
        return
    arguments = reference.arguments if len(reference.names) == 1 else None
    if arguments and None not in arguments:
        words = frozenset(filter(None, arguments))
        yield from content(finder.folder, words) if finder.names_one else map(Whole, holding(finder.folder, words))
    elif finder.names_one or path in BY_NAME:
        yield Named(finder.folder)
    else:
        yield from map(Whole, modules(finder.folder))


def content(folder: Path, words: Iterable[str]) -> list[Step]:
    """Return what reading some content by name reads."""
    return [Name(path, name) if name else Whole(path) for path, name in named(folder, words)]


def steps_from(start: Step) -> set[Step]:
    """Return everything that is read because of a file, or of something in it."""
    found = _closed([start, *map(Text, FOR_ALL)])
    chosen = {step.path for step in found if isinstance(step, Named)}
    if not chosen:
        return found
    words = frozenset().union(*(_words(step) for step in found if step.path not in FOR_ALL))
    return _closed([*found, *(step for folder in chosen for step in content(folder, words))])


def _words(step: Step) -> frozenset[str]:
    """The names that a step may bring: the strings of scripts, and every word of a file that is read as data."""
    if isinstance(step, Whole) and step.path.relative_to(ROOT).parts[0] not in PACKAGES:
        return facts_of(step.path).strings
    if isinstance(step, Text) and step.path.suffix in DATA:
        return words_of_text(step.path)
    return frozenset()


def _closed(first: Iterable[Step]) -> set[Step]:
    found, waiting = set(first), list(first)
    while waiting:
        new = next_steps(waiting.pop()) - found
        found |= new
        waiting += new
    return found
