"""Find behaviour of eager that a capture misses, in a child process: other branches, and attributes that change from call to call."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import nn

from fx2onnx.compat import trees as pytree

from ..cases import Sample
from ..eager import fresh, run_calls
from ..exporters import get
from ..exporters.capture import dims_from_names
from ..infer_dynamic_shapes import arguments_of
from ..messages import heard
from ..outcomes import Outcome
from ..verification.comparison import Attempt, run_load_step, run_verify_step
from ..verification.difference import difference_of
from .events import CarriedState, PathSplit, Tell
from .facts import OFFICIAL
from .hidden_state import HiddenState, held_by, same, wrapper
from .lines import SourceLine
from .paths import parting, path_of
from .subject import Subject, format_dynamic_shapes


def watch(patient: Subject, tell: Tell) -> None:
    """Report the lines at which eager diverges from a capture, from a call with another sample and from a second call."""
    with heard():
        for how, at in _partings(patient):
            tell(PathSplit(how, at))


def _partings(patient: Subject) -> Iterator[tuple[str, SourceLine]]:
    module, first = fresh(patient.module), patient.samples[0]
    own = path_of(module, lambda: run_calls(module, (first,)))
    again = path_of(module, lambda: run_calls(module, (first,)))
    others = {f"sample {i}": sample for i, sample in enumerate(patient.samples[1:], 2)}
    paths: dict[str, Callable[[], Any]] = {"capture": lambda: _capture_patient(patient)}
    paths |= {name: partial(run_calls, fresh(patient.module), (sample,)) for name, sample in others.items()}
    if (at := parting(own, again)) is not None:
        yield "second call", at
    for how, call in paths.items():
        with suppress(Exception):
            if (at := parting(own, path_of(patient.module, call))) is not None:
                yield how.partition(" ")[0], at


def _capture_patient(patient: Subject) -> Any:
    first = patient.samples[0]
    shapes = dims_from_names(patient.dynamic_shapes)
    return torch.export.export(fresh(patient.module), first.args, dict(first.kwargs), dynamic_shapes=shapes, strict=False)


EXPORT = """
exportlab.export("{exporter}", {model}, (*args, state), {{}}{shapes}).save("model.onnx")
# each call returns (result, state): pass that state to the next call"""


def carry(patient: Subject, exporters: Sequence[str], tell: Tell) -> None:
    """Report the state that the model keeps in attributes, with verified code that passes it in and out, if there is any."""
    first = patient.samples[0]
    with heard():
        held = held_by(patient.module, first)
        if (once := _set_up(patient, held, exporters)) is not None:
            tell(once)
            return
        patient, before = _warm(patient, held)
        held = [h.now(patient.module) for h in held] if before else held
        code = "" if first.kwargs else before + wrapper(held, [str(name) for name in arguments_of(patient.module, first)])
        right, shapes = _right_with(code, patient, exporters) if code else ((), None)
    if held:
        at = next((h.at for h in held if h.at), None)
        model = "WithState(module)" if patient.train else "WithState(module.eval()).eval()"
        asked = f", dynamic_shapes={format_dynamic_shapes(shapes)}" if shapes else ""
        lines = code + EXPORT.format(exporter=OFFICIAL if OFFICIAL in right else right[0], model=model, shapes=asked) if right else ""
        tell(CarriedState(tuple(h.path for h in held), at, lines, right))


def _set_up(patient: Subject, held: Sequence[HiddenState], exporters: Sequence[str]) -> CarriedState | None:
    """Return the state that only the first call changes, if the model is exported correctly after that call."""
    first = patient.samples[0]
    if not held or first.kwargs or any(h.outside for h in held):
        return None
    warm = _run_first_call(patient)
    after = copy.deepcopy([h.now(warm).value for h in held])
    run_calls(warm, patient.samples)
    if not same(after, [h.now(warm).value for h in held]):
        return None
    warm = _run_first_call(patient)
    right = tuple(name for name in exporters if is_right(name, warm, patient.samples, patient.dynamic_shapes))
    if not right:
        return None
    shapes = f", dynamic_shapes={format_dynamic_shapes(patient.dynamic_shapes)}" if patient.dynamic_shapes else ""
    model = "module" if patient.train else "module.eval()"
    code = SET_UP.format(exporter=OFFICIAL if OFFICIAL in right else right[0], model=model, shapes=shapes)
    return CarriedState(tuple(h.path for h in held), next((h.at for h in held if h.at), None), code, right, once=True)


def _run_first_call(patient: Subject) -> nn.Module:
    """Return the module after its first call."""
    module = fresh(patient.module)
    with torch.no_grad():
        module(*copy.deepcopy(patient.samples[0].args))
    return module


SET_UP = """with torch.no_grad():
    module(*args)  # use your data: the first call initialises the model
exportlab.export("{exporter}", {model}, args, kwargs{shapes}).save("model.onnx")"""
WARM = """with torch.no_grad():
    module(*args)  # the first call has no state yet; the exported model computes the later calls

"""


def _warm(patient: Subject, held: Sequence[HiddenState]) -> tuple[Subject, str]:
    """If the state exists only after the first call, return the model after that call, and the lines that make it."""
    if not any(h.value is None for h in held) or any(h.outside for h in held):
        return patient, ""
    return replace(patient, module=_run_first_call(patient)), WARM


def _right_with(code: str, patient: Subject, exporters: Sequence[str]) -> tuple[tuple[str, ...], Any]:
    """Return the exporters that are correct with the suggested code, called with the state that eager has before each sample."""
    names: dict[str, Any] = {"torch": torch, "module": fresh(patient.module)}
    exec(code.removeprefix(WARM), names)
    make, state = names["WithState"], names["state"]
    samples, shapes = [], _add_state_shapes(patient.dynamic_shapes, state)
    try:
        for sample in _mirror_samples(patient):
            samples.append(Sample((*sample.args, state)))
            state = run_calls(make(fresh(patient.module)), samples[-1:])[1]
        same = _is_as_before(patient, [run_calls(make(fresh(patient.module)), (sample,))[0] for sample in samples])
    except Exception:  # noqa: BLE001 - this model can't be wrapped
        return (), None
    wrapped = make(fresh(patient.module))
    return tuple(name for name in exporters if same and is_right(name, wrapped, samples, shapes)), shapes


def _mirror_samples(patient: Subject) -> list[Sample]:
    """Return all samples in order and then reversed, so that the state after each one affects another."""
    return [*patient.samples, *reversed(patient.samples)]


def _is_as_before(patient: Subject, results: Sequence[Any]) -> bool:
    """Return whether the results equal those of one model that is called with all samples in turn."""
    module = fresh(patient.module)
    wanted = [run_calls(module, (sample,)) for sample in _mirror_samples(patient)]
    return not any(difference_of(mine, its).problem for mine, its in zip(results, wanted, strict=True))


def _add_state_shapes(shapes: Any, state: Any) -> Any:
    """Return the dynamic shapes with a static state added."""
    fixed: Any = pytree.tree_map(lambda leaf: {}, state)
    if isinstance(shapes, dict):
        return {**shapes, "state": fixed}
    return (*shapes, fixed) if shapes else None


def is_right(name: str, wrapped: nn.Module, samples: Sequence[Sample], shapes: Any) -> bool:
    """Return whether an exporter is correct on these samples. The first one is used for the export."""
    with suppress(Exception):
        artifact = get(name).export(fresh(wrapped), samples[0].args, dict(samples[0].kwargs), dynamic_shapes=shapes)
        return run_verify_step(run_load_step(Attempt(name, Outcome.OK, artifact)), wrapped, samples).outcome is Outcome.OK
    return False
