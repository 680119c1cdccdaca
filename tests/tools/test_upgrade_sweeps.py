"""The sweeps that lesson 311 reads: each differs from today's by the releases that its name says, and the days stand in order."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import upgrade_sweeps as tool

from exportlab.sweep.records import environments, read


def releases(name: str) -> dict[str, str]:
    """The versions that a stored sweep ran with."""
    (made_in,) = environments(tool.STORED / f"{name}.jsonl").values()
    return {key.removesuffix("_version"): value for key, value in made_in.items() if key.endswith("_version")}


@pytest.mark.parametrize("name", ["before", *(f"only-{package}" for package in tool.EARLIER)])
def test_a_sweep_differs_by_the_releases_that_it_names(name: str) -> None:
    earlier = tool.EARLIER if name == "before" else {name.removeprefix("only-"): tool.EARLIER[name.removeprefix("only-")]}
    assert dict(releases(name).items() - releases("after").items()) == earlier
    assert [record.case for record in read(tool.STORED / f"{name}.jsonl")] == ["scorer", "tagger", "shares", "reader"]


def test_the_days_are_in_order_and_those_asked_are_among_them() -> None:
    stored = json.loads((tool.STORED / "days.json").read_text(encoding="utf-8"))
    assert stored["days"] == sorted(set(tool.DAYS))
    assert stored["asked"].keys() <= set(stored["days"])


def test_a_sweep_that_cannot_begin_is_an_error(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexit 2\n")
    python.chmod(0o755)
    with pytest.raises(subprocess.CalledProcessError):
        tool.sweep(python, tmp_path / "x.jsonl")
