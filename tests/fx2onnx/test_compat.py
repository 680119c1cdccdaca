"""What `to_onnx` does with a torch that is too old or too new, and with operators that the installed torch lacks."""

from __future__ import annotations

import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from fx2onnx import to_onnx, versions
from fx2onnx.compat.operators import Operators
from fx2onnx.errors import UnsupportedTorch
from fx2onnx.ops import own_translations, pair_translations
from fx2onnx.translate.registry import table_of, translates
from fx2onnx.versions import check_torch

GONE = {"aten.cholesky.default": "2.14"}  # operators that have a translation, and the torch that removed them


@pytest.mark.parametrize("installed", ["1.13.1", "2.9.1+cpu", "2.2.0a0+git123"])
def test_an_old_torch_is_refused_with_what_to_install(installed: str) -> None:
    with pytest.raises(UnsupportedTorch, match=rf"torch {installed.split('+')[0]}.* supports torch 2\.10 to 2\.\d+: .*'torch>=2\.10'"):
        check_torch(installed)


@pytest.mark.parametrize("installed", ["2.10.0", "2.13.0+cpu", "2.14.1+cu130", torch.__version__, "of my own"])
def test_a_supported_torch_is_taken_silently(installed: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_torch(installed)


def test_a_newer_torch_is_warned_of_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "_WARNED", set())
    with pytest.warns(UserWarning, match=r"tested with torch 2\.10 to 2\.\d+, but torch 3\.0\.0\.dev1 is installed"):
        check_torch("3.0.0.dev1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_torch("3.0.0.dev1")


def test_an_export_checks_the_version_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "OLDEST", (99, 0))
    with pytest.raises(UnsupportedTorch):
        to_onnx(nn.Identity(), (torch.ones(2),))


def test_a_missing_operator_or_overload_is_its_name() -> None:
    aten = Operators(SimpleNamespace(add=torch.ops.aten.add), "aten")
    assert aten.add.Tensor is torch.ops.aten.add.Tensor
    assert aten.add.removed == "aten.add.removed"
    assert aten.removed.default == "aten.removed.default"
    assert not hasattr(aten, "__translates__")


def test_a_translation_of_a_missing_operator_stops_no_other() -> None:
    aten = Operators(SimpleNamespace(add=torch.ops.aten.add), "aten")
    function = translates(aten.removed.default, aten.add.Tensor)(lambda g, x: x)
    table = table_of([SimpleNamespace(aten=aten, function=function)])
    assert table[torch.ops.aten.add.Tensor] is function


def test_only_operators_that_torch_removed_are_missing() -> None:
    names = {name for table in (own_translations(), pair_translations()) for name in table if str(name).startswith("aten.")}
    missing = {name for name in names if isinstance(name, str)}
    version = tuple(map(int, torch.__version__.split(".")[:2]))
    assert missing == {name for name, since in GONE.items() if version >= tuple(map(int, since.split(".")))}


@pytest.mark.parametrize("page", ["versions", "converter"])
def test_pages_name_the_supported_releases(page: str) -> None:
    text = (Path(__file__).parents[2] / f"docs/{page}.md").read_text(encoding="utf-8")
    assert versions.SUPPORTED.removeprefix("torch ") in text
