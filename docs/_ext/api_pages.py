"""Complete autodoc for the API pages: links to the source, parameters in the order of the signature, and folded members of classes."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

from docutils import nodes
from page_footer import repository
from site_files import ROOT
from sphinx import addnodes
from sphinx.application import Sphinx

AFTER_AUTODOC = 900  # priority; autodoc has added the types before


def setup(app: Sphinx) -> dict[str, bool]:
    """Link to the repository if its address is known, otherwise to copies of the source in the site."""
    app.setup_extension("sphinx.ext.linkcode" if repository() else "sphinx.ext.viewcode")
    app.config.linkcode_resolve = address_of
    app.connect("object-description-transform", sort_parameters, priority=AFTER_AUTODOC)
    app.connect("object-description-transform", fold_members, priority=AFTER_AUTODOC)
    app.connect("html-page-context", lead_back)
    return {"parallel_read_safe": True}


def address_of(domain: str, found: dict[str, str]) -> str | None:
    """Return file and first line of an object in the repository, or None if it doesn't have a source."""
    thing: object = sys.modules.get(found["module"])
    for part in found["fullname"].split("."):
        thing = getattr(thing, part, None)
    try:
        file = Path(inspect.getsourcefile(inspect.unwrap(thing)) or "")  # type: ignore[arg-type]
        _, line = inspect.getsourcelines(thing)  # type: ignore[arg-type]
    except TypeError:  # an attribute
        return None
    return f"{repository()}/blob/main/{file.relative_to(ROOT).as_posix()}#L{line}" if file.is_relative_to(ROOT) else None


def lead_back(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """Link a copy of the source to the description of an object. viewcode gives all objects of a module the prefix of the first."""
    if pagename.startswith("_modules/"):
        known, module = app.env.domaindata["py"]["objects"], pagename.removeprefix("_modules/").replace("/", ".")
        context["body"] = re.sub(r'(?<=\.html#)[\w.]+(?=")', lambda found: resolve_name(found[0], module, known), context["body"])


def resolve_name(name: str, module: str, known: Collection[str]) -> str:
    """Return the name under which an object is described: the given one, or the one in its module."""
    parts = name.split(".")
    tried = (name, *(".".join([module, *parts[start:]]) for start in range(1, len(parts))))
    return next((each for each in tried if each in known), name)


def sort_parameters(app: Sphinx, domain: str, kind: str, content: addnodes.desc_content) -> None:
    """Sort the described parameters in the order of the signature. autodoc appends those without a description at the end."""
    order = [name.astext() for each in content.parent.findall(addnodes.desc_parameter) for name in each.findall(addnodes.desc_sig_name)]
    for fields in content.findall(nodes.field_list):
        fields.children.sort(key=lambda field: place_of(field, order))


def fold_members(app: Sphinx, domain: str, kind: str, content: addnodes.desc_content) -> None:
    """Fold the members of a class behind a line with their names. A link to a member opens it."""
    members = [child for child in content.children if isinstance(child, addnodes.desc)]
    if kind != "class" or not members:
        return
    names = ", ".join(f"<code>{name.astext()}</code>" for member in members for name in list(member.findall(addnodes.desc_name))[:1])
    opening = nodes.raw("", f'<details class="members"><summary>{names}</summary>', format="html")
    content.children = [child for child in content.children if child not in members]
    content += [opening, *members, nodes.raw("", "</details>", format="html")]


def place_of(field: nodes.Node, order: list[str]) -> int:
    """Return the position of a field: parameters in the order of the signature, others after them."""
    what, _, name = field.children[0].astext().partition(" ")
    return order.index(name.lstrip("*")) if what in ("param", "type") and name.lstrip("*") in order else len(order)
