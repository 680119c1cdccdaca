"""The caller's table of translations, whose values are functions like ours or onnxscript functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import BuiltinFunctionType, FunctionType
from typing import Any

from ..compat.operators import HigherOrderOperator, OpOverload, OpOverloadPacket
from ..errors import BrokenTranslation, Untranslated
from ..ir.graph import Graph
from ..ir.translation import Translation
from .dispatch import NOT_TRANSLATED, first_applicable
from .packages import needed_package


def custom_table(table: Mapping[Any, Any], opset: int) -> dict[Any, Translation]:
    """Return the caller's table with an overload for each operator and one of our translations for each function.

    A value may be a list of functions: the first one that accepts the call is used.

    Raises:
        TypeError: `table` is not a mapping, a key is not an operator of torch, or a value is not callable.
        ValueError: an operator has several overloads, or a list is empty.
    """
    if not isinstance(table, Mapping):
        raise TypeError(f"custom_translation_table must be a mapping of operators to functions, not a {type(table).__name__}")
    return {operator: _translation(operator, value) for operator, value in ((_operator(key), value) for key, value in table.items())}


def _operator(key: Any) -> Any:
    if isinstance(key, (OpOverload, HigherOrderOperator, FunctionType, BuiltinFunctionType)):
        return key
    if not isinstance(key, OpOverloadPacket):
        raise TypeError(f"custom_translation_table: {key!r} is not an operator of torch; pass one such as torch.ops.aten.add.Tensor")
    overloads = key.overloads()
    if len(overloads) != 1:
        raise ValueError(
            f"custom_translation_table: {key} has several overloads ({', '.join(overloads)}); pass one, such as {key}.{overloads[0]}"
        )
    return getattr(key, overloads[0])


def _translation(key: Any, value: Any) -> Translation:
    if isinstance(value, (list, tuple)):
        if not value:
            raise ValueError(f"custom_translation_table: the list of functions for {key} is empty")
        return first_applicable([_translation(key, part) for part in value])
    if not callable(value):
        raise TypeError(f"custom_translation_table: the value for {key} is {value!r}, which is not callable")
    if not is_own_kind(value):
        return translate_with_onnxscript(value, local=True)
    return _called_as_declared(value, key) if isinstance(key, OpOverload) else value


def _called_as_declared(function: Callable[..., Any], operator: OpOverload) -> Translation:
    """Return a translation that adds the defaults of the operator's schema to a call of a function, because a captured call omits them.

    The translation raises:
        BrokenTranslation: the function does not accept the arguments of the operator.
    """
    signature = inspect.signature(function)

    def translation(g: Graph, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = _fill_defaults(signature, operator._schema.arguments, args, kwargs)
        try:
            signature.bind(g, *args, **kwargs)
        except TypeError as error:
            told = f"its function {function.__name__}{signature} does not accept the arguments of {operator._schema}: {error}"
            raise BrokenTranslation(told) from error
        return function(g, *args, **kwargs)

    return translation


def _fill_defaults(
    signature: inspect.Signature, declared: Sequence[Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call with the schema's defaults of the parameters that the function has without a default."""
    asked = [parameter for parameter in [*signature.parameters.values()][1:] if parameter.default is parameter.empty]
    places = [parameter for parameter in asked if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)]
    by_place = [argument for argument in declared if not argument.kwarg_only]
    left = [a for a in by_place[len(args) : len(places)] if a.name not in kwargs and a.has_default_value()]
    named = {a.name: a for a in declared if a.kwarg_only and a.has_default_value()}
    by_name = {p.name: named[p.name].default_value for p in asked if p.name in named and p.name not in kwargs}
    return (*args, *(argument.default_value for argument in left)), {**kwargs, **by_name}


def is_own_kind(function: Any) -> bool:
    """Return whether a function of the caller's table has the signature `(g, *args)` of ours; an onnxscript function does not."""
    if not inspect.isfunction(function):
        return False
    return next(iter(inspect.signature(function).parameters), None) == "g"


def translate_with_onnxscript(function: Callable[..., Any], local: bool = False) -> Translation:
    """Return a translation by an onnxscript function, or by a function that calls its operators (`opset18.Add(x, y)`).

    Args:
        local: whether an `@onnxscript.script` function becomes a local function of the model with a call, instead of being inlined.
    """
    return partial(_call_onnxscript, function, local)


def _call_onnxscript(function: Callable[..., Any], local: bool, g: Graph, *args: Any, **kwargs: Any) -> Any:
    with needed_package("onnxscript", "its function in custom_translation_table"):
        from .onnxscript_functions import translation_of
    try:
        return translation_of(function, local)(g, *args, **kwargs)
    except Untranslated as error:
        if _refused_on_purpose(error):
            raise
        raise BrokenTranslation(f"{error} (in its function in custom_translation_table)") from error


def _refused_on_purpose(error: BaseException) -> bool:
    """Return whether an error was caused by a refusal, after which another translation is tried, and not by a mistake."""
    cause = error.__cause__
    return cause is not None and (isinstance(cause, NOT_TRANSLATED) or _refused_on_purpose(cause))
