"""Every model type of transformers, tiny: its configuration shrunk, its inputs found by trying what its `forward` names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..cases import Case, Declaration
from ..samples import Sample
from ..torchvisions import import_torchvision
from .library import check_installed

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


def cases() -> list[Case]:
    """Return a case for each type that `AutoModel` knows.

    Raises:
        NotInstalled: transformers is not there.
    """
    check_installed("transformers")
    from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

    return [Case(f"transformers.{kind}", Tiny(kind), topics=("transformers",), samples_move=True) for kind in sorted(MODEL_MAPPING_NAMES)]
