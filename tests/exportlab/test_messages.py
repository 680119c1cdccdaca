"""Errors in one line, claims that something fails, and files that are whole or absent."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Iterator

import pytest
import torch

from exportlab import expect_failure
from exportlab.diagnostics import NOISE
from exportlab.messages import first_line, heard, muffled, native_output_dropped, quiet, root


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
    with pytest.raises(ValueError, match="would hide the message: use 1 or more"), expect_failure(KeyError, lines=lines):
        raise KeyError("x")


def test_long_lines_are_folded(capsys: pytest.CaptureFixture[str]) -> None:
    with expect_failure(ValueError):
        raise ValueError("word " * 60)
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 100


def test_no_failure_is_a_failure() -> None:
    with pytest.raises(AssertionError, match="expected ValueError, but nothing was raised"), expect_failure(ValueError):
        pass


def test_another_message_is_a_failure() -> None:
    with pytest.raises(AssertionError, match="doesn't match 'cause'"), expect_failure(ValueError, match="cause"):
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


AXIS = "# The axis name: a will not be used, since it shares the same shape constraints with another axis: b."
ABOUT_TORCH = "`isinstance(treespec, LeafSpec)` is deprecated, use something else"


def say(axis: str = AXIS) -> None:
    warnings.warn(ABOUT_TORCH, FutureWarning, stacklevel=1)
    warnings.warn(axis, UserWarning, stacklevel=1)
    warnings.warn("Converting a tensor to a Python boolean might cause the trace to be incorrect.", torch.jit.TracerWarning, stacklevel=1)
    logging.getLogger("torch.onnx").warning("the opset was converted")
    logging.getLogger("torch.onnx").info("a step was done")
    logging.getLogger("torch.onnx._internal.exporter._registration").warning("torchvision is not installed. Skipping torchvision::nms")
    logging.getLogger("apart").error("a logger that hands nothing on")
    os.write(
        2, b"\x1b[0;93m2026-11-22 04:20:10.096958729 [W:onnxruntime:, execution_frame.cc:921 VerifyOutputSizes] Expected shape\x1b[m\n"
    )
    os.write(2, b"2026-11-22 04:20:10.096958729 [E:onnxruntime:, sequential_executor.cc:677 ExecuteKernel] it is raised as well\n")
    os.write(1, b"graph(%x : Float(4))\n")
    print("[W1122 04:20:10.123456 7 mutex.cpp:12] Warning: at 0x7f579b94b240", file=sys.stderr)
    print(" 50%|#####     |", file=sys.stderr)


SAID = [
    "torch.onnx: the opset was converted",
    "apart: a logger that hands nothing on",
    f"UserWarning: {AXIS}",
    "TracerWarning: Converting a tensor to a Python boolean might cause the trace to be incorrect.",
    "[W:onnxruntime:, execution_frame.cc:921 VerifyOutputSizes] Expected shape",
    "[W mutex.cpp:12] Warning: at 0x…",
]


@pytest.fixture(autouse=True)
def no_other_test_made_it_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    for noise in NOISE:
        if isinstance(noise.source, str):
            monkeypatch.setattr(logging.getLogger(noise.source), "filters", [])


@pytest.fixture(autouse=True)
def logger_apart() -> Iterator[None]:
    logging.getLogger("apart").propagate = False
    yield
    logging.getLogger("apart").propagate = True


def test_what_is_said_is_heard_from_every_side_without_noise(capfd: pytest.CaptureFixture[str]) -> None:
    with heard() as said:
        say()
    assert said == SAID
    assert capfd.readouterr() == ("", "")


def test_what_was_said_before_an_error_is_heard() -> None:
    with pytest.raises(KeyError), heard() as said:  # noqa: PT012 - the block is what is tested
        say()
        raise KeyError
    assert said == SAID


def test_when_it_was_heard_all_is_as_before(capfd: pytest.CaptureFixture[str]) -> None:
    with heard():
        say()
    print("out", flush=True)
    os.write(2, b"err")
    assert capfd.readouterr() == ("out\n", "err")
    with pytest.warns(UserWarning, match="axis name"):
        warnings.warn(AXIS, UserWarning, stacklevel=1)


def test_a_logger_that_comes_up_in_the_block_is_heard_too(capfd: pytest.CaptureFixture[str]) -> None:
    late = logging.getLogger("late")
    with heard() as said:
        late.propagate = False
        late.addHandler(logging.StreamHandler())
        late.warning("from an import")
    late.handlers.clear()
    late.propagate = True
    assert said == ["late: from an import"]
    assert capfd.readouterr() == ("", "")


def test_of_two_blocks_the_inner_one_hears() -> None:
    with heard() as outer:
        logging.getLogger("a").warning("first")
        with heard() as inner:
            logging.getLogger("a").warning("second")
    assert (outer, inner) == (["a: first"], ["a: second"])


def test_logging_stays_as_it_is_but_for_what_it_offers_to_set() -> None:
    before, making, shown = vars(logging.Logger).copy(), logging.getLogRecordFactory(), list(logging.getLogger().handlers)
    filters = [list(handler.filters) for handler in shown]
    with pytest.raises(KeyError), heard():  # noqa: PT012 - the block is what is tested
        assert vars(logging.Logger) == before
        raise KeyError
    assert logging.getLogRecordFactory() is making
    assert [handler.filters for handler in shown] == filters


def test_a_handler_that_works_with_what_is_logged_goes_on_working_unseen(capfd: pytest.CaptureFixture[str]) -> None:
    class Branching(torch.nn.Module):
        def forward(self, x: torch.Tensor, limit: torch.Tensor) -> torch.Tensor:
            return x.clamp(max=limit) if limit.item() > 0 else x

    with heard():
        draft = torch.export.draft_export(Branching(), (torch.randn(2), torch.tensor(2)))
    assert len(draft._report.failures) > 0  # type: ignore[attr-defined]  # it collects them from log records
    assert capfd.readouterr() == ("", "")


def test_muffled_hides_what_is_noise_alone(caplog: pytest.LogCaptureFixture) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with muffled():
            say()
    assert [str(w.message)[:15] for w in caught] == ["# The axis name", "Converting a te"]
    assert [record.message for record in caplog.records] == ["the opset was converted", "a logger that hands nothing on"]
    logging.getLogger("torch.onnx._internal.exporter._registration").warning("torchvision is not installed.")
    assert caplog.records[-1].message == "torchvision is not installed.", "the block is over"


def test_quiet_hides_the_same_for_good(caplog: pytest.LogCaptureFixture) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        quiet()
        say()
    assert [str(w.message)[:15] for w in caught] == ["# The axis name", "Converting a te"]
    assert [record.message for record in caplog.records] == ["the opset was converted", "a logger that hands nothing on"]


def test_of_native_output_warnings_alone_are_left_and_the_rest_is_dropped(capfd: pytest.CaptureFixture[str]) -> None:
    with native_output_dropped():
        os.write(1, b"graph\n")
        os.write(2, b"graph\nW 00:00:00.12 executorch:method.cpp:10] a warning\n[E:onnxruntime:, x.cc:1 f] raised\n")
    os.write(1, b"back")
    assert capfd.readouterr() == ("back", "W executorch:method.cpp:10] a warning\n")
