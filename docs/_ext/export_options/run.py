"""Test all options and opsets in a separate process, and print the results as JSON."""

from __future__ import annotations

import json
import sys
from typing import Any

from exportlab import patches

from .opsets import all_written
from .tried import TRIED, register_symbolics
from .verdicts import WAYS, found


def all_found() -> dict[str, Any]:
    """Return the results of all options and opsets, by way of exporting."""
    with patches.operators_read_once():
        opsets = list(all_written())  # before other symbolic functions are registered
        register_symbolics()
        options = [{"name": t.name, "option": str(t), "of": t.of, "found": {way: found(way, t) for way in WAYS}} for t in TRIED]
    return {"options": options, "opsets": opsets}


if __name__ == "__main__":
    json.dump(all_found(), sys.stdout, indent=1, ensure_ascii=False)
