"""Find what a model keeps in attributes from call to call, and hand it in and out: a wrapper that leaves the model as it is."""

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
WRAPPER = """class WithState(torch.nn.Module):  # what the model keeps between calls is given and returned
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

state = {first}  # of the next call"""


@dataclass(frozen=True)
class HiddenState:
    """An attribute that a call changes: `readings` of the module itself, or `encoder.readings` of one within; and its value before.

    Attributes:
        outside: whether it is no attribute, but a global of the file.
    """

    path: str
    value: Any
    at: SourceLine | None = None
    outside: bool = False

    @property
    def name(self) -> str:
        """The attribute's own name."""
        return self.path.rpartition(".")[2]

    @property
    def expression(self) -> str:
        """The path as Python reads it: `blocks.0.ready` is `blocks[0].ready`."""
        return re.sub(r"(?:^|\.)(\d+)(?=\.)", r"[\1]", self.path)

    def now(self, module: nn.Module) -> HiddenState:
        """Return the attribute as another module has it."""
        prefix, _, name = self.path.rpartition(".")
        return replace(self, value=getattr(module.get_submodule(prefix), name))


def held_by(module: nn.Module, sample: Sample) -> list[HiddenState]:
    """Return the attributes, buffers excepted, that are others after a call than before it, with the line that changes each."""
    copied = fresh(module)
    before = {path: copy.deepcopy(value) for path, value in _attributes(copied)}
    run_calls(copied, (sample,))
    after = dict(_attributes(copied))
    changed = [path for path, value in before.items() if not same(value, after.get(path))]
    return [HiddenState(path, before[path], _written_at(module, path)) for path in changed] + _globals_changed(module, sample)


def _globals_changed(module: nn.Module, sample: Sample) -> list[HiddenState]:
    """The globals of the model's files that another call changes, with the line that does it."""
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
    """Where a function gives a global another value."""
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
    """The first line outside of `__init__` that gives the attribute another value or calls what changes it."""
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
    """Return a module to paste that takes the state as its last argument and returns it beside the result; empty where it cannot be one."""
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
    """The argument as the model keeps it."""
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
    """What the model keeps, as tensors that are none of the arguments."""
    if isinstance(value, list | tuple | deque):
        return f"[kept.clone() for kept in {name}]"
    return f"{{key: kept.clone() for key, kept in {name}.items()}}" if isinstance(value, dict) else f"{name}.clone()"


def _first(value: Any, name: str) -> str:
    return (
        f"torch.tensor({name})" if isinstance(value, int | float) else _render_result(value, name)
    )  # copies: the same tensor may stand twice
