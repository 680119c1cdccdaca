"""Model types of transformers, tiny: its configuration shrunk, its inputs found by trying what its `forward` names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exportlab.cases import Case, Declaration
from exportlab.samples import Sample
from exportlab.torchvisions import import_torchvision

from .library import check_installed

# Those that can be built so with transformers 5.23; fixed, so that two versions are asked the same.
TYPES = Path(__file__).with_suffix(".txt")
SIZES = ((2, 7), (3, 10), (1, 5))  # batch and sequence; the first is that of the export


@dataclass(frozen=True)
class Tiny:
    """Whether this type exports: its base model, tiny, with random weights."""

    kind: str

    def __call__(self) -> Declaration:
        """Return the model, and a sample for each size."""
        import torch

        from ..zoo.tiny import weighted
        from .configured import built_tiny
        from .inputs import form_that_runs

        import_torchvision()
        model = weighted(built_tiny(self.kind))
        with torch.no_grad():
            form = form_that_runs(model, self.kind, *SIZES[0])
        samples: list[Any] = [Sample((), form.inputs(batch, seq)) for batch, seq in SIZES]
        return model, samples


def types() -> list[str]:
    """Return the names of the types."""
    return TYPES.read_text(encoding="utf-8").split()


def cases() -> list[Case]:
    """Return a case for each type.

    Raises:
        NotInstalled: transformers is not there.
    """
    check_installed("transformers")
    return [Case(f"transformers.{kind}", Tiny(kind), topics=("transformers",), samples_move=True) for kind in types()]
