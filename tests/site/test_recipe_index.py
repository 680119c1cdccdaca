"""The cards on the index of recipes: each recipe once, with its last words and the outcomes on its page."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import recipe_index
from docutils import nodes
from site_files import ROOT

from exportlab.outcomes import Outcome

GALLERY = ROOT / "gallery"
SCRIPTS = sorted(GALLERY.rglob("*.py"))


def test_each_recipe_is_in_one_group() -> None:
    named = Counter(name for names in recipe_index.GROUPS.values() for name in names)
    assert named == Counter(script.stem for script in SCRIPTS)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_card_says_in_a_sentence_what_was_found(script: Path) -> None:
    recipe = recipe_index.read(script, GALLERY)
    assert 30 < len(recipe.finding) < 180
    assert recipe.finding.endswith(".")
    assert not any(mark in recipe.finding for mark in (":doc:", "Next", "# "))
    assert recipe.page == f"{script.parent.name}/{script.stem}.html"


def test_outcomes_are_read_from_tables_and_from_reports() -> None:
    page = """
    <td class=short style="border-left: 6px solid #009E73; font-weight: 600">frozen</td>
        export inputs  f32[4, 3]                                       ok       3.0e-08
        unseen size    f32[7, 3]                                       wrong    7.5e-09
        the word ok in a sentence is no outcome
    """
    assert recipe_index.outcomes(page) == (Outcome.FROZEN, Outcome.OK, Outcome.WRONG)


def test_a_card_says_its_outcomes_in_words_as_well() -> None:
    card = recipe_index.card(recipe_index.Recipe("An ``if`` & more", "a.html", "It *is*.", (Outcome.OK, Outcome.WRONG, Outcome.OK)))
    assert '<a href="a.html"><strong>An <code>if</code> &amp; more</strong>' in card
    assert card.count("<i ") == 3
    assert 'aria-label="Outcomes on the page: 2 ok, 1 wrong"' in card


def test_a_chapter_has_the_groups_of_its_own_recipes() -> None:
    chapter = GALLERY / "contributing"
    (section,) = recipe_index.groups({script.stem: recipe_index.read(script, chapter) for script in chapter.glob("*.py")})
    assert next(section.findall(nodes.title)).astext() == "Write a recipe"
    assert 'href="template.html"' in section.astext()
