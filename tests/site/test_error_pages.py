"""The pages of known errors: their code as one types it, their messages without this machine. Not here: the errors (test_known.py)."""

from __future__ import annotations

import json
import re
import runpy
import time
from dataclasses import replace
from pathlib import Path

import known_errors
import pytest
import torch

from exportlab.errors import STAGES, KnownError, get, load_known_errors
from exportlab.errors.known import OutOfDate
from exportlab.verification.eager_timeout import time_limit

ERRORS = pytest.mark.parametrize("error", load_known_errors(), ids=lambda error: error.name)


@ERRORS
def test_code_is_shown_as_one_types_it(error: KnownError, tmp_path: Path) -> None:
    shown = known_errors.snippets(error)
    (tmp_path / "typed.py").write_text("\n\n".join(shown.values()), encoding="utf-8")
    names = runpy.run_path(str(tmp_path / "typed.py"))
    assert shown.keys() == {"breaks", *(fix.make.__name__ for fix in error.fixes)}
    assert all(callable(names[name]) for name in shown)
    assert not re.search(r"Claim|from \.|KnownError", "\n".join(shown.values()))


@ERRORS
def test_the_script_of_the_index_understands_the_pattern(error: KnownError) -> None:
    assert not re.search(r"\(\?P|\(\?<|\(\?[aimsux]|\\A|\\Z", error.message), (
        "no named groups, lookbehinds or flags: JavaScript reads it too"
    )
    assert not re.search(r"\(\?P|\(\?<|\(\?[aimsux]|\\A|\\Z", f"{error.op} {error.kin}")


def test_messages_name_no_folder_and_no_address() -> None:
    said = known_errors.strip_machine_details(f"File {Path(torch.__file__).parent}/export/__init__.py at 0x7f60efbf3880")
    assert said == "File torch/export/__init__.py at 0x…"


def test_a_long_message_is_cut_but_for_what_it_is_known_by() -> None:
    shown = known_errors.excerpt_message(
        "\n".join(["long " * 60, *map(str, range(50)), "the telling line", "after"]), "telling"
    ).splitlines()
    assert max(map(len, shown)) <= known_errors.WIDTH
    assert shown[-3:] == ["…", "the telling line", "…"]
    assert "49" not in shown


def test_an_error_whose_message_finds_another_is_found_out() -> None:
    other = replace(get("branch_on_value"), message="GuardOnDataDependent")
    with pytest.raises(OutOfDate, match="finds branch_on_value first"):
        known_errors.reproduce_message(other)


def test_the_index_has_every_error_by_stage() -> None:
    text = known_errors.index(load_known_errors())
    assert all(f"/generated/errors/{error.name}>`" in text for error in load_known_errors())
    stages = re.findall(r"\(stage-(\w+)\)=", text)
    assert stages == [stage for stage in STAGES if stage in stages]
    assert stages[0] == "silent"


def test_the_page_carries_every_pattern() -> None:
    held = known_errors.patterns([get("branch_on_value")])
    assert json.loads(re.search(r">(.*)</script>", held)[1])["errors"][0]["pattern"] == get("branch_on_value").message


def test_a_page_shows_message_code_reason_and_ways() -> None:
    text = known_errors.page(get("same_tensor_twice"), known_errors.reproduce_message(get("same_tensor_twice")))
    headings = re.findall(r"^##+ (.*)", text, re.MULTILINE)
    fixes = [fix.name for fix in get("same_tensor_twice").fixes]
    assert headings == ["What `verify` reports", "How to fix it", *fixes, "Why it happens", "How to reproduce it", "Related issues"]
    assert "separate tensors: output[0, 0]: 4.5 where eager has 4" in text
    assert "https://github.com/pytorch/pytorch/issues/139646" in text


def test_an_alarm_stops_each_error_that_runs_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    errors = load_known_errors()[:4]
    at_once = [error.name for error in errors[:2]]

    def made(name: str) -> tuple[str, str, str]:
        with time_limit(1):
            until = time.monotonic() + (0 if name in at_once else 10)
            while time.monotonic() < until:
                pass
        return name, "", ""

    monkeypatch.setattr(known_errors, "PAGES", tmp_path)
    monkeypatch.setattr(known_errors, "sources_of", lambda error: "")
    monkeypatch.setattr(known_errors, "_make_page", made)
    with pytest.raises(OutOfDate, match="TooSlow: took longer than 1 s"):
        known_errors.run(errors)
    assert {page.stem for page in tmp_path.glob("*.md")} == set(at_once)


def test_an_error_that_never_ends_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_errors, "SECONDS", 0.5)
    monkeypatch.setattr(known_errors, "_make_page", lambda name: time.sleep(60))
    with pytest.raises(OutOfDate, match=r"branch_on_value: TimeLimit: not done after 0\.5 s"):
        known_errors.run([get("branch_on_value")])
