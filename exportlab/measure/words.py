"""Format findings: display names and ratios in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..exporters.display_names import spoken
from .timing import Ratio, rounded

__all__ = ["listed", "spoken", "takes"]


def listed(words: Iterable[str]) -> str:
    """Join words as `a, b and c`."""
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


def takes(ratios: Mapping[str, Ratio], base: str) -> str:
    """Describe ratios to a base in words: `a takes 6.3 times as long as c, d 0.55 times; for b no difference was seen`."""
    far = {spoken(name): f"{rounded(ratio.median)} times" for name, ratio in ratios.items() if ratio.differs}
    near = [spoken(name) for name, ratio in ratios.items() if not ratio.differs]
    if not far:
        return f"no difference from {base} was seen for {listed(near)}"
    (first, longest), *others = far.items()
    told = ", ".join([f"{first} takes {longest} as long as {base}", *(f"{name} {times}" for name, times in others)])
    return f"{told}; for {listed(near)} no difference was seen" if near else told
