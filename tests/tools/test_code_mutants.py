"""The table of mutants fits the code: each text is in its file once, each change is Python, and the tests named are there."""

from __future__ import annotations

import ast
from dataclasses import replace

import pytest
from code_mutants import ROOT, load_mutants


def test_every_mutant_changes_its_file() -> None:
    for mutant in load_mutants():
        own = ast.dump(ast.parse((ROOT / mutant.file).read_text(encoding="utf-8")))
        assert ast.dump(ast.parse(mutant.changed(ROOT))) != own, mutant.what


def test_a_text_that_is_not_there_once_is_an_error() -> None:
    for old in ("no such text", "import"):
        with pytest.raises(ValueError, match="times, for the mutant"):
            replace(next(load_mutants()), old=old).changed(ROOT)


def test_the_tests_that_are_named_are_there() -> None:
    named = {test.split("::")[0] for mutant in load_mutants() for test in mutant.tests.split()}
    assert [test for test in named if not (ROOT / test).exists()] == []
