"""Files in older runtimes: how far one comes, what its numbers say, what lowers its IR version, and what ends a process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import onnx
import pytest
import try_runtimes as tool


@pytest.fixture
def files(tmp_path: Path) -> dict[Path, tool.Written]:
    """A file by each exporter, with its samples beside it."""
    found = {}
    for exporter in tool.EXPORTERS:
        question = tool.Question(tool.BESIDE, exporter, 18)
        found[question.folder(tmp_path)] = tool.ensure_written(question, tmp_path)
    return found


def asked(files: dict[Path, tool.Written], monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """What becomes of the files in the runtime of this environment."""
    monkeypatch.setattr(tool, "runtime", lambda *_: (Path(sys.executable), "2026-01"))
    assert tool.ask("today", Path(), files) == "2026-01"
    return [written.runs["today"] for written in files.values()]


def test_a_file_with_its_weights_beside_it_is_right(files: dict[Path, tool.Written], monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked(files, monkeypatch) == [{"outcome": "ok"}] * 2
    assert [(written.written, written.ir) for written in files.values()] == [(18, 10)] * 2
    assert all((folder / "model.onnx.data").exists() and not (folder / "3.npz").exists() for folder in files), "no empty batch"


def test_other_numbers_are_wrong(files: dict[Path, tool.Written], monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in files:
        weights = (folder / "model.onnx.data").read_bytes()
        (folder / "model.onnx.data").write_bytes(bytes(len(weights)))
    assert [run["outcome"] for run in asked(files, monkeypatch)] == ["wrong"] * 2


def test_a_format_that_is_too_new_is_lowered(files: dict[Path, tool.Written], monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in files:
        model = onnx.load(folder / "model.onnx", load_external_data=False)
        model.ir_version = onnx.IR_VERSION + 1
        onnx.save(model, folder / "model.onnx")
    runs = asked(files, monkeypatch)
    assert [(run["outcome"], run["lowered_outcome"]) for run in runs] == [("load", "ok")] * 2
    assert "max supported IR version" in runs[0]["said"]


def test_a_file_that_ends_the_process_is_a_crash_and_the_rest_goes_on(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\nshift\nfor file; do case $file in *b) kill -11 $$;; esac; echo "[\\"$file\\", \\"ok\\", \\"\\"]"; done\n')
    python.chmod(0o755)
    assert tool.run_all(python, [Path("a"), Path("b"), Path("c")]) == {"a": ("ok", ""), "b": ("crash", "signal 11"), "c": ("ok", "")}


def test_where_in_cpp_something_was_said_is_left_out() -> None:
    said: dict[str, int] = {}
    place = "failed:/onnxruntime_src/onnxruntime/core/graph/model.cc:149 onnxruntime::Model::Model(const ModelOptions&) "
    run = {"outcome": "load", "said": f"Load model from model.onnx {place}Unsupported model IR version: 10, max supported IR version: 9"}
    assert tool.number_messages(run, said) == {"outcome": "load", "said": 0}
    assert list(said) == ["Load model from model.onnx failed:Unsupported model IR version: 10, max supported IR version: 9"]


def test_a_runtime_that_cannot_be_imported_is_an_error_and_no_crash(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    with pytest.raises(subprocess.CalledProcessError):
        tool.run_all(python, [Path("a")])


def test_a_file_that_is_there_is_not_exported_again(
    files: dict[Path, tool.Written], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(tool, "export")
    assert [tool.ensure_written(tool.Question(tool.BESIDE, name, 18), tmp_path) for name in tool.EXPORTERS] == list(files.values())
