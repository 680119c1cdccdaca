"""The table of mutants fits the code: each text is in its file once, each change is Python, and the tests named are there."""

from __future__ import annotations

import ast
from dataclasses import replace

import pytest
from capture_mutants import CAPTURE, MUTANTS, ROOT, TESTS


def test_every_mutant_changes_its_file() -> None:
    assert len(MUTANTS) == 67
    for mutant in MUTANTS:
        own = ast.dump(ast.parse((ROOT / CAPTURE / mutant.file).read_text(encoding="utf-8")))
        assert ast.dump(ast.parse(mutant.changed(ROOT))) != own, mutant.what


def test_a_text_that_is_not_there_once_is_an_error() -> None:
    for old in ("no such text", "import"):
        with pytest.raises(ValueError, match="times, for the mutant"):
            replace(MUTANTS[0], old=old).changed(ROOT)


def test_the_tests_that_are_named_are_there() -> None:
    named = {test.split("::")[0] for mutant in MUTANTS for test in mutant.tests.split()}
    assert [test for test in named if not (ROOT / TESTS / test).exists()] == []
