"""The grammar in which calls are given: what each form is read as, and what is refused in one line."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from exportlab import Sample, case, compare, export, tensor, verify
from exportlab.doctor.subject import patient_of
from exportlab.samples import NotDeclared, parse_declaration, samples_of
from exportlab.target import FORMS

x, y = torch.ones(2), torch.zeros(2)


class Two(nn.Module):
    """The second argument has a name that calls use."""

    def forward(self, x: Any, scale: Any = None) -> Any:
        return x if scale is None else x * scale


class TupleAndDict(nn.Module):
    """What a pair `(args, kwargs)` looks like, as two arguments."""

    def forward(self, pair: Any, table: Any) -> Any:
        return pair[0] + table["a"]


@pytest.mark.parametrize(
    ("given", "args", "kwargs"),
    [
        (x, (x,), {}),
        ((x,), (x,), {}),
        ((x, y), (x, y), {}),
        (((x,), {"scale": y}), (x,), {"scale": y}),
        (((), {"x": x}), (), {"x": x}),
        ({"x": x}, (), {"x": x}),
        (Sample((x,), {"scale": y}), (x,), {"scale": y}),
        ((x, {"scale": y}), (x, {"scale": y}), {}),
    ],
)
def test_each_form_of_one_call_alone_in_a_list_and_behind_a_module(given: Any, args: Any, kwargs: Any) -> None:
    for found in (
        samples_of(given, Two()),
        samples_of([given], Two()),
        parse_declaration((Two(), [given]), "f")[1],
        parse_declaration((Two(), given), "f")[1],
    ):
        assert [(sample.args, sample.kwargs) for sample in found] == [(args, kwargs)]


def test_several_samples_are_a_list_of_any_forms() -> None:
    found = samples_of([x, (x, y), ((x,), {"scale": y}), {"x": x}], Two())
    assert [(len(sample.args), list(sample.kwargs)) for sample in found] == [(1, []), (2, []), (1, ["scale"]), (0, ["x"])]


def test_samples_in_a_tuple_are_several_only_where_nothing_else_can_be_meant() -> None:
    assert len(samples_of(((x,), (y,), (x,)), Two())) == 3  # forward takes no three arguments
    assert len(samples_of((Sample((x,)), Sample((y,))), Two())) == 2
    with pytest.raises(TypeError, match="is ambiguous: write"):
        samples_of(((x,), (y,)), Two())
    assert parse_declaration((Two(), ((x,), (y,))), "f")[1] == [Sample(((x,), (y,)))]  # behind a module a tuple is one call


def test_a_tuple_and_a_dict_as_two_arguments_have_to_be_said() -> None:
    with pytest.raises(TypeError, match=r"are read as \(args, kwargs\), but forward doesn't accept that: write Sample\(\(a, b\)\)"):
        samples_of(((x, y), {"a": y}), TupleAndDict())
    said = samples_of(Sample(((x, y), {"a": y})), TupleAndDict())
    assert said == [Sample(((x, y), {"a": y}))]


def test_what_is_no_sample_is_refused() -> None:
    for wrong, what in ((3, "an int"), (None, "None"), ({0: x}, "a dict"), ("x", "a str")):
        with pytest.raises(TypeError, match=f"a sample is a tuple of arguments, .*, not {what}"):
            samples_of([wrong], Two())
    with pytest.raises(ValueError, match="at least one sample is needed"):
        samples_of([], Two())


@pytest.mark.parametrize(
    ("returned", "what"),
    [
        (3, "it returned an int"),
        (None, "it returned None"),
        ((Two(),), "it returned a tuple of Two"),
        ((torch.relu, (x,)), "its module is a builtin_function_or_method"),
        ((Two(), (x,), (y,)), "its args are a tuple of Tensor, its kwargs a tuple of Tensor"),
        ((Two(), [x], {"scale": y}), "its args are a list, its kwargs a dict"),
        ((Two(), (x,), {0: y}), "its kwargs a dict"),
        ((Two(), 3), "a sample is a tuple of arguments"),
        ((Two(), []), "at least one sample"),
    ],
)
def test_what_is_no_declaration_is_refused_and_the_forms_are_named(returned: Any, what: str) -> None:
    with pytest.raises(NotDeclared) as refused:
        parse_declaration(returned, "build")
    assert str(refused.value).startswith(f"build must return {FORMS}; ")
    assert what in str(refused.value)


def test_a_case_takes_several_samples_instead_of_dims_and_sees_what_moves() -> None:
    one = case()(lambda: (nn.Linear(3, 2), [(torch.ones(4, 3),)]))
    assert one.dynamic_shapes() is None
    plain = case()(lambda: (nn.Linear(3, 2), [(torch.ones(4, 3),), (torch.ones(7, 3),)])).build()
    assert [sample.args[0].shape[0] for sample in plain.samples] == [4, 7]
    assert plain.dynamic_shapes == ({0: "batch"},)
    both = case(dims={"n": (2,)})(lambda: (nn.Linear(3, 2), [(tensor("n", 3),), (tensor("n", 3),)]))
    with pytest.raises(NotDeclared, match="returns several samples and also declares dims"):
        both.build()


@pytest.mark.parametrize("given", [x, (x,), [x], [(x,)], ((x,), {}), [((x,), {})], {"x": x}, [{"x": x}], Sample((x,))])
def test_verify_compare_and_doctor_read_the_same(given: Any) -> None:
    by_name = Sample((), {"x": x}) in samples_of(given, Two())
    program = export("torch.export", Two(), () if by_name else (x,), {"x": x} if by_name else {})
    assert verify(program, Two(), given).outcome == "ok"
    assert compare(Two(), given, exporters=("torch.export",)).outcomes() == {"torch.export": "ok"}
    assert list(patient_of(Two(), (given,)).samples) == samples_of(given, Two())
