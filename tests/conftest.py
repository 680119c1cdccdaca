"""What each test starts from, the same random numbers, what it leaves as it was, and how many examples the fuzzers try.

They try 200 each, by HYPOTHESIS_PROFILE=long 20,000, which no run repeats.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, settings
from tiers import runs_in

COMMON = {"deadline": None, "suppress_health_check": list(HealthCheck)}
settings.register_profile("short", max_examples=200, derandomize=True, database=None, **COMMON)
settings.register_profile("long", max_examples=20_000, database=None, print_blob=True, **COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "short"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that chooses a tier; paths that are named on the command line run whatever their tier."""
    parser.addoption("--tier", type=int, choices=(0, 1, 2), default=0, help="run the tests of this tier, where no path is named")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files of other tiers."""
    if collection_path.suffix != ".py" or config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return None
    return None if runs_in(collection_path, config.getoption("--tier")) else True


@pytest.fixture(autouse=True)
def _same_random_numbers() -> None:
    """So that what fails in one run fails in the next."""
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _left_as_it_was() -> Iterator[None]:
    """So that a test fails itself, and not one that happens to run after it in the same process."""
    yield
    gradients = torch.is_grad_enabled()
    torch.set_grad_enabled(True)
    assert gradients, "it left gradients off"
    if "matplotlib.pyplot" in sys.modules:
        pyplot = sys.modules["matplotlib.pyplot"]
        figures = pyplot.get_fignums()
        pyplot.close("all")
        assert figures == [], "it left figures open"


@pytest.fixture
def as_if_nobody_had_registered_caches() -> Iterator[None]:
    """Other tests of this process may have, and the first registration of a class wins."""
    from transformers import Cache
    from transformers.modeling_outputs import BaseModelOutput

    from fx2onnx.caches import containers_kept, registries

    def is_cache(thing: Any) -> bool:
        return isinstance(thing, type) and issubclass(thing, Cache)

    assert BaseModelOutput in registries()[0]  # registered when it is imported, which must not be undone
    with containers_kept():
        for registry in filter(lambda found: isinstance(found, dict), registries()):
            for key in [key for key, value in registry.items() if is_cache(key) or is_cache(value)]:
                del registry[key]
        yield
