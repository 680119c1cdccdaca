"""Errors in one line, claims that something fails, and files that are whole or absent."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from pathlib import Path

import pytest

from exportlab import expect_failure
from exportlab.files import written_whole
from exportlab.messages import first_line, muffled, native_output_dropped, root


def test_expected_failure_is_printed_in_a_few_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with expect_failure(ValueError, match="second", lines=2):
        raise ValueError("\x1b[96mfirst\x1b[0m\n\nsecond\nthird")
    assert capsys.readouterr().out == "ValueError:\nfirst\nsecond\n"


def test_a_message_is_not_cut_off_behind_a_colon(capsys: pytest.CaptureFixture[str]) -> None:
    with expect_failure(ValueError, lines=1):
        raise ValueError("Next steps:\nof these:\nthe first\nthe second")
    assert capsys.readouterr().out == "ValueError:\nNext steps:\nof these:\nthe first\n"


def test_the_file_of_a_cell_is_named_as_a_reader_knows_it(capsys: pytest.CaptureFixture[str]) -> None:
    with expect_failure(ValueError):
        raise ValueError('File "/tmp/ipykernel_12/34.py", line 5')
    assert capsys.readouterr().out == 'ValueError:\nFile "a cell of this notebook", line 5\n'


@pytest.mark.parametrize("lines", [0, -1])
def test_a_message_cannot_be_hidden(lines: int) -> None:
    with pytest.raises(ValueError, match="at least one has to be shown"), expect_failure(KeyError, lines=lines):
        raise KeyError("x")


def test_long_lines_are_folded(capsys: pytest.CaptureFixture[str]) -> None:
    with expect_failure(ValueError):
        raise ValueError("word " * 60)
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 100


def test_no_failure_is_a_failure() -> None:
    with pytest.raises(AssertionError, match="expected to raise ValueError, and it did not"), expect_failure(ValueError):
        pass


def test_another_message_is_a_failure() -> None:
    with pytest.raises(AssertionError, match="lacks 'cause'"), expect_failure(ValueError, match="cause"):
        raise ValueError("effect")


def test_another_type_passes_through() -> None:
    with pytest.raises(KeyError), expect_failure(ValueError):
        raise KeyError("x")


def test_first_line_and_root() -> None:
    error = ValueError("\n\n outer\nmore")
    error.__cause__ = KeyError("inner")
    assert first_line(error) == "ValueError: outer"
    assert root(error) is error.__cause__
    assert first_line(ValueError()) == "ValueError: no message"


def test_muffled_keeps_warnings_and_restores_logging(capsys: pytest.CaptureFixture[str]) -> None:
    with muffled() as said:
        warnings.warn("careful", UserWarning, stacklevel=1)
        logging.getLogger("torch").warning("chatter")
        print("chatter", file=sys.stderr)
    assert said == ["UserWarning: careful"]
    assert capsys.readouterr().err == ""
    assert logging.root.manager.disable == logging.NOTSET


def test_output_from_below_python_is_dropped_and_then_comes_back(capfd: pytest.CaptureFixture[str]) -> None:
    with native_output_dropped():
        os.write(1, b"graph")
        os.write(2, b"graph")
    os.write(1, b"back")
    assert capfd.readouterr() == ("back", "")


def test_files_are_whole_or_absent(tmp_path: Path) -> None:
    target = tmp_path / "a.bin"
    target.write_text("old")
    with pytest.raises(RuntimeError), written_whole(target) as draft:  # noqa: PT012 - the block is what is tested
        draft.write_text("half")
        raise RuntimeError
    assert target.read_text() == "old"
    with written_whole(target) as draft:
        draft.write_text("new")
        draft.with_name("a.bin.data").write_text("companion")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.bin", "a.bin.data"]
    assert target.read_text() == "new"
