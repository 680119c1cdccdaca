"""What continuous integration runs: the commands that the README gives to a visitor."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SETTING = re.compile(r'^[A-Z]+="[^"]*" ')  # an environment variable before a command


def lines_of(name: str) -> list[str]:
    return [line.strip() for line in (ROOT / name).read_text(encoding="utf-8").splitlines()]


def test_it_runs_the_two_commands_of_the_readme_as_they_stand_there() -> None:
    commands = [found[1] for line in lines_of("README.md") if (found := re.match(r"(make \w+) +# ", line))]
    assert commands == ["make site", "make test"]
    run = [SETTING.sub("", line) for line in lines_of(".ci/run")]
    assert all(run.count(command) == 1 for command in commands)
    assert not [line for line in run if line.startswith("make test") and line not in ("make test", "make test-landing")]


def test_common_models_have_to_be_right_there() -> None:
    (line,) = [line for line in lines_of(".ci/run") if "tools/outside.py" in line]
    assert "--floor 148 --ratio 0.5" in line


def test_the_files_that_the_short_pass_runs_are_there() -> None:
    named = re.findall(r"\b(?:tests|gallery|tutorials)/[\w/.]+", "\n".join(lines_of(".ci/others")))
    assert named
    assert all((ROOT / name).is_file() for name in named)
