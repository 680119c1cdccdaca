"""Read what is to be exported, and what is known of it before anything is tried."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from .. import userfile
from ..cases import Case, Sample
from ..exporters.to_onnx import evaluated, in_training, moves
from ..userfile import BadInput
from ..verification.probe import describe
from .events import Summary
from .lines import SourceLine, source_line
from .samples import Sizes, dynamic_shapes_of, in_between, sizes_of

FORMS = "(module, args), (module, args, kwargs) or (module, [sample, sample, …])"


@dataclass(frozen=True)
class Patient:
    """A module, the samples given, those made of sizes in between, and the axes that move.

    Attributes:
        declared: whether the axes were named by a `@case`, and not found by comparing samples.
        train: whether the module is exported in the mode that it is in. was_training: whether it was in training mode, and is not now.
    """

    module: nn.Module
    samples: tuple[Sample, ...]
    sizes: Sizes
    made: tuple[tuple[str, Sample], ...]
    dynamic_shapes: Any
    declared: bool = False
    train: bool = False
    was_training: bool = False

    @property
    def all(self) -> tuple[Sample, ...]:
        """All samples, those given first."""
        return (*self.samples, *(sample for _, sample in self.made))

    def at(self) -> SourceLine | None:
        """The line where its `forward` begins."""
        forward = inspect.unwrap(type(self.module).forward)
        code = getattr(forward, "__code__", None)
        return source_line(code.co_filename, code.co_firstlineno) if code else None


def patient_of(module: nn.Module, samples: Sequence[Any], dynamic_shapes: Any = None, train: bool = False) -> Patient:
    """Look at the samples. A module in training mode is copied and put into `eval()`, unless `train`.

    Raises:
        TypeError: the module is none, or a sample is none. ValueError: there is no sample.
    """
    if not isinstance(module, nn.Module):
        raise TypeError(f"the module must be a torch.nn.Module, not a {type(module).__name__}")
    given = tuple(Sample.of(_paired(sample)) for sample in samples)
    if not given:
        raise ValueError("at least one sample is needed, and two of different sizes where sizes move")
    sizes = sizes_of(module, given)
    shapes = dynamic_shapes if dynamic_shapes is not None else dynamic_shapes_of(module, given[0], sizes.moving)
    was_training = not train and in_training(module)
    asked = evaluated(module) if was_training else module
    made = tuple(in_between(module, given, sizes.moving))
    return Patient(asked, given, sizes, made, shapes, dynamic_shapes is not None, train, was_training)


def _paired(sample: Any) -> Any:
    """`(args, kwargs)` as a sample; anything else as it is."""
    if isinstance(sample, tuple) and len(sample) == 2 and isinstance(sample[0], tuple) and isinstance(sample[1], dict):
        return Sample(*sample)
    return sample


def loaded(target: str, train: bool = False) -> Patient:
    """Return the patient that `FILE.py:factory` names; the factory is called once. A `@case` says itself whether it is about training.

    Raises:
        BadInput: no such file or name, or the file or the factory raises, or it returns something else.
    """
    path, colon, name = target.rpartition(":")
    if not colon or not path.endswith(".py"):
        raise BadInput(f"{target!r} is not FILE.py:factory, as in mymodel.py:build")
    found = userfile.named_case(path, name)
    if found.dims:
        built = userfile.guarded(found.build, target, Path(path))
        return userfile.guarded(lambda: patient_of(built.module, built.samples, built.dynamic_shapes, found.training), target, Path(path))
    return userfile.guarded(lambda: _of_factory(found, train), target, Path(path))


def _of_factory(case: Case, train: bool) -> Patient:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        made = case.factory()
    if not isinstance(made, tuple) or len(made) not in (2, 3) or not isinstance(made[0], nn.Module):
        raise TypeError(f"{case.name} must return {FORMS}, it returned {_told(made)}")
    module = made[0].train() if case.training else made[0]
    return patient_of(module, _samples(made[1:], case.name), train=train or case.training)


def _samples(given: tuple[Any, ...], name: str) -> list[Any]:
    """The samples in what a factory returns after the module."""
    first, kwargs = given[0], given[1] if len(given) == 2 else {}
    if isinstance(first, list) and len(given) == 1:
        return first
    if not isinstance(first, tuple) or not isinstance(kwargs, dict):
        raise TypeError(f"{name} must return {FORMS}; its args are a {type(first).__name__}, its kwargs a {type(kwargs).__name__}")
    return [Sample(first, kwargs)]


def _told(made: Any) -> str:
    if isinstance(made, tuple):
        return f"a tuple of {', '.join(type(part).__name__ for part in made) or 'nothing'}"
    return f"a {type(made).__name__}"


def without(patient: Patient, valid: Sequence[int]) -> Patient:
    """Return the same with only those of the made samples that the model takes."""
    return replace(patient, made=tuple(patient.made[i] for i in valid))


def summary_of(patient: Patient) -> Summary:
    """Return the patient as plain data."""
    sizes = patient.sizes
    return Summary(
        samples=tuple(map(describe, patient.samples)),
        made=tuple(what for what, _ in patient.made),
        moving=sizes.moving,
        changing=sizes.changing,
        unlike=sizes.unlike,
        twice=sizes.twice,
        dynamic_shapes=_written(patient.dynamic_shapes),
        declared=patient.declared,
        at=patient.at(),
        train=patient.train,
        was_training=patient.was_training,
    )


def _written(shapes: Any) -> str:
    """`dynamic_shapes` as one would write them; a `Dim` by its name."""
    if isinstance(shapes, dict):
        return "{" + ", ".join(f"{key!r}: {_written(value)}" for key, value in shapes.items()) + "}"
    if isinstance(shapes, list):
        return "[" + ", ".join(map(_written, shapes)) + "]"
    if isinstance(shapes, tuple):
        return "(" + ", ".join(map(_written, shapes)) + "," * (len(shapes) == 1) + ")"
    return repr(getattr(shapes, "__name__", shapes)) if moves(shapes) else repr(shapes)
