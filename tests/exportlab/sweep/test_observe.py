"""What a record keeps of a check and of a message."""

from __future__ import annotations

from pathlib import Path

import torch

from content import zoo
from exportlab.outcomes import Outcome
from exportlab.sweep.observe import kept, serialize_check
from exportlab.verification.report import Check


def test_a_record_names_the_values_at_which_a_check_failed() -> None:
    assert serialize_check(Check("other values", "f32[4]", Outcome.WRONG, values="one NaN"))["inputs"] == "one NaN: f32[4]"


def test_a_message_is_kept_without_the_folders_of_this_machine() -> None:
    said = f"in {torch.__file__}:3 and {Path(zoo.__file__).with_name('loops.py')}:18"
    assert kept(said) == "in torch/__init__.py:3 and content/zoo/loops.py:18"
    assert len(kept("x" * 1000)) == 400
