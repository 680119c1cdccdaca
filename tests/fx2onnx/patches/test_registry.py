"""Every patch is in the registry, is entered by some capture, and is undone after it, also where it fails."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any

import onnxscript
import pytest
import torch
from modules import Of
from onnxscript import opset18 as op18
from torch import Tensor, nn

import fx2onnx
from fx2onnx import ToOnnxError, to_onnx
from fx2onnx.compat.operators import COMPILES_AND_CALLS
from fx2onnx.errors import UnsupportedTorch
from fx2onnx.patches import registry
from fx2onnx.patches.registry import Patch, apply_patches, find_object, list_patches, register_context, register_patch, table
from fx2onnx.paths.explore import capture_by_running

FOLDER = Path(fx2onnx.__file__).parent
HAS_FUNCTIONS_CALLED = find_object(f"torch._higher_order_ops.utils.{COMPILES_AND_CALLS}") is not None
OF_OTHER_VERSIONS = {"functions_compiled" if HAS_FUNCTIONS_CALLED else "functions_called"}


class Layers(nn.Module):
    """Calls the layer at a number of its input."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(2))

    def forward(self, x: Tensor, number: Tensor) -> Tensor:
        return self.layers[int(number)](x)  # type: ignore[no-any-return]


def rolled(x: Tensor) -> Tensor:
    total = torch.zeros(3)
    for i in range(x.shape[0]):
        total = total + x[i]
    return total


def causal(x: Tensor) -> Tensor:
    return nn.functional.scaled_dot_product_attention(x, x, x, is_causal=x.shape[0] != 3)


def answered(x: Tensor) -> Tensor:
    places = (x[:, 0] > 0).nonzero()[:, 0]
    return x[places] * 2 if places.shape[0] > 2 else x.cos()


def windows(x: Tensor) -> Tensor:
    return x[: x.shape[0] // 2 * 2].contiguous().view(-1, 2, 3)


@onnxscript.script(default_opset=op18)
def scripted(x):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Relu by onnxscript."""
    return op18.Max(x, op18.Constant(value_float=0.0))


ROWS = (torch.ones(4, 3),)
MOVING: Mapping[str, Any] = {"dynamic_shapes": ({0: "rows"},)}
NUMBERED = (torch.ones(4, 3), torch.tensor(1))
CAPTURES: dict[str, tuple[Callable[[], nn.Module], tuple[Any, ...], Mapping[str, Any]]] = {
    "a run at dynamic sizes": (lambda: Of(torch.relu), ROWS, MOVING),
    "torch.export": (lambda: Of(torch.relu), ROWS, {"capture": "torch.export", **MOVING}),
    "a layer at a number": (Layers, NUMBERED, {}),
    "int() of a size": (lambda: Of(lambda x: x * int(x.shape[0] / 2)), ROWS, MOVING),
    "a loop": (lambda: Of(rolled), ROWS, MOVING),
    "a comparison of sizes for torch": (lambda: Of(causal), ROWS, MOVING),
    "windows": (lambda: Of(windows), ROWS, MOVING),
    "answers": (lambda: Of(answered), ROWS, MOVING),
    "an onnxscript function": (lambda: Of(torch.relu), ROWS, {"custom_translation_table": {torch.ops.aten.relu.default: scripted}}),
}
FAILURES: dict[str, Mapping[str, Any]] = {"a run": {"capture": "run"}, "torch.export": {"capture": "torch.export"}, "both": {}}


def states() -> dict[str, Any]:
    """What all targets are at this moment, and the modes of torch."""
    found = {patch.target: patch.current() for patch in list_patches() if not patch.is_context}
    return {**found, "modes": torch._C._len_torch_function_stack()}


@pytest.fixture
def entered(monkeypatch: pytest.MonkeyPatch) -> set[Patch]:
    """The patches that are entered during a test."""
    enter, found = registry._enter, set[Patch]()

    def note(stack: ExitStack, patch: Patch, context: Mapping[str, Any]) -> None:
        found.add(patch)
        enter(stack, patch, context)

    monkeypatch.setattr(registry, "_enter", note)
    return found


def test_each_patch_is_entered_by_some_capture_and_undone_after_it(entered: set[Patch]) -> None:
    pytest.importorskip("transformers")
    import transformers.exporters  # noqa: F401 - so that caches are registered
    from torch.nn.attention import flex_attention  # noqa: F401 - so that there is something to patch

    before = states()
    for name, (model, args, options) in CAPTURES.items():
        to_onnx(model().eval(), args, **options)
        after = states()
        assert [target for target in before if after[target] is not before[target]] == [], name
    assert {
        (patch.owner, patch.target) for patch in list_patches() if patch not in entered and patch.owner not in OF_OTHER_VERSIONS
    } == set()


class Fails(nn.Module):
    """Raises in the midst of a capture, where most patches are entered."""

    def forward(self, x: Tensor) -> Tensor:
        raise KeyError(len(x.relu()))


@pytest.mark.parametrize("options", FAILURES.values(), ids=list(FAILURES))
def test_all_is_undone_after_a_capture_that_fails(options: Mapping[str, Any], entered: set[Patch]) -> None:
    before = states()
    with pytest.raises(ToOnnxError):
        to_onnx(Fails(), ROWS, **MOVING, **options)
    assert entered
    assert [target for target, own in states().items() if own is not before[target]] == []


class Nested(nn.Module):
    """Captures another module while it is captured."""

    def forward(self, x: Tensor) -> Tensor:
        capture_by_running(Of(torch.sin), (torch.ones(2),), {})
        return x.relu()


def test_a_capture_within_a_capture_leaves_all_as_it_was() -> None:
    before = states()
    with pytest.raises(ToOnnxError):
        to_onnx(Nested(), ROWS, capture="run")
    assert states() == before


@pytest.fixture
def own_registry(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """An empty registry, and a module to patch."""
    monkeypatch.setattr(registry, "_PATCHES", {})
    made = ModuleType("patched_by_tests")
    monkeypatch.setitem(sys.modules, made.__name__, made)
    made.__dict__.update(one=1, two=2, Base=type("Base", (), {"called": lambda self: "base"}), function=lambda: 1)
    made.__dict__["Derived"] = type("Derived", (made.Base,), {"made": staticmethod(lambda: 1)})
    return made


def test_patches_are_entered_in_order_and_undone_in_reverse(own_registry: ModuleType) -> None:
    for add in (10, 100):
        register_patch("adding", "patched_by_tests.one", reason="a test")(lambda original, add=add: original + add)
    with apply_patches("adding"):
        assert own_registry.one == 111
        with apply_patches("adding"):
            assert own_registry.one == 221
        assert own_registry.one == 111
    assert own_registry.one == 1


def test_what_a_class_inherits_or_describes_is_as_before(own_registry: ModuleType) -> None:
    register_patch("kinds", "patched_by_tests.Derived.called", "patched_by_tests.Derived.made", reason="a test")(lambda original: None)
    register_patch("kinds", "patched_by_tests.absent", creates=True, reason="a test")(lambda original: 3)
    before = dict(vars(own_registry.Derived))
    with apply_patches("kinds"):
        assert own_registry.Derived.called is None
        assert own_registry.absent == 3
    assert dict(vars(own_registry.Derived)) == before
    assert not hasattr(own_registry, "absent")


def test_the_code_of_a_function_is_as_before(own_registry: ModuleType) -> None:
    own = own_registry.function.__code__
    register_patch("code", "patched_by_tests.function.__code__", reason="a test")(lambda original: (lambda: 2).__code__)
    with apply_patches("code"):
        assert own_registry.function() == 2
    assert own_registry.function.__code__ is own


def test_a_factory_that_fails_leaves_nothing(own_registry: ModuleType) -> None:
    register_patch("failing", "patched_by_tests.one", reason="a test")(lambda original: 5)
    register_patch("failing", "patched_by_tests.two", reason="a test")(lambda original: 1 // 0)
    with pytest.raises(ZeroDivisionError), apply_patches("failing"):
        pass
    assert (own_registry.one, own_registry.two) == (1, 2)


def test_factories_get_what_they_ask_for(own_registry: ModuleType) -> None:
    asked: list[Any] = []

    @register_context("asking", "something", reason="a test")
    def _(number: int) -> ExitStack:
        asked.append(number)
        return ExitStack()

    register_patch("asking", "patched_by_tests.one", reason="a test")(lambda original, name, holder, number: (name, holder, number))
    with apply_patches("asking", number=7, further=8):
        assert own_registry.one == ("one", own_registry, 7)
    assert asked == [7]


def test_a_missing_target_is_one_clear_error_unless_it_is_optional(own_registry: ModuleType) -> None:
    register_patch("gone", "patched_by_tests.one", reason="a test")(lambda original: 5)
    register_patch("gone", "patched_by_tests.old", "nowhere.at.all", reason="it is slow")(lambda original: 5)
    with pytest.raises(
        UnsupportedTorch, match=r"has no patched_by_tests\.old \(gone: it is slow\); nowhere\.at\.all \(.*Install"
    ) as raised:
        apply_patches("gone").__enter__()
    assert raised.value.__cause__ is None
    assert own_registry.one == 1
    register_patch("may_be_gone", "patched_by_tests.old", "nowhere.at.all", optional=True, reason="a test")(lambda original: 5)
    with apply_patches("may_be_gone"):
        assert not hasattr(own_registry, "old")


def test_the_table_says_of_each_patch_where_it_is_and_why() -> None:
    rows = table().splitlines()
    assert len(rows) == 2 + len(list_patches())
    assert next(row for row in rows if "`builtins.range`" in row).count("|") == 5
    assert all(patch.reason and patch.module.startswith("fx2onnx.") for patch in list_patches())


# What no module but the registry may do: assign to attributes of what is not ours, or patch by other means.
WRITES = {"setattr", "delattr"}


def foreign_names(tree: ast.Module) -> set[str]:
    """The names that a module has by importing from outside this package."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    aliases = [alias for node in nodes if isinstance(node, ast.Import) or not node.level for alias in node.names]
    own = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return ({(alias.asname or alias.name).partition(".")[0] for alias in aliases} | set(dir(builtins))) - own


def root_of(node: ast.AST) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def is_context(node: ast.AST) -> bool:
    decorators = getattr(node, "decorator_list", ())
    return any(isinstance(one, ast.Call) and root_of(one.func) == "register_context" for one in decorators)


def writes_of(tree: ast.Module) -> Iterator[str]:
    """What a module does to attributes of other packages, outside of registered context managers."""
    foreign = foreign_names(tree)
    inside = {id(child) for node in ast.walk(tree) if is_context(node) for child in ast.walk(node)}
    for node in ast.walk(tree):
        if id(node) in inside:
            continue
        if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, (ast.Store, ast.Del)):
            if root_of(node) in foreign or (isinstance(node, ast.Attribute) and node.attr == "__code__"):
                yield ast.unparse(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in WRITES and root_of(node.args[0]) in foreign:
            yield ast.unparse(node)
        elif isinstance(node, ast.ImportFrom) and "mock" in (node.module or ""):
            yield f"from {node.module}"


def test_no_other_module_assigns_to_what_is_not_ours() -> None:
    found = {}
    for path in sorted(FOLDER.rglob("*.py")):
        if writes := [*writes_of(ast.parse(path.read_text(encoding="utf-8")))]:
            found[str(path.relative_to(FOLDER))] = writes
    assert found == {}


@pytest.mark.parametrize(
    "text",
    [
        "import torch\ntorch.nn.Linear.forward = None",
        "from torch import nn\ndel nn.Linear.forward",
        "from torch._ops import OpOverload\nsetattr(OpOverload, 'x', 1)",
        "from unittest.mock import patch",
        "def f(function):\n    function.__code__ = 1",
        "len.x = 1",
    ],
)
def test_such_an_assignment_is_found(text: str) -> None:
    assert len([*writes_of(ast.parse(text))]) == 1
