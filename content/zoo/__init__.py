"""Define the test cases for exporters, one file per family."""

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
    "algorithms",
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
    """Return the cases of one family or all, with one topic or any, in the order of the files.

    Raises:
        ValueError: the family doesn't exist.
    """
    if family is not None and family not in FAMILIES:
        raise ValueError(f"no family {family!r}: there are {', '.join(FAMILIES)}")
    chosen = (family,) if family else FAMILIES
    found = [value for name in chosen for value in vars(import_module(f".{name}", __name__)).values() if isinstance(value, Case)]
    return [c for c in found if topic is None or topic in c.topics]


def get(name: str) -> Case:
    """Return the case with this name.

    Raises:
        KeyError: the case doesn't exist. TypeError: the name is not a string.
    """
    must_be(str, name=name)
    for found in cases():
        if found.name == name:
            return found
    raise KeyError(f"no case {name!r}: content.zoo.cases() lists them")
