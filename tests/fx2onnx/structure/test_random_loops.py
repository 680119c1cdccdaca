"""Random functions with loops: the file of each is right at lengths and values that were never run, or there is none."""

from __future__ import annotations

from pathlib import Path

import pytest
from random_loops import outcome


@pytest.mark.parametrize("seed", range(50))
def test_no_file_of_a_random_function_is_wrong(seed: int, tmp_path: Path) -> None:
    assert outcome(seed, tmp_path) in {"right", "refused"}


def test_most_random_functions_have_a_file(tmp_path: Path) -> None:
    assert [outcome(seed, tmp_path) for seed in range(100, 110)].count("right") >= 7
