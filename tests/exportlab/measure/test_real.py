"""Models of real size: declared so that every exporter can take them, and never built here, since that takes gigabytes."""

from __future__ import annotations

import pytest

from exportlab.cases import Case
from exportlab.measure import real
from exportlab.userfile import all_cases


def test_every_model_is_a_case_of_the_file() -> None:
    assert {one.name for one in all_cases(real.__file__)} == set(real.REAL)


@pytest.mark.parametrize("name", real.REAL)
def test_sizes_name_axes_that_move_and_no_example_is_of_size_one(name: str) -> None:
    """torch.export keeps a size of 1 for good, which would refuse every other size."""
    declared: Case = getattr(real, name)
    assert set(real.REAL[name].sizes) <= set(declared.dims)
    assert all(sizes[0] > 1 for sizes in declared.dims.values())
