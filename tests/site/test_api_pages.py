"""The page of the API: parameters stand in the order of the signature, and objects lead to their source."""

from __future__ import annotations

from pathlib import Path

import api_pages
import pytest
from docutils import nodes
from sphinx import addnodes

ROOT = Path(__file__).parents[2]


def described(signature: list[str], fields: list[str]) -> addnodes.desc_content:
    """A function as autodoc leaves it: its signature, and the fields of its docstring."""
    names = [addnodes.desc_parameter("", "", addnodes.desc_sig_name("", name)) for name in signature]
    content = addnodes.desc_content("", nodes.field_list("", *(nodes.field("", nodes.field_name("", field)) for field in fields)))
    return addnodes.desc("", addnodes.desc_signature("", "", addnodes.desc_parameterlist("", "", *names)), content).children[1]


def test_parameters_stand_in_the_order_of_the_signature() -> None:
    content = described(
        ["model", "inputs", "tell"], ["param tell", "returns", "raises ValueError", "param inputs", "type tell", "param model"]
    )
    api_pages.sort_parameters(None, "py", "function", content)  # type: ignore[arg-type]
    found = [field.astext() for field in content.findall(nodes.field_name)]
    assert found == ["param model", "param inputs", "param tell", "type tell", "returns", "raises ValueError"]


def test_starred_parameters_have_their_place() -> None:
    content = described(["model", "*args", "**kwargs"], ["param **kwargs", "param args", "param model"])
    assert [api_pages.place_of(field, ["model", "args", "kwargs"]) for field in content.findall(nodes.field)] == [2, 1, 0]


def test_the_members_of_a_class_are_folded_behind_their_names() -> None:
    member = addnodes.desc("", addnodes.desc_signature("", "", addnodes.desc_name("", "check")), addnodes.desc_content(""))
    content = addnodes.desc_content("", nodes.paragraph("", "A report."), member, nodes.paragraph("", "More."))
    api_pages.fold_members(None, "py", "class", content)  # type: ignore[arg-type]
    told = [node.astext() for node in content.children]
    assert told == ["A report.", "More.", '<details class="members"><summary><code>check</code></summary>', member.astext(), "</details>"]


def test_an_object_leads_to_its_first_line(monkeypatch: pytest.MonkeyPatch) -> None:
    import exportlab  # noqa: F401 - what is looked up

    monkeypatch.setattr(api_pages, "repository", lambda: "https://git.example/o/n")
    address = api_pages.address_of("py", {"module": "exportlab", "fullname": "verify"}) or ""
    file, _, line = address.removeprefix("https://git.example/o/n/blob/main/").partition("#L")
    assert (ROOT / file).read_text(encoding="utf-8").splitlines()[int(line) - 1].startswith("def verify(")
    assert api_pages.address_of("py", {"module": "exportlab", "fullname": "no_such_name"}) is None


def test_a_copy_of_the_source_leads_back_to_the_name_that_is_described() -> None:
    known = {"exportlab.cases.Case", "exportlab.cases.Case.sizes", "exportlab.case"}
    assert api_pages.resolve_name("exportlab.Case.sizes", "exportlab.cases", known) == "exportlab.cases.Case.sizes"
    assert api_pages.resolve_name("exportlab.case", "exportlab.cases", known) == "exportlab.case"
    assert api_pages.resolve_name("exportlab.gone", "exportlab.cases", known) == "exportlab.gone"
