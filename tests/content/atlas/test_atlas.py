"""The atlas: its names, that listing it imports no library, what is said where one is missing, and three types that export."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from content.atlas import timm, torchvision, transformers
from content.atlas.configured import NotBuilt, built_tiny, two_of
from content.atlas.library import check_installed
from exportlab import to_onnx, verify
from exportlab.cases import Case, NotInstalled, atlas, registered_case
from exportlab.cli import sweeping
from exportlab.target import BadInput

MISSING = "no_such_library is not installed: pip install 'exportlab\\[atlas\\]'"
LISTED = """
import sys
from content.atlas import timm, torchvision, transformers
timm.check_installed = torchvision.check_installed = lambda *names: None
timm.cases(), torchvision.cases()
print([name for name in ("timm", "torchvision", "transformers") if name in sys.modules])
"""


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if timm and torchvision were there: their cases are listed, and none is built."""
    for module in (timm, torchvision):
        monkeypatch.setattr(module, "check_installed", lambda *_: None)


@pytest.fixture
def families(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two families, whatever this environment has: one whose library is there, and one whose library is missing."""

    def of(family: str) -> dict[str, Case]:
        if family == "there":
            return {"there.tiny": Case("there.tiny", transformers.Tiny("bert"))}
        check_installed("no_such_library")
        raise AssertionError("a missing library went unseen")

    monkeypatch.setattr(sweeping, "atlas", of)
    monkeypatch.setattr(sweeping, "atlas_families", lambda: ("missing", "there"))


@pytest.mark.usefixtures("installed")
def test_names_are_unique_and_begin_with_their_family() -> None:
    listed = {module.__name__.rpartition(".")[2]: module.cases() for module in (timm, torchvision, transformers)}
    names = [case.name for cases in listed.values() for case in cases]
    assert len(set(names)) == len(names)
    assert [case.name for family, cases in listed.items() for case in cases if not case.name.startswith(f"{family}.")] == []
    assert [case.name for family, cases in listed.items() for case in cases if case.family != family] == []
    assert len(listed["transformers"]) > 400


def test_listing_imports_no_library() -> None:
    done = subprocess.run([sys.executable, "-c", LISTED], cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr


@pytest.mark.parametrize("kind", ["bert", "t5", "vit"])
def test_a_type_of_transformers_is_built_and_exported(kind: str) -> None:
    case = next(case for case in transformers.cases() if case.name == f"transformers.{kind}")
    built = case.build()
    assert case.moves
    assert built.dynamic_shapes
    program = to_onnx(built.module, (), kwargs=dict(built.samples[0].kwargs), dynamic_shapes=built.dynamic_shapes)
    assert verify(program, built.module, built.samples).outcome == "ok"


def test_a_type_that_cannot_be_built_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("content.atlas.configured.LARGEST", 10)
    with pytest.raises(NotBuilt, match=r"bert cannot be built tiny from its configuration: shrunk: NotBuilt: .* parameters"):
        built_tiny("bert")


def test_two_layers_are_of_different_kinds_where_there_are_any() -> None:
    assert two_of(["a", "a", "b"]) == ["a", "b"]
    assert two_of(["a", "a", "a"]) == ["a", "a"]
    assert two_of([]) == []


@pytest.mark.usefixtures("families")
def test_a_missing_library_is_said_and_the_others_are_swept(capsys: pytest.CaptureFixture[str]) -> None:
    assert [case.name for case in sweeping._find_registered_cases("atlas")] == ["there.tiny"]
    said = "no_such_library is not installed: pip install 'exportlab[atlas]'; its models are skipped\n"
    assert capsys.readouterr().err == said


@pytest.mark.usefixtures("families")
def test_a_missing_library_that_was_named_is_refused() -> None:
    with pytest.raises(BadInput, match=MISSING):
        sweeping._find_registered_cases("atlas:missing")


def test_what_the_atlas_does_not_have_is_named() -> None:
    with pytest.raises(KeyError, match="the atlas has no family 'unheard'"):
        atlas("unheard")
    with pytest.raises(BadInput, match="the atlas has no family 'unheard'"):
        sweeping._find_registered_cases("atlas:unheard")
    with pytest.raises(KeyError, match=r"no case 'unheard\.bert'"):
        registered_case("unheard.bert")


def test_what_is_missing_is_named() -> None:
    with pytest.raises(NotInstalled, match=MISSING):
        check_installed("json", "no_such_library")
