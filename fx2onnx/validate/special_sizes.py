"""Check whether a program is correct at size 1, where its model makes other calls, with mutated values and flipped masks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import sympy
import torch
from torch import nn

from ..compat import trees as pytree
from ..compat.fake_tensors import FakeTensor
from ..ir.captured_program import RunProgram
from ..trace.compute_budget import BUDGET, ComputeBudget
from ..trace.events import Arguments
from ..trace.path_decisions import BRANCH
from ..trace.refusal import TraceUnsupported
from ..trace.size_domain import SizeAssignment, SizeDomain
from .replay import REFUSED, Replay, agrees, inputs_of
from .same_calls import same_calls

RUNS = (1, 2)  # each has other values
NOISE = 0.1  # the share of noise in a mutated float


def is_special(setting: SizeAssignment) -> bool:
    """Return whether a size is 1, for which torch and libraries skip calls."""
    return 1 in setting.values()


def settings_with_one(test: sympy.Basic, axes: SizeDomain) -> list[SizeAssignment]:
    """Return the settings at which to check a test that fails only for size 1 of one axis; empty for other tests."""
    symbol, *others = test.free_symbols
    apart = replace(axes, conditions=(*axes.conditions, sympy.Not(test)))
    if others or symbol not in axes.example or apart.candidates(symbol) != [1] or not apart.is_one(symbol):
        return []
    tried = (axes.clamp({**sizes, symbol: 1}) for sizes in (axes.longer(), dict.fromkeys(axes.example, 1)))
    return list({tuple(setting.items()): setting for setting in tried if setting[symbol] == 1}.values())


def is_right_at(model: nn.Module, program: RunProgram, axes: SizeDomain, arguments: Arguments, setting: SizeAssignment) -> bool:
    """Return whether a program returns the same as its model at these sizes, for all mutated values and masks.

    In runs without values, it has to make the same calls instead. False if values decide a path or an input is written.
    """
    if program.changed_inputs or program.graph.find_nodes(op="call_function", target=BRANCH):
        return False
    work = BUDGET.get()
    if work is not None and not work.has_values:
        return all(_makes_the_same_calls(work, model, program, mutant, setting) for mutant in _mutants(axes, arguments, setting, RUNS[:1]))
    verdicts = [agrees(program, model, mutant, setting) for mutant in _mutants(axes, arguments, setting, RUNS)]
    return True in verdicts and False not in verdicts


def _makes_the_same_calls(work: ComputeBudget, model: nn.Module, program: RunProgram, given: Arguments, setting: SizeAssignment) -> bool:
    """Return whether a program makes the calls of its model in runs without values; False if either raises."""

    def replayed(*args: Any, **kwargs: Any) -> Any:
        return Replay(program.graph_module, setting).run(*inputs_of(program, (args, kwargs)))

    own = pytree.tree_map_only(torch.Tensor, torch.Tensor.clone, given)
    try:
        return same_calls(work, model, replayed, given, own)
    except (TraceUnsupported, *REFUSED):
        return False


def _mutants(axes: SizeDomain, arguments: Arguments, setting: SizeAssignment, runs: Sequence[int]) -> Iterator[Arguments]:
    """Yield arguments of these sizes with other values, and with one mask flipped at a time."""
    for run in runs:
        yield pytree.tree_map_only(torch.Tensor, _add_noise, axes.at(arguments, setting, run))
    leaves, spec = pytree.tree_flatten(axes.at(arguments, setting, runs[0]))
    for number, leaf in enumerate(leaves):
        if isinstance(leaf, torch.Tensor) and _may_be_a_mask(leaf):
            yield pytree.tree_unflatten([*leaves[:number], _flip_last(leaf), *leaves[number + 1 :]], spec)


def _add_noise(given: torch.Tensor) -> torch.Tensor:
    if not given.is_floating_point() or not given.numel() or isinstance(given, FakeTensor):
        return given
    noise = torch.randn(given.shape, generator=torch.Generator().manual_seed(given.dim()), dtype=torch.float32).to(given)
    return given * (1 - NOISE) + noise * NOISE


def _may_be_a_mask(given: torch.Tensor) -> bool:
    if isinstance(given, FakeTensor) or not given.dim() or not given.numel():
        return False
    return bool(((given == 0) | (given == 1)).all())


def _flip_last(mask: torch.Tensor) -> torch.Tensor:
    """Return a mask with the last position of each row flipped."""
    flipped = mask.clone()
    flipped[..., -1] = 1 - flipped[..., -1].to(torch.int64)
    return flipped
