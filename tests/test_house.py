"""The rules of the house that a machine can check: imports, sizes, first lines, public names, the set-up's messages."""

from __future__ import annotations

import ast
import gzip
import importlib
import importlib.util
import inspect
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import exportlab
import fx2onnx

ROOT = Path(__file__).parents[1]
PACKAGES = (exportlab, fx2onnx)
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
MODULES = [path for folder in ("exportlab", "fx2onnx", "content", "tools", "docs/_ext") for path in sorted((ROOT / folder).rglob("*.py"))]
LESSONS = sorted((ROOT / "tutorials").glob("[0-9]*.md"))
EACH_PACKAGE = pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)

# What must not be written, by contract: a file, the line that is added to it, and the import as the report names it.
WRONG_IMPORTS = {
    "exportlab has four layers, and an import goes only downwards": (
        "exportlab/files.py", "from . import patches", "exportlab.files -> exportlab.patches",
    ),
    "the stations of fx2onnx follow each other": (
        "fx2onnx/ir/names.py", "from ..ops import linear", "fx2onnx.ir.names -> fx2onnx.ops.linear",
    ),
    "fx2onnx stands alone": ("fx2onnx/errors.py", "from exportlab import files", "fx2onnx.errors -> exportlab.files"),
    "exporters/to_onnx.py is the only door to fx2onnx, beside its compat and four listed modules": (
        "exportlab/programs.py", "from fx2onnx import program", "exportlab.programs -> fx2onnx.program",
    ),
    "the packages do not import content, which entry points find": (
        "exportlab/messages.py", "from content.zoo import tiny", "exportlab.messages -> content.zoo.tiny",
    ),
    "no circle of files": ("fx2onnx/ir/dtypes.py", "from . import graph", "No cycles are allowed in fx2onnx.ir."),
}  # fmt: skip


@pytest.fixture(scope="module")
def report_of_wrong_imports(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What import-linter says of a copy of both packages in which every contract is broken."""
    folder = tmp_path_factory.mktemp("house")
    shutil.copy(ROOT / "pyproject.toml", folder)
    for name in ("exportlab", "fx2onnx", "content"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name, line, _ in WRONG_IMPORTS.values():
        with (folder / name).open("a", encoding="utf-8") as file:
            file.write(f"\n{line}\n")
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"COLUMNS": "200"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


def test_every_contract_has_an_import_that_breaks_it() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    assert {contract["name"] for contract in contracts} == set(WRONG_IMPORTS)


@pytest.mark.parametrize("contract", WRONG_IMPORTS)
def test_a_wrong_import_breaks_its_contract(report_of_wrong_imports: str, contract: str) -> None:
    assert f"{contract} BROKEN" in report_of_wrong_imports
    details = report_of_wrong_imports.split(f"\n{contract}\n---")[1]
    assert WRONG_IMPORTS[contract][2] in details


def test_functions_fit_a_screen_and_modules_need_no_map() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in MODULES}
    assert [path for path, text in texts.items() if len(text.splitlines()) > 400] == []
    functions = [(path, node) for path, text in texts.items() for node in ast.walk(ast.parse(text)) if isinstance(node, FUNCTION)]
    assert [f"{path}: {node.name}" for path, node in functions if node.end_lineno - node.lineno >= 60] == []


def test_lessons_are_short() -> None:
    texts = {path.stem: path.read_text(encoding="utf-8") for path in LESSONS}
    longer = [name for name, text in texts.items() if len(text.splitlines()) > 450 or text.count("\n```{code-cell}") > 45]
    assert longer == [], "cut it or split it: 450 lines and 45 cells at most"


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.stem)
def test_lessons_name_what_is_in_the_packages(lesson: Path) -> None:
    code = "\n".join(re.findall(r"^```\{code-cell\}.*?^```$", lesson.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE))
    absent = [name for name in set(re.findall(r"\b(?:fx2onnx|exportlab)(?:\.\w+)+", code)) if not is_found(name)]
    assert absent == []


def is_found(name: str) -> bool:
    """Whether a dotted name is a module, or what one has, as deep as modules go."""
    found: object = importlib.import_module(name.partition(".")[0])
    for depth, part in enumerate(name.split(".")[1:], 2):
        path = ".".join(name.split(".")[:depth])
        if isinstance(found, ModuleType) and not hasattr(found, part) and importlib.util.find_spec(path):
            found = importlib.import_module(path)
        elif not hasattr(found, part):
            return False
        else:
            found = getattr(found, part)
    return True


def test_the_first_line_says_what_is_here() -> None:
    assert [path for path in MODULES if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))] == []


@pytest.mark.parametrize("family", sorted(path.stem for path in (ROOT / "fx2onnx/ops").glob("[a-z]*.py")))
def test_every_family_of_translations_has_its_tests(family: str) -> None:
    assert (ROOT / f"tests/fx2onnx/ops/test_{family}.py").exists()


def test_the_public_names_are_these() -> None:
    assert sorted(exportlab.__all__) == [
        "Sample", "VerificationError", "bench", "case", "compare", "doctor", "expect_failure", "export", "profile", "quiet", "require",
        "show", "tensor", "to_onnx", "verify",
    ]  # fmt: skip
    assert sorted(fx2onnx.__all__) == ["NEWEST_OPSET", "OLDEST_OPSET", "ToOnnxError", "to_onnx"]
    assert exportlab.to_onnx is fx2onnx.to_onnx


@EACH_PACKAGE
def test_each_public_name_is_used_on_a_page(package: ModuleType) -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in pages())
    assert [name for name in package.__all__ if not re.search(rf"\b{name}\b", text)] == []


@EACH_PACKAGE
def test_no_name_is_public_by_accident(package: ModuleType) -> None:
    tree = ast.parse(inspect.getsource(package))
    made = [node.name for node in tree.body if isinstance(node, (*FUNCTION, ast.ClassDef))]
    made += [name.id for node in tree.body if isinstance(node, ast.Assign) for name in ast.walk(node) if isinstance(name, ast.Name)]
    assert [name for name in made if not name.startswith("_") and name not in package.__all__] == []


@EACH_PACKAGE
def test_what_is_imported_from_a_package_is_public(package: ModuleType) -> None:
    for path in [*pages(), *(ROOT / "tests").rglob("*.py")]:
        names = re.findall(rf"^\s*from {package.__name__} import (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
        for name in re.findall(r"\w+(?=,|$| as |\s*#)", ",".join(names)):
            assert name in package.__all__ or is_module(f"{package.__name__}.{name}"), f"{path.relative_to(ROOT)} imports {name}"


def is_module(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def pages() -> list[Path]:
    folders = ("gallery", "tutorials", "benchmarks", "docs")
    return [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".md")] + [ROOT / "CONTRIBUTING.md"]


@EACH_PACKAGE
def test_importing_the_package_changes_no_warning_filter(package: ModuleType) -> None:
    code = f"import warnings, torch, onnxscript; a = list(warnings.filters); import {package.__name__}; assert warnings.filters == a"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_the_exporter_brings_nothing_of_the_lab() -> None:
    foreign = {"exportlab", "igraph", "matplotlib", "onnxscript", "pandas", "rich", "transformers", "typer"}
    code = f"import torch, sys; before = set(sys.modules); import fx2onnx; print(*{foreign} & (set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []


def text_of(path: Path) -> str:
    """Return what a file says, unpacked."""
    content = path.read_bytes()
    return (gzip.decompress(content) if path.suffix == ".gz" else content).decode()


def test_no_machine_and_no_registry_is_named() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    named = re.compile(r"/(root|home)/\w|(?<![\w.])/work/|pypi\.org|files\.pythonhosted")
    for name in filter(None, listed.split("\0")):
        path = ROOT / name
        if path.suffix in (".png", ".svg") or path == Path(__file__) or not path.is_file():
            continue
        found = named.search(text_of(path))
        assert not found, f"{name} names {found.group()!r}"


# Names that say nothing of what a function does: a participle, or a preposition at the beginning.
VAGUE = re.compile(
    r"_*(of|in|at|by|with|without|from|for|as|on)_\w+|_*[a-z]+(ed|wn|ought|eld|old|aid)|_*(made|given|seen|written|taken|chosen|drawn|worst|best|own)"
)
VAGUE_STILL = {  # those of a public API, those that benchmarks call, whose stored runs hold their scripts, and usual constructors
    *("compared", "measured", "registered", "examined", "for_model", "as_containers", "by_example", "by_signature", "spoken", "muffled"),
    *("in_onnxruntime", "in_process", "stored", "exported", "lightened", "in_bytes", "shown", "seen", "summed", "interleaved"),
    *("threshold", "reflected", "of_lengths", "searchsorted", "unfold", "as_strided", "as_strided_scatter", "written"),
    *("by_turns", "rounded", "listed", "from_file", "from_program", "from_fx", "from_ir", "from_csv", "fold", "dropdown"),
}


def functions_of(folder: str) -> list[str]:
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / folder).rglob("*.py"))
    return [node.name for tree in trees for node in tree.body if isinstance(node, FUNCTION)]


@pytest.mark.parametrize("folder", ["exportlab", "fx2onnx", "tools", "docs/_ext"])
def test_the_name_of_a_function_is_a_verb_phrase(folder: str) -> None:
    assert [name for name in functions_of(folder) if VAGUE.fullmatch(name) and name not in VAGUE_STILL] == []


def test_no_name_is_excused_that_is_gone() -> None:
    there = {name for folder in ("exportlab", "fx2onnx", "tools", "docs/_ext") for name in functions_of(folder)}
    assert VAGUE_STILL - there == set()
