"""`fx2onnx` without anything but what it says it needs: installed from a wheel, the rest of the environment out of reach."""

from __future__ import annotations

import json
import re
import runpy
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import onnxruntime
import pytest
import torch

import fx2onnx
from fx2onnx import NEWEST_OPSET, OLDEST_OPSET, to_onnx
from fx2onnx.errors import UnsupportedOps
from fx2onnx.ir.kernels import _kernels
from fx2onnx.ops import own_translations
from fx2onnx.translate import torchlib

ROOT = Path(__file__).parents[2]
NOT_NEEDED = ("onnxscript", "onnxruntime", "matplotlib", "igraph", "rich", "typer", "transformers", "pandas", "exportlab")
SCRIPT = '''
"""Exports two models where only some packages can be imported: python script.py FOLDER, the names of the others on stdin."""

import json
import sys


class Without:
    """A finder of modules to which these packages are not installed."""

    def __init__(self, finder, absent):
        self.finder, self.absent = finder, absent

    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in self.absent else self.finder.find_spec(name, path, target)

    def __getattr__(self, name):
        return getattr(self.finder, name)


absent = set(json.load(sys.stdin))
sys.meta_path[:] = [Without(finder, absent) for finder in sys.meta_path]

import onnx
import torch
from torch import nn

import fx2onnx

folder = sys.argv[1]
torch.manual_seed(0)
models = {
    "mlp": (nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)), torch.randn(4, 6), ({0: "batch"},)),
    "encoder": (
        nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 2, enable_nested_tensor=False),
        torch.randn(2, 5, 16), ({0: "batch", 1: "seq"},),
    ),
}
for name, (model, x, shapes) in models.items():
    program = fx2onnx.to_onnx(model.eval(), (x,), dynamic_shapes=shapes)
    program.save(f"{folder}/{name}.onnx")
    onnx.checker.check_model(f"{folder}/{name}.onnx", full_check=True)
    other = torch.cat([x, x.flip(0), x])
    with torch.no_grad():
        torch.save([(x, model(x)), (other, model(other))], f"{folder}/{name}.pt")
print(json.dumps({"modules": sorted(sys.modules), "from": fx2onnx.__file__}))
'''


def installed(folder: Path) -> Path:
    """The wheel of this tree, built and installed into a folder, without the network."""
    source = folder / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, source)
    for package in ("fx2onnx", "exportlab"):
        shutil.copytree(ROOT / package, source / package, ignore=shutil.ignore_patterns("__pycache__"))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    wheel = [*pip, "wheel", "--no-index", "--no-deps", "--no-build-isolation", "-w", str(folder / "wheel"), str(source)]
    subprocess.run(wheel, check=True, capture_output=True, cwd=folder)
    [built] = (folder / "wheel").glob("*.whl")
    target = folder / "site"
    subprocess.run([*pip, "install", "--no-index", "--no-deps", "--target", str(target), str(built)], check=True, capture_output=True)
    return target


def needed(target: Path) -> set[str]:
    """The distributions that the wheel in this folder depends on, with those that they depend on, in small letters."""
    [own] = metadata.distributions(path=[str(target)])
    open_ones, found = _required(own), set()
    while open_ones:
        name = open_ones.pop()
        if name not in found:
            found.add(name)
            open_ones |= _required(metadata.distribution(name))
    return found


def _required(distribution: metadata.Distribution) -> set[str]:
    """The names of what it requires here: nothing that an extra brings, nor what is for other systems and so is not installed."""
    lines = [line for line in distribution.requires or () if "extra ==" not in line]
    names = {re.split(r"[^A-Za-z0-9._-]", line)[0].lower().replace("_", "-") for line in lines}
    return {name for name in names if _is_installed(name)}


def _is_installed(name: str) -> bool:
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[str]]]:
    """The folder with what the script wrote, and what it said."""
    folder = tmp_path_factory.mktemp("alone")
    target = installed(folder)
    kept = needed(target)
    absent = [
        package
        for package, owners in metadata.packages_distributions().items()
        if package != "fx2onnx" and not any(owner.lower().replace("_", "-") in kept for owner in owners)
    ]
    assert {"onnxscript", "onnxruntime", "matplotlib", "rich", "transformers"} <= set(absent)
    (folder / "script.py").write_text(SCRIPT)
    command = [sys.executable, str(folder / "script.py"), str(folder)]
    environment = {"PYTHONPATH": str(target), "OMP_NUM_THREADS": "1", "PATH": ""}
    done = subprocess.run(
        command, input=json.dumps([*absent, "exportlab"]), capture_output=True, text=True, cwd=folder, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert Path(said["from"]).is_relative_to(target)
    return folder, said


@pytest.mark.parametrize("name", ["mlp", "encoder"])
def test_models_without_fallbacks_are_exported_by_the_package_alone(name: str, alone: tuple[Path, dict[str, list[str]]]) -> None:
    session = onnxruntime.InferenceSession(alone[0] / f"{name}.onnx")
    [given] = session.get_inputs()
    for x, expected in torch.load(alone[0] / f"{name}.pt"):
        [found] = session.run(None, {given.name: x.numpy()})
        torch.testing.assert_close(torch.from_numpy(found), expected, rtol=1e-4, atol=1e-5)


def test_the_export_imports_nothing_else(alone: tuple[Path, dict[str, list[str]]]) -> None:
    assert not {module.partition(".")[0] for module in alone[1]["modules"]} & set(NOT_NEEDED)


def test_importing_the_package_imports_no_translation_and_nothing_that_only_some_need() -> None:
    code = "import json, sys, fx2onnx; print(json.dumps(sorted(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    modules = set(json.loads(found))
    assert not {module.partition(".")[0] for module in modules} & set(NOT_NEEDED)
    assert not [module for module in modules if module.startswith("fx2onnx.ops.")]


class Rectified(torch.nn.Module):
    """An operator that torchlib translates as well."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return what is positive."""
        return torch.ops.aten.relu.default(x)


IMAGE = torch.ones(1, 1, 8, 8)


def test_an_operator_that_needs_torchlib_says_so_where_onnxscript_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = {target: made for target, made in own_translations().items() if target is not torch.ops.aten.relu.default}
    monkeypatch.setattr(fx2onnx, "own_translations", lambda: ours)
    torchlib._registry.cache_clear()
    needed = r"aten\.relu\.default: .* needs the package onnxscript, .*: pip install onnxscript"
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "onnxscript", None)
        with pytest.raises(UnsupportedOps, match=needed):
            to_onnx(Rectified(), (IMAGE,))
    assert to_onnx(Rectified(), (IMAGE,)).report.fallbacks == {"aten.relu.default": "torchlib"}


def test_the_callers_function_says_so_too(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.startswith("fx2onnx.translate.onnxscript_functions")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(UnsupportedOps, match=r"aten\.relu\.default: its function in custom_translation_table needs the package onnxscript"):
        to_onnx(Rectified(), (IMAGE,), custom_translation_table={torch.ops.aten.relu.default: lambda x: x})


def test_the_stored_kernels_are_those_of_the_installed_onnxruntime() -> None:
    written = runpy.run_path(str(ROOT / "tools/cpu_kernels.py"))
    stored = written["TABLE"].read_text()
    if stored.split("\n")[0] == written["table"]().split("\n")[0]:
        assert stored == written["table"](), "run python tools/cpu_kernels.py"
        return
    version = re.search(r"onnxruntime (\d+)\.(\d+)", stored)
    assert version is not None
    if tuple(map(int, onnxruntime.__version__.split(".")[:2])) < (int(version[1]), int(version[2])):
        pytest.skip(f"onnxruntime {onnxruntime.__version__} is older than the stored kernels: it may lack some")
    installed = written["kernels"]()
    for op_type, stored_kernels in _kernels().items():
        for opset in range(OLDEST_OPSET, NEWEST_OPSET + 1):
            for first, last, constraints in stored_kernels:
                covering = [own for (name, low, high), own in installed.items() if name == op_type and low <= opset <= high]
                for constraint, types in constraints.items() if first <= opset <= last else ():
                    assert types <= set().union(*(own.get(constraint, set()) for own in covering)), (op_type, opset, constraint)
