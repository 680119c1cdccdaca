"""Find state that a model keeps in attributes between calls, and write a wrapper module that passes it in and out."""

from __future__ import annotations

import ast
import copy
import inspect
import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from ..cases import Sample
from ..eager import fresh, run_calls
from .lines import SourceLine, is_own, source_line
from .rewrite import source_at

KINDS = (int, float, type(None), torch.Tensor, list, tuple, dict, deque, set)
CHANGING = ("append", "appendleft", "extend", "insert", "pop", "popleft", "add", "update", "clear", "remove", "setdefault", "rotate")
WRAPPER = """class WithState(torch.nn.Module):  # state is an argument and a return value
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, {given}):
        before = {reads}
        {writes} = {taken}
        result = self.model({arguments})
        after = {returned}
        {writes} = before
        return result, after

state = {first}  # for the next call"""


@dataclass(frozen=True)
class HiddenState:
    """An attribute that a call changes, such as `readings` of the module or `encoder.readings` of a submodule, and its previous value.

    Attributes:
        outside: whether it is a global variable of the file instead of an attribute.
    """

    path: str
    value: Any
    at: SourceLine | None = None
    outside: bool = False

    @property
    def name(self) -> str:
        """The name of the attribute, without the path."""
        return self.path.rpartition(".")[2]

    @property
    def expression(self) -> str:
        """The path as a Python expression: `blocks.0.ready` is `blocks[0].ready`."""
        return re.sub(r"(?:^|\.)(\d+)(?=\.)", r"[\1]", self.path)

    def now(self, module: nn.Module) -> HiddenState:
        """Return the attribute with its value in another module."""
        prefix, _, name = self.path.rpartition(".")
        return replace(self, value=getattr(module.get_submodule(prefix), name))


def held_by(module: nn.Module, sample: Sample) -> list[HiddenState]:
    """Return the attributes that a call changes, except buffers, with the line that changes each."""
    copied = fresh(module)
    before = {path: copy.deepcopy(value) for path, value in _attributes(copied)}
    run_calls(copied, (sample,))
    after = dict(_attributes(copied))
    changed = [path for path, value in before.items() if not same(value, after.get(path))]
    return [HiddenState(path, before[path], _written_at(module, path)) for path in changed] + _globals_changed(module, sample)


def _globals_changed(module: nn.Module, sample: Sample) -> list[HiddenState]:
    """Return the global variables of the model's files that a call changes, with the line that changes each."""
    spaces = {id(names): names for part in module.modules() if (names := _globals_of(type(part))) is not None}
    before = {key: {name: copy.deepcopy(value) for name, value in _kept(names)} for key, names in spaces.items()}
    run_calls(fresh(module), (sample,))
    return [
        HiddenState(name, value, _assigned_in(str(spaces[key].get("__file__", "")), name), outside=True)
        for key, kept in before.items()
        for name, value in kept.items()
        if not same(value, spaces[key].get(name))
    ]


def _globals_of(kind: type[nn.Module]) -> dict[str, Any] | None:
    names = getattr(inspect.unwrap(kind.forward), "__globals__", None)
    return names if names is not None and is_own(str(names.get("__file__", ""))) else None


def _kept(names: dict[str, Any]) -> list[tuple[str, Any]]:
    return [(n, v) for n, v in list(names.items()) if not n.startswith("_") and isinstance(v, KINDS)]


def _assigned_in(file: str, name: str) -> SourceLine | None:
    """Return the first line at which a function assigns to a global variable."""
    source = source_at(file, 1)
    functions = [n for n in ast.walk(source.tree) if isinstance(n, ast.FunctionDef)] if source else []
    lines = [line for function in functions for line in _stores(function, name)]
    return source_line(file, lines[0]) if lines else None


def _stores(function: ast.FunctionDef, name: str) -> list[int]:
    parts = [p for p in ast.walk(function) if isinstance(p, ast.Name) and p.id == name and isinstance(p.ctx, ast.Store)]
    return [part.lineno for part in parts]


def _attributes(module: nn.Module) -> Iterator[tuple[str, Any]]:
    for prefix, owner in module.named_modules():
        for name, value in vars(owner).items():
            if not name.startswith("_") and isinstance(value, KINDS):
                yield f"{prefix}.{name}".lstrip("."), value


def same(one: Any, other: Any) -> bool:
    """Return whether two values of attributes are the same, tensor by tensor."""
    if isinstance(one, torch.Tensor):
        return isinstance(other, torch.Tensor) and one.shape == other.shape and bool(torch.equal(one, other))
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple | deque):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and bool(one == other)


def _written_at(module: nn.Module, path: str) -> SourceLine | None:
    """Return the first line outside `__init__` that assigns to the attribute or calls a method that modifies it."""
    prefix, _, name = path.rpartition(".")
    for kind in type(module.get_submodule(prefix)).__mro__:
        if kind in (nn.Module, object) or not hasattr(kind, "forward"):
            continue
        file = inspect.getsourcefile(kind) or ""
        source = source_at(file, 1)
        bodies = [n for n in ast.walk(source.tree) if isinstance(n, ast.ClassDef) and n.name == kind.__name__] if source else []
        methods = sorted((m for b in bodies for m in b.body if isinstance(m, ast.FunctionDef)), key=lambda m: m.name != "forward")
        lines = [line for m in methods if not m.name.startswith(("__init__", "reset", "clear")) for line in _writes(m, name)]
        if lines:
            return source_line(file, lines[0])
    return None


def _writes(method: ast.FunctionDef, name: str) -> list[int]:
    def is_it(node: ast.AST) -> bool:
        return isinstance(node, ast.Attribute) and node.attr == name

    lines = []
    for node in ast.walk(method):
        stored = is_it(node) and isinstance(getattr(node, "ctx", None), ast.Store)
        item = isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and is_it(node.value)
        called = (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGING and is_it(node.func.value)
        )
        if stored or item or called:
            lines.append(int(getattr(node, "lineno", 0)))
    return sorted(lines)


def wrapper(held: Sequence[HiddenState], arguments: Sequence[str]) -> str:
    """Return code for a wrapper module that accepts the state as its last argument and also returns it; empty if that's not possible."""
    if not held or any(h.outside for h in held) or not all(_can_be_given(h.value) for h in held):
        return ""
    names = [f"self.model.{h.expression}" for h in held]
    return WRAPPER.format(
        given=", ".join([*arguments, "state"]),
        arguments=", ".join(arguments),
        reads=_tuple(names),
        writes=", ".join(names) + "," * (len(names) == 1),
        taken=_tuple([_render_argument(h.value, i) for i, h in enumerate(held)]),
        returned=f"[{', '.join(_render_result(h.value, name) for h, name in zip(held, names, strict=True))}]",
        first=f"[{', '.join(_first(h.value, f'module.{h.expression}') for h in held)}]",
    )


def _tuple(parts: Sequence[str]) -> str:
    return f"({', '.join(parts)}{',' * (len(parts) == 1)})"


def _can_be_given(value: Any) -> bool:
    if isinstance(value, list | tuple | deque):
        return bool(value) and all(isinstance(v, torch.Tensor) for v in value)
    if isinstance(value, dict):
        return bool(value) and all(isinstance(v, torch.Tensor) for v in value.values())
    return isinstance(value, int | float | torch.Tensor)


def _render_argument(value: Any, index: int) -> str:
    """Return an expression that converts the argument to the type of the attribute."""
    if isinstance(value, deque):
        return f"type(before[{index}])(state[{index}], before[{index}].maxlen)"
    return (
        f"dict(state[{index}])"
        if isinstance(value, dict)
        else f"list(state[{index}])"
        if isinstance(value, list)
        else f"state[{index}].clone()"
    )


def _render_result(value: Any, name: str) -> str:
    """Return an expression that copies the attribute to new tensors."""
    if isinstance(value, list | tuple | deque):
        return f"[kept.clone() for kept in {name}]"
    return f"{{key: kept.clone() for key, kept in {name}.items()}}" if isinstance(value, dict) else f"{name}.clone()"


def _first(value: Any, name: str) -> str:
    return (
        f"torch.tensor({name})" if isinstance(value, int | float) else _render_result(value, name)
    )  # copies, because two attributes may share a tensor
