"""What is stale after a change: what pages, lessons and tests read, as far as their text tells, and no less."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import stale
from stale import ROOT, digest, fingerprint, hashing, reads
from stale.content import CONTENT, FINDERS
from stale.reading import Whole, next_steps
from stale.source import bindings_of, facts, statements_by_name, tree_of
from stale.tree import project

FINDS = ("import_module", "iter_modules", "entry_points")  # by which code is loaded that no import statement names


def read_by(page: str) -> set[str]:
    return {path.relative_to(ROOT).as_posix() for path in reads(ROOT / page)}


def folders_read_by(page: str) -> set[str]:
    return {name.rpartition("/")[0] for name in read_by(page)}


def paths_in(code: str) -> set[tuple[str, ...]]:
    tree = ast.parse(code)
    return set(facts(tree.body, bindings_of(tree)).paths)


def test_a_recipe_reads_the_machinery_that_it_uses_and_no_content() -> None:
    found = read_by("gallery/torch_onnx/model_mlp.py")
    assert found >= {
        "gallery/torch_onnx/model_mlp.py", "requirements.txt", "constraints.txt", "exportlab/__init__.py",
        "exportlab/verification/verify.py", "fx2onnx/__init__.py", "fx2onnx/translate/registry.py", "fx2onnx/ops/activation.py",
    }  # fmt: skip
    assert folders_read_by("gallery/torch_onnx/model_mlp.py").isdisjoint({
        "content/zoo", "content/errors", "exportlab/doctor", "exportlab/sweep", "gallery/torch_export",
    })  # fmt: skip


def test_a_recipe_that_does_not_export_to_onnx_reads_no_translation() -> None:
    assert "exportlab/exporters/torch_export.py" in read_by("gallery/torch_export/save_and_load.py")
    assert "fx2onnx/ops" not in folders_read_by("gallery/torch_export/save_and_load.py")


def test_a_case_that_is_named_is_read_with_what_it_needs_and_no_other() -> None:
    found = read_by("tests/fx2onnx/test_to_onnx.py")
    assert "content/zoo/basics.py" in found
    assert "content/zoo/loops.py" not in found


def test_who_asks_for_all_cases_reads_them_all() -> None:
    everything = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("content/zoo/*.py")}
    assert read_by("benchmarks/coverage.py") >= everything
    assert read_by("tests/content/zoo/test_zoo.py") >= everything


def test_a_name_that_is_put_together_elsewhere_is_looked_for_in_strings_and_data() -> None:
    assert "content/zoo/loops.py" in read_by("tests/exportlab/sweep/test_sweep.py"), "row_loop, of a tuple"
    assert "content/zoo/audio.py" not in read_by("tests/exportlab/sweep/test_sweep.py")
    assert "content/zoo/audio.py" in read_by("tutorials/105_two_flavours.ipynb"), "the names come from the stored matrix"


def test_of_a_file_of_cases_only_those_that_are_named_count(changed: dict[Path, str]) -> None:
    test, loops = ROOT / "tests/exportlab/sweep/test_sweep.py", ROOT / "content/zoo/loops.py"
    before, text = fingerprint(test), loops.read_text(encoding="utf-8")
    changed[loops] = f"{text}\n\n@case()\ndef one_more():\n    ...\n"
    forget()
    assert fingerprint(test) == before
    changed[loops] = text.replace("def row_loop() -> Declaration:", "def row_loop() -> Declaration:  # another")
    assert changed[loops] != text
    forget()
    assert fingerprint(test) != before
    changed[loops] = text.replace("\n\n\n", "\n\n\n\n", 1)
    forget()
    assert fingerprint(test) != before, "it stands in another line"


def test_who_recognises_an_error_reads_them_all() -> None:
    everything = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("content/errors/*.py")}
    assert read_by("exportlab/doctor/findings.py") >= everything


def test_a_known_error_does_not_read_another() -> None:
    catalogue = sorted(ROOT.glob("content/errors/[a-z]*.py"))
    others = {path for path in catalogue if path != catalogue[0]}
    assert catalogue[0] in reads(catalogue[0])
    assert not others & reads(catalogue[0])


def test_files_that_strings_and_paths_name_are_read() -> None:
    assert "docs/data/matrix.jsonl" in read_by("benchmarks/coverage.py")
    assert {"docs/data/matrix.jsonl", "tests/expected/matrix.csv"} <= read_by("tools/expected_matrix.py")
    assert "tests/fx2onnx/op_database.json" in read_by("tests/fx2onnx/test_op_database.py"), "by with_suffix"


def test_a_module_that_is_started_by_name_is_read() -> None:
    assert "exportlab/sweep/worker.py" in read_by("exportlab/sweep/isolated.py")


def test_the_command_is_read_by_who_starts_it() -> None:
    assert {"exportlab/cli/commands.py", "exportlab/cli/exporting.py"} <= read_by("tutorials/307_the_same_tomorrow.ipynb")


def test_a_lesson_and_its_stored_pair_read_the_same() -> None:
    lesson, pair = "tutorials/304_cpp_with_aotinductor.md", "tutorials/304_cpp_with_aotinductor.ipynb"
    assert read_by(lesson) - {lesson} == read_by(pair) - {pair}
    assert "tutorials/cpp/CMakeLists.txt" in read_by(pair)


def test_a_test_reads_the_helpers_beside_it() -> None:
    assert "tests/fx2onnx/operators.py" in read_by("tests/fx2onnx/ops/test_nn.py")


def test_a_path_is_followed_as_far_as_it_is_written_out() -> None:
    assert paths_in('HERE / "docs" / "data" / name / "x"') == {("docs", "data")}
    assert paths_in('FOLDER = HERE / "docs"\nread(FOLDER / "a.md")\nread(FOLDER / "b.md")') == {("docs", "a.md"), ("docs", "b.md")}
    assert paths_in('FOLDER = HERE / "docs"\nread(FOLDER / "a.md")\nlist(FOLDER.iterdir())') == {("docs", "a.md"), ("docs",)}


def test_what_only_a_type_checker_imports_is_not_read() -> None:
    tree = ast.parse("if TYPE_CHECKING:\n    from content import zoo\ndef f(x: zoo.Case): ...")
    assert facts(tree.body, bindings_of(tree)).references == frozenset()


def test_what_a_package_imports_when_it_is_asked_for_is_read() -> None:
    asked = read_by("gallery/torch_export/scan.py")
    assert "exportlab/verification/comparison.py" in asked
    assert "exportlab/doctor/run.py" not in asked


def test_every_module_that_finds_code_by_name_is_known() -> None:
    """Whoever loads code in a new way has to tell it: what a page reads would be missed."""
    modules = [path for folder in ("exportlab", "fx2onnx", "content") for path in (ROOT / folder).rglob("*.py")]
    named = {path for path in modules for node in ast.walk(tree_of(path)) if getattr(node, "attr", getattr(node, "id", "")) in FINDS}
    named |= {path for path in modules if ROOT / "exportlab/entry_points.py" in {step.path for step in next_steps(Whole(path))}}
    others = {"__init__.py", "entry_points.py", "cli/commands.py", "exporters/protocol.py", "exporters/openvino_model.py"}
    assert named == {path for path, _ in FINDERS} | {ROOT / "exportlab" / name for name in others}


@pytest.mark.parametrize(("path", "name"), FINDERS)
def test_what_finds_content_is_there(path: Path, name: str) -> None:
    assert name in statements_by_name(path)


def test_content_is_what_registers_itself() -> None:
    groups = project()["project"]["entry-points"].values()
    registered = [ROOT / value.partition(":")[0].replace(".", "/") for group in groups for value in group.values()]
    assert {*CONTENT} == {path if path.is_dir() else path.parent for path in registered}


@pytest.fixture
def changed(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[Path, str]]:
    """Texts by file, in place of those that are stored."""
    texts: dict[Path, str] = {}
    stored = Path.read_text
    monkeypatch.setattr(Path, "read_text", lambda path, **options: texts.get(path) or stored(path, **options))
    monkeypatch.setattr(Path, "read_bytes", lambda path: path.read_text(encoding="utf-8").encode())
    forget()
    yield texts
    monkeypatch.undo()
    forget()


def forget() -> None:
    for name, module in list(sys.modules.items()):
        for value in vars(module).values() if name.partition(".")[0] == "stale" else ():
            getattr(value, "cache_clear", lambda: None)()


@pytest.mark.parametrize(
    ("module", "counts"), [("exportlab/doctor/run.py", False), ("fx2onnx/ops/activation.py", True), ("content/zoo/loops.py", True)]
)
def test_a_docstring_counts_where_it_is_shown(changed: dict[Path, str], module: str, counts: bool) -> None:
    path = ROOT / module
    before = digest([path])
    text, docstring = path.read_text(encoding="utf-8"), ast.get_docstring(tree_of(path), clean=False)
    changed[path] = text.replace(docstring, f"{docstring} And\nmore.", 1)
    forget()
    assert (digest([path]) != before) == counts
    changed[path] = f"{text}\nNEW = 1\n"
    forget()
    assert digest([path]) != before


def test_a_new_translation_makes_its_readers_stale_and_no_others(changed: dict[Path, str]) -> None:
    reader, other = ROOT / "gallery/torch_onnx/model_mlp.py", ROOT / "gallery/torch_export/save_and_load.py"
    before = fingerprint(reader), fingerprint(other)
    activation = ROOT / "fx2onnx/ops/activation.py"
    changed[activation] = activation.read_text(encoding="utf-8") + "\n\ndef more() -> None:\n    ...\n"
    forget()
    assert fingerprint(reader) != before[0]
    assert fingerprint(other) == before[1]


def test_what_is_read_as_text_counts_to_the_letter(changed: dict[Path, str]) -> None:
    path = ROOT / "exportlab/doctor/run.py"
    before = hashing.of_text(path)
    changed[path] = path.read_text(encoding="utf-8").replace('"""', '"""More: ', 1)
    forget()
    assert hashing.of_text(path) != before


def test_the_public_names_are_few() -> None:
    assert sorted(stale.__all__) == ["ROOT", "digest", "fingerprint", "reads", "state"]
