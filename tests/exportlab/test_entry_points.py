"""What other packages register: it is found, and what cannot be used is named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from exportlab import errors
from exportlab.cases import registered, registered_case
from exportlab.entry_points import BrokenEntryPoint, collect_by_name
from exportlab.errors import KnownError

MODULE = """
from torch import nn
from exportlab import case, tensor
from exportlab.errors import KnownError

@case(dims={"batch": (2, 3)}, topics=("theirs",))
def case_of_a_third_party():
    return nn.Linear(2, 2), (tensor("batch", 2),)

ERROR = KnownError("capture", "TheirError", case_of_a_third_party.factory, ())

def cases(): return [case_of_a_third_party]
def twice(): return [*cases(), *cases()]
def known_errors(): return [ERROR]
def numbers(): return [1]
def failing(): raise RuntimeError("the moon")
"""


class Package:
    """A package as an installation leaves it: a module, and a folder of metadata beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "third_party.py").write_text(MODULE, encoding="utf-8")
        (folder / "third_party-1.0.dist-info").mkdir()
        (folder / "third_party-1.0.dist-info/METADATA").write_text(
            "Metadata-Version: 2.1\nName: third-party\nVersion: 1.0\n", encoding="utf-8"
        )

    def registers(self, group: str, value: str) -> None:
        (self.folder / "third_party-1.0.dist-info/entry_points.txt").write_text(f"[{group}]\nthird = {value}\n", encoding="utf-8")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Package]:
    monkeypatch.syspath_prepend(tmp_path)
    forget()
    yield Package(tmp_path)
    forget()


def forget() -> None:
    registered.cache_clear()
    errors.load_known_errors.cache_clear()


def test_cases_of_a_third_party_are_found_beside_those_of_the_zoo(package: Package) -> None:
    package.registers("exportlab.cases", "third_party:cases")
    assert registered_case("case_of_a_third_party").topics == ("theirs",)
    assert next(iter(registered())) == "case_of_a_third_party"  # by the names of the entry points: third, zoo
    assert "mlp" in registered()
    with pytest.raises(KeyError, match="no case 'unheard'"):
        registered_case("unheard")


def test_known_errors_of_a_third_party_are_recognised(package: Package) -> None:
    package.registers("exportlab.known_errors", "third_party:known_errors")
    assert [error.message for error in errors.recognise("TheirError: it is theirs")] == ["TheirError"]
    assert len(errors.load_known_errors()) > 100


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("third_party:twice", "lists 'case_of_a_third_party', a name that is already registered"),
        ("third_party:numbers", "lists a int; each item must be a Case"),
        ("third_party:failing", "is not a function that returns a list: RuntimeError: the moon"),
        ("third_party:MODULE", "cannot be loaded: AttributeError"),
        ("fourth_party:cases", "cannot be loaded: ModuleNotFoundError: No module named 'fourth_party'"),
    ],
)
def test_a_broken_entry_point_is_named(package: Package, value: str, why: str) -> None:
    package.registers("exportlab.cases", value)
    with pytest.raises(BrokenEntryPoint, match=f"entry point third = {value} in group exportlab.cases {why}"):
        registered()


def test_a_group_that_nobody_registers_in_is_empty() -> None:
    assert collect_by_name("exportlab.unheard", KnownError) == {}
