"""Hostile arguments of what declares cases, samples and expectations."""

from __future__ import annotations

from functools import partial
from typing import Any

from hostile import NAMES, Returns, X, leaves, made, modules, mostly, values
from hypothesis import given
from hypothesis import strategies as st
from promise import OfModel, promised

from content.zoo import get
from exportlab import Sample, case, expect_failure, require, tensor
from exportlab.cases import Case, registered_case
from exportlab.specs import built, flags, integers, ones

LINEAR = made("linear")
SPECS = [tensor, integers, flags, ones, partial(built, lambda *parts: list(parts))]

dims = st.dictionaries(st.sampled_from(["n", "m"]), st.tuples(st.integers(-1, 5)) | st.just((4, 1)), max_size=2)
inputs = st.just((X,)) | st.builds(lambda rows: (tensor(rows, 3),), st.sampled_from(["n", "n+m", 4]))
dimensions = st.one_of(st.integers(-1, 4), st.sampled_from(["n", "n+m", "n+1", "+", "n+", "q"]))


def used(case: Case) -> None:
    """All that a case is asked for."""
    case.sizes()
    case.build()
    case.module()
    case.samples()
    case.dynamic_shapes()
    assert isinstance(f"{case.doc} {case.family} {case.moves}", str)


@given(mostly(dims=dims, topics=st.just(()), training=st.booleans()), mostly(module=st.just(LINEAR) | modules, inputs=inputs))
def test_case(given: dict[str, Any], made: dict[str, Any]) -> None:
    promised(lambda: used(case(**given)(lambda: tuple(made.values()))), passes=(OfModel,))


@given(values, values)
def test_a_factory(factory: Any, returned: Any) -> None:
    promised(lambda: case()(factory))
    promised(lambda: used(case()(lambda: returned)))


@given(
    st.sampled_from(SPECS),
    st.lists(dimensions | leaves.filter(lambda value: not isinstance(value, int) or isinstance(value, bool)), max_size=2),
    mostly(low=st.integers(), high=st.integers(), dtype=st.none()),
)
def test_specs(spec: Any, dims: Any, options: Any) -> None:
    taken = {"low": options["low"], "high": options["high"]} if spec is integers else {}
    further = {} if options["dtype"] is None or spec not in (tensor, integers, ones) else {"dtype": options["dtype"]}
    promised(lambda: used(case({"n": (2, 3), "m": (1,)})(lambda: (Returns(X), (spec(*dims, **taken, **further),)))))


@given(values, values)
def test_samples(args: Any, kwargs: Any) -> None:
    promised(lambda: Sample.of(args).leaves())
    promised(lambda: Sample.of((args, kwargs)).leaves())
    promised(lambda: Sample(args, kwargs).leaves())


@given(
    mostly(kind=st.just(ValueError), match=st.sampled_from(["", "it", "[", "none"]), lines=st.integers(0, 5)),
    st.sampled_from([ValueError, OSError]),
)
def test_expect_failure(given: dict[str, Any], raised: type[Exception]) -> None:
    def use() -> None:
        with expect_failure(**given):
            raise raised("no\nit\ndoes\nnot")

    promised(use, passes=(OSError, AssertionError))


@given(st.lists(values | st.sampled_from(["python3", "nope", "build/web"]), max_size=2))
def test_require(needed: Any) -> None:
    promised(lambda: require(*needed))


@given(values | st.sampled_from(NAMES))
def test_names_of_cases(name: Any) -> None:
    promised(lambda: registered_case(name), passes=(KeyError,))
    promised(lambda: get(name), passes=(KeyError,))
