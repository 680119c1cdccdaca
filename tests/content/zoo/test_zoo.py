"""The zoo: its cases are well declared and repeatable. Not here: how an exporter does, which tools/expected_matrix.py looks at."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from content import zoo
from exportlab.cases import Case, Sample, case
from exportlab.specs import Maker, built, flags, integers, ones, size_of, tensor

CASES = zoo.cases()
NEVER_1 = ("height", "width", "frames", "tokens")  # too small for the convolutions, or for the image that the text holds
each = pytest.mark.parametrize("subject", CASES, ids=lambda c: c.name)


class Pair(NamedTuple):
    """A container that a constructor takes by position."""

    a: Any
    b: Any


def leaves(sample: Sample) -> list[Any]:
    return pytree.tree_leaves((sample.args, dict(sample.kwargs)))


def same(a: Any, b: Any) -> bool:
    return torch.equal(a, b) if isinstance(a, Tensor) else a == b


def axes_named(tree: Any) -> set[str]:
    names = (leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, str))
    return {term for name in names for term in name.split("+") if not term.isdigit()}


def check_it_is_the_same_every_time(subject: Case) -> None:
    one, other = subject.module().state_dict(), subject.module().state_dict()
    assert one.keys() == other.keys()
    assert all(same(one[key], other[key]) for key in one)
    for a, b in zip(subject.samples(), subject.samples(), strict=True):
        assert pytree.tree_structure((a.args, dict(a.kwargs))) == pytree.tree_structure((b.args, dict(b.kwargs)))
        assert all(map(same, leaves(a), leaves(b)))


def check_it_leaves_the_global_generator_alone(subject: Case) -> None:
    before = torch.get_rng_state()
    subject.module(), subject.samples()
    assert torch.equal(before, torch.get_rng_state())


def check_eager_runs_at_every_size(subject: Case) -> None:
    with torch.inference_mode():
        for sample in subject.samples():
            subject.module()(*sample.args, **sample.kwargs)


def check_it_asks_something(subject: Case) -> None:
    assert subject.doc.endswith(("?", "."))
    assert len(subject.doc) <= 120
    assert subject.topics


def check_dims_are_those_of_the_inputs(subject: Case) -> None:
    assert axes_named(subject.dynamic_shapes()) == set(subject.dims)


def check_the_size_at_export_is_neither_0_nor_1(subject: Case) -> None:
    assert all(values[0] >= 2 for values in subject.dims.values())


def check_every_dim_moves_and_is_1_at_least_once(subject: Case) -> None:
    assert all(len(set(values)) > 1 for values in subject.dims.values())
    assert all(1 in values for name, values in subject.dims.items() if name not in NEVER_1)


def check_the_module_is_in_the_mode_that_the_case_declares(subject: Case) -> None:
    assert all(module.training is subject.training for module in subject.module().modules())


@each
def test_a_case_is_well_declared_and_repeatable(subject: Case) -> None:
    check_it_is_the_same_every_time(subject)
    check_it_leaves_the_global_generator_alone(subject)
    check_eager_runs_at_every_size(subject)
    check_it_asks_something(subject)
    check_dims_are_those_of_the_inputs(subject)
    check_the_size_at_export_is_neither_0_nor_1(subject)
    check_every_dim_moves_and_is_1_at_least_once(subject)
    check_the_module_is_in_the_mode_that_the_case_declares(subject)


def test_names_are_unique_and_known() -> None:
    assert max(Counter(c.name for c in CASES).values()) == 1
    assert all(zoo.get(c.name) is c for c in CASES)


@pytest.mark.parametrize("family", zoo.FAMILIES)
def test_every_family_has_a_case_of_its_own(family: str) -> None:
    assert zoo.cases(family)
    assert all(c.family == family for c in zoo.cases(family))


def test_cases_are_found_by_topic() -> None:
    assert zoo.get("branch_on_batch") in zoo.cases(topic="branches")
    assert all("branches" in c.topics for c in zoo.cases(topic="branches"))
    assert zoo.get("mlp") not in zoo.cases(topic="branches")


def test_unknown_families_and_names_are_refused() -> None:
    with pytest.raises(ValueError, match="no family 'unheard'"):
        zoo.cases("unheard")
    with pytest.raises(KeyError, match="no case 'unheard'"):
        zoo.get("unheard")


def test_one_spec_used_twice_is_one_tensor() -> None:
    x, y, z = zoo.get("same_tensor_thrice").samples()[0].args
    assert x is y is z


def test_two_equal_specs_are_two_tensors() -> None:
    made = Maker({"n": 3}, 0).make((tensor("n"), tensor("n")))
    assert not torch.equal(*made)


def test_a_size_is_a_number_a_name_or_a_sum() -> None:
    sizes = {"past": 5, "seq": 3}
    assert [size_of(dim, sizes) for dim in (4, "seq", "past+seq", "past+1")] == [4, 3, 8, 6]
    with pytest.raises(ValueError, match="no dimension 'batch': the case declares past, seq"):
        size_of("batch", sizes)


@pytest.mark.parametrize(
    ("spec", "dtype", "low", "high"),
    [
        (tensor("n", 4), torch.float32, -9, 9),
        (tensor("n", 4, dtype=torch.float16), torch.float16, -9, 9),
        (integers("n", 4, low=2, high=5), torch.int64, 2, 4),
        (flags("n", 4), torch.bool, 0, 1),
        (ones("n", 4), torch.int64, 1, 1),
    ],
)
def test_specs_make_what_they_say(spec: Any, dtype: torch.dtype, low: int, high: int) -> None:
    made = Maker({"n": 50}, 0).make(spec)
    assert (made.shape, made.dtype) == ((50, 4), dtype)
    assert low <= made.min().item() <= made.max().item() <= high


def test_a_built_object_keeps_its_axes_even_when_it_copies_them() -> None:
    maker = Maker({"n": 3, "m": 4}, 0)
    kept, copied = maker.make((built(Pair, tensor("n"), tensor(2, "m")), built(lambda x: [x.clone()], tensor("n", "m"))))
    assert maker.dynamic_shapes(kept) == Pair({0: "n"}, {1: "m"})
    assert maker.dynamic_shapes(copied) == [{0: "n", 1: "m"}]


def test_the_cache_of_a_decoder_moves() -> None:
    moving = zoo.get("llama_with_cache").dynamic_shapes()["past_key_values"]  # nested as the cache is registered, which others may do too
    assert pytree.tree_leaves(moving, is_leaf=lambda tree: isinstance(tree, dict)) == [{0: "batch", 2: "past"}] * 4


def test_sizes_stay_at_their_last_value_when_others_have_more() -> None:
    @case(dims={"a": (2, 3, 4), "b": (5, 6)})
    def uneven() -> Any:
        return nn.Identity(), (tensor("a", "b"),)

    assert uneven.sizes() == [{"a": 2, "b": 5}, {"a": 3, "b": 6}, {"a": 4, "b": 6}]


def test_a_case_without_dims_has_one_sample_and_no_dynamic_shapes() -> None:
    @case()
    def still() -> Any:
        return nn.Identity(), (tensor(2),)

    assert len(still.samples()) == 1
    assert still.dynamic_shapes() is None


def test_arguments_by_keyword_are_bound_by_name() -> None:
    @case(dims={"n": (2, 3)})
    def mixed() -> Any:
        return nn.Bilinear(4, 4, 2), (tensor("n", 4),), {"input2": tensor("n", 4)}

    assert mixed.dynamic_shapes() == {"input1": {0: "n"}, "input2": {0: "n"}}


def test_a_dimension_without_a_size_is_refused() -> None:
    with pytest.raises(ValueError, match="'batch' needs at least one size"):
        case(dims={"batch": ()})


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (None, "must return"),
        (nn.Identity(), "must return"),
        ((nn.Identity(),), "must return"),
        ((torch.relu, ()), "its module is a builtin_function_or_method"),
        ((nn.Identity(), [tensor(2)]), "a sample is a tuple of arguments, .* not a TensorSpec"),
        ((nn.Identity(), (), (tensor(2),)), "its kwargs a tuple"),
    ],
)
def test_a_factory_that_returns_something_else_is_refused(returned: Any, message: str) -> None:
    bad = case()(lambda: returned)
    with pytest.raises(TypeError, match=message):
        bad.module()


def test_an_input_with_an_undeclared_dimension_is_refused() -> None:
    @case(dims={"batch": (2,)})
    def undeclared() -> Any:
        return nn.Identity(), (tensor("batch", "seq"),)

    with pytest.raises(ValueError, match="no dimension 'seq': the case declares batch"):
        undeclared.samples()


@pytest.mark.parametrize("inputs", [torch.ones(2), (torch.ones(2),), {"x": torch.ones(2)}, Sample((torch.ones(2),))])
def test_a_sample_is_made_of_whatever_a_call_is_written_as(inputs: Any) -> None:
    assert torch.equal(leaves(Sample.of(inputs))[0], torch.ones(2))


def test_a_sample_of_anything_else_is_refused() -> None:
    with pytest.raises(TypeError, match=r"a sample is a tuple of arguments, .*, not a list"):
        Sample.of([torch.ones(2)])


def test_listing_the_zoo_does_not_import_transformers() -> None:
    listed = "import sys; from content import zoo; assert zoo.cases(); sys.exit('transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", listed], check=False).returncode == 0
