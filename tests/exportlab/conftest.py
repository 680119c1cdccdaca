"""What tests of the machinery share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from exportlab import patches


@pytest.fixture
def as_if_nobody_had_registered_caches() -> Iterator[None]:
    """Other tests of this process may have, and the first registration of a class wins."""
    from transformers import Cache

    def is_cache(thing: Any) -> bool:
        return isinstance(thing, type) and issubclass(thing, Cache)

    with patches._registries_kept():
        for registry in filter(lambda found: isinstance(found, dict), patches._registries()):
            for key in [key for key, value in registry.items() if is_cache(key) or is_cache(value)]:
                del registry[key]
        yield
