"""`verify` notices changed files; what it cannot notice, it tells."""

from __future__ import annotations

import onnx_ir as ir
import pytest
from mutant_models import subjects
from mutant_trial import Trial, differs, tried
from mutants import KINDS, mutations

MODELS = ("mlp", "padded_block", "top_k", "norms", "gate", "bag", "condition", "buckets")


def test_of_sixty_changes_none_escapes_unexplained() -> None:
    verdicts = tried(60, MODELS)
    assert {verdict.kind for verdict in verdicts} == set(KINDS)
    missed = [verdict for verdict in verdicts if verdict.caught == "missed"]
    unread = [verdict for verdict in missed if verdict.kind == "weight"]  # a row that no word reads, a unit that is off at every sample
    assert [verdict for verdict in missed if verdict.why == "not reached" and verdict not in unread] == []
    assert len(missed) <= 3


@pytest.fixture(scope="module")
def gate() -> Trial:
    return Trial("gate", subjects()["gate"])


def test_a_change_is_made_in_a_copy(gate: Trial) -> None:
    before = ir.to_proto(gate.artifact.model).SerializeToString()
    for change in gate.changes():
        assert ir.to_proto(change.applied(gate.artifact.model)).SerializeToString() != before, change.what
    assert ir.to_proto(gate.artifact.model).SerializeToString() == before


def test_changes_are_chosen_alike_each_time(gate: Trial) -> None:
    first, second = (mutations(gate.artifact.model) for _ in range(2))
    assert {kind: [change.what for change in changes] for kind, changes in first.items()} == {
        kind: [change.what for change in changes] for kind, changes in second.items()
    }


def test_a_file_that_is_the_same_is_told_by_no_input(gate: Trial) -> None:
    assert len(gate.known) > 30
    assert not any(differs(answer, gate.artifact(*arguments)) for arguments, answer in gate.known)
