"""What a line of a file of records may hold, told in one place before anything is made of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn

from ..outcomes import Outcome

SHORTEST, LONGEST = 1e-12, 1e9  # seconds that can have been measured
LARGEST = 2**63  # what is counted is less


class Kind(NamedTuple):
    """What a value must be, in words, and whether it is."""

    words: str
    holds: Callable[[Any], bool]


def or_null(kind: Kind) -> Kind:
    """Return the kind that is also satisfied by null."""
    return Kind(f"{kind.words} or null", lambda value: value is None or kind.holds(value))


def list_of(kind: Kind) -> Kind:
    """Return the kind of a list, each element of which is of this kind."""
    return Kind(f"a list, each element {kind.words}", lambda value: isinstance(value, (list, tuple)) and all(map(kind.holds, value)))


def mapping_to(kind: Kind) -> Kind:
    """Return the kind of an object, each value of which is of this kind."""
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
    """Raise a ValueError where these are not the fields of a record, as JSON holds them."""
    missing = [name for name in REQUIRED if name not in fields]
    if missing:
        raise ValueError(f"it has no {' and no '.join(missing)}")
    for name, value in fields.items():
        if name not in OF_RECORD:
            raise ValueError(f"it has {name!r}, which is not known here")
        _check(name, value, OF_RECORD[name])


def check_environment(fields: Mapping[str, Any]) -> None:
    """Raise a ValueError where this is no description of an environment, as JSON holds it."""
    _check("environment's id", fields.get("id"), NAME)
    for name, value in fields.items():
        _check(f"environment's {name}", value, PLAIN_VALUE)


def _check(name: str, value: Any, kind: Kind) -> None:
    if not kind.holds(value):
        raise ValueError(f"its {name} must be {kind.words}")


def row_of(line: bytes) -> dict[str, Any]:
    """Return the object that a line of JSON holds.

    Raises:
        ValueError: it holds something else.
    """
    try:
        row = json.loads(line.decode("utf-8"), parse_constant=_no_number)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(row, dict):
        raise ValueError(f"it is a {type(row).__name__}, not an object")
    return row


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number in JSON")
