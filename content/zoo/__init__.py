"""What is exported: every scenario, one file per family."""

from __future__ import annotations

from importlib import import_module

from exportlab.cases import Case
from exportlab.checks import must_be

FAMILIES = (
    "basics",
    "signatures",
    "outputs",
    "names",
    "weights",
    "branches",
    "conds",
    "loops",
    "vmaps",
    "shapes",
    "lengths",
    "indexing",
    "inplace",
    "state",
    "dtypes",
    "quantized",
    "norms",
    "recurrent",
    "attention",
    "convolutions",
    "spectral",
    "custom_ops",
    "submodules",
    "vision",
    "encoders",
    "decoders",
    "seq2seq",
    "caches",
    "images",
    "audio",
    "modalities",
)

__all__ = ["FAMILIES", "cases", "get"]


def cases(family: str | None = None, topic: str | None = None) -> list[Case]:
    """The cases of one family or all, about one topic or all, in the order of the files.

    Raises:
        ValueError: there is no such family.
    """
    if family is not None and family not in FAMILIES:
        raise ValueError(f"no family {family!r}: there are {', '.join(FAMILIES)}")
    chosen = (family,) if family else FAMILIES
    found = [value for name in chosen for value in vars(import_module(f".{name}", __name__)).values() if isinstance(value, Case)]
    return [c for c in found if topic is None or topic in c.topics]


def get(name: str) -> Case:
    """The case of this name.

    Raises:
        KeyError: there is none. TypeError: it is no name.
    """
    must_be(str, name=name)
    for found in cases():
        if found.name == name:
            return found
    raise KeyError(f"no case {name!r}: content.zoo.cases() lists them")
