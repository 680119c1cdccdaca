"""Load the model and its samples, and infer the dynamic dimensions before any export."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from ..exporters.to_onnx import caches_known, is_in_training, moves, set_to_eval
from ..infer_dynamic_shapes import Sizes, arguments_of, dynamic_shapes_of, make_intermediate_samples, sizes_of
from ..samples import Sample, check_module, samples_of
from ..target import target_of
from ..userfile import built, call_user_code, named_case
from ..verification.check_spec import describe
from .events import Summary
from .lines import SourceLine, source_line


@dataclass(frozen=True)
class Subject:
    """A module, its samples, generated samples at sizes in between, and the dynamic dimensions.

    Attributes:
        declared: whether the dynamic dimensions come from a `@case`, instead of a comparison of the samples.
        train: whether the module is exported in its current mode. was_training: whether it was switched from training mode to `eval()`.
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
        """All samples, the user's first."""
        return (*self.samples, *(sample for _, sample in self.made))

    def at(self) -> SourceLine | None:
        """The first line of the module's `forward`."""
        forward = getattr(type(self.module), "forward", None)  # None for a scripted class
        code = getattr(inspect.unwrap(forward), "__code__", None) if forward else None
        return source_line(code.co_filename, code.co_firstlineno) if code else None


def patient_of(module: nn.Module, samples: Sequence[Any], dynamic_shapes: Any = None, train: bool = False) -> Subject:
    """Inspect the module and its samples. Unless `train`, a module in training mode is copied and set to `eval()`.

    Raises:
        TypeError: the module is not a module, or a sample is not a call. ValueError: the samples are empty.
    """
    check_module(module)
    alone = len(samples) == 1 and isinstance(samples[0], list)
    given = tuple(samples_of(samples[0] if alone else list(samples), module))
    with caches_known():
        sizes = sizes_of(module, given)
        shapes = dynamic_shapes if dynamic_shapes is not None else dynamic_shapes_of(module, given[0], sizes.moving)
        made = tuple(make_intermediate_samples(module, given, sizes.moving))
    was_training = not train and is_in_training(module)
    exported = set_to_eval(module) if was_training else module
    return Subject(exported, given, sizes, made, shapes, dynamic_shapes is not None, train, was_training)


def load_patient(target: str, train: bool = False) -> Subject:
    """Load `FILE.py:name`. The function is called once. A `@case` defines its own training mode.

    Raises:
        BadInput: the file or name doesn't exist, the file or function raises an exception, or the function returns something else.
    """
    path, name = target_of(target)
    found = named_case(str(path), name)
    made = built(found, path, found.made)
    module = made.module.train() if found.training else made.module
    shapes = made.dynamic_shapes if found.dims else None
    keep_mode = found.training or train
    return call_user_code(lambda: patient_of(module, made.samples, shapes, keep_mode), target, path)


def without(patient: Subject, valid: Sequence[int]) -> Subject:
    """Return a copy with only those generated samples that the model accepts."""
    return replace(patient, made=tuple(patient.made[i] for i in valid))


def summary_of(patient: Subject) -> Summary:
    """Return a summary of plain data, without the model."""
    sizes = patient.sizes
    return Summary(
        samples=tuple(map(describe, patient.samples)),
        made=tuple(what for what, _ in patient.made),
        moving=sizes.moving,
        changing=sizes.changing,
        unlike=sizes.unlike,
        twice=sizes.twice,
        dynamic_shapes=format_dynamic_shapes(patient.dynamic_shapes),
        declared=patient.declared,
        at=patient.at(),
        train=patient.train,
        was_training=patient.was_training,
        arguments=tuple(map(str, arguments_of(patient.module, patient.samples[0]))),
    )


def format_dynamic_shapes(shapes: Any) -> str:
    """Return `dynamic_shapes` as Python code, with each `Dim` replaced by its name."""
    if isinstance(shapes, dict):
        return "{" + ", ".join(f"{key!r}: {format_dynamic_shapes(value)}" for key, value in shapes.items()) + "}"
    if isinstance(shapes, list):
        return "[" + ", ".join(map(format_dynamic_shapes, shapes)) + "]"
    if isinstance(shapes, tuple):
        return "(" + ", ".join(map(format_dynamic_shapes, shapes)) + "," * (len(shapes) == 1) + ")"
    return repr(getattr(shapes, "__name__", shapes)) if moves(shapes) else repr(shapes)
