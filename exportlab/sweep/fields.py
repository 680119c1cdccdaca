"""Validate the lines of a file of records before they are used."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn

from ..outcomes import Outcome

SHORTEST, LONGEST = 1e-12, 1e9  # plausible measurements, in seconds
LARGEST = 2**63  # upper limit of counts


class Kind(NamedTuple):
    """A kind of value: its description, and a function that tests a value."""

    words: str
    holds: Callable[[Any], bool]


def or_null(kind: Kind) -> Kind:
    """Return a kind that accepts null too."""
    return Kind(f"{kind.words} or null", lambda value: value is None or kind.holds(value))


def list_of(kind: Kind) -> Kind:
    """Return the kind of a list whose elements are of this kind."""
    return Kind(f"a list, each element {kind.words}", lambda value: isinstance(value, (list, tuple)) and all(map(kind.holds, value)))


def mapping_to(kind: Kind) -> Kind:
    """Return the kind of an object whose values are of this kind."""
    return Kind(f"an object, each value {kind.words}", lambda value: isinstance(value, Mapping) and all(map(kind.holds, value.values())))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < LARGEST


def _is_check(value: Any) -> bool:
    known = isinstance(value, Mapping) and set(REQUIRED_OF_CHECK) <= set(value) <= set(OF_CHECK)
    return known and all(OF_CHECK[name].holds(inner) for name, inner in value.items())


TEXT = Kind("a text", lambda value: isinstance(value, str))
NAME = Kind("a text that is not empty", lambda value: isinstance(value, str) and value != "")
FLAG = Kind("true or false", lambda value: isinstance(value, bool))
NUMBER = Kind("a finite number", _is_number)
COUNT = Kind("a whole number that is not negative", _is_count)
ROUND = Kind("a whole number from 1 on", lambda value: _is_count(value) and value > 0)
SECONDS = Kind(f"seconds between {SHORTEST:g} and {LONGEST:g}", lambda value: _is_number(value) and SHORTEST <= value <= LONGEST)
OUTCOME = Kind(f"one of {', '.join(Outcome)}", lambda value: isinstance(value, str) and value in list(Outcome))
PLAIN_VALUE = Kind("a text, a number or null", lambda value: value is None or isinstance(value, (str, bool)) or _is_number(value))

REQUIRED_OF_CHECK = ("check", "detail")
OF_CHECK = {"check": TEXT, "inputs": TEXT, "outcome": OUTCOME, "worst": or_null(NUMBER), "detail": TEXT}
CHECK = Kind("a check that failed, with `check` and `detail`", _is_check)

REQUIRED = ("case", "exporter", "mode", "outcome")
OF_RECORD = {
    "case": NAME,
    "exporter": NAME,
    "mode": NAME,
    "outcome": OUTCOME,
    "round": ROUND,
    "error": or_null(TEXT),
    "where": or_null(TEXT),
    "failed": list_of(CHECK),
    "seconds": mapping_to(SECONDS),
    "peak_bytes": or_null(COUNT),
    "weights_bytes": or_null(COUNT),
    "bytes": or_null(COUNT),
    "nodes": or_null(COUNT),
    "worst": or_null(NUMBER),
    "said": list_of(TEXT),
    "was_training": FLAG,
    "ran_on": list_of(NAME),
    "instead": TEXT,
    "file": TEXT,
    "environment": TEXT,
    "schema": COUNT,
}


def check_record(fields: Mapping[str, Any]) -> None:
    """Raise a ValueError if these are not the fields of a record in JSON."""
    missing = [name for name in REQUIRED if name not in fields]
    if missing:
        raise ValueError(f"it does not have {' and '.join(missing)}")
    for name, value in fields.items():
        if name not in OF_RECORD:
            raise ValueError(f"it has an unknown field {name!r}")
        _check(name, value, OF_RECORD[name])


def check_environment(fields: Mapping[str, Any]) -> None:
    """Raise a ValueError if this is not the description of an environment in JSON."""
    _check("environment's id", fields.get("id"), NAME)
    for name, value in fields.items():
        _check(f"environment's {name}", value, PLAIN_VALUE)


def _check(name: str, value: Any, kind: Kind) -> None:
    if not kind.holds(value):
        raise ValueError(f"its {name} must be {kind.words}")


def row_of(line: bytes) -> dict[str, Any]:
    """Parse a line of JSON that contains an object.

    Raises:
        ValueError: the line contains something else.
    """
    try:
        row = json.loads(line.decode("utf-8"), parse_constant=_no_number)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(row, dict):
        raise ValueError(f"it is a {type(row).__name__}, not an object")
    return row


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number in JSON")
