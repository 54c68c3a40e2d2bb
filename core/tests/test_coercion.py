"""Arguments from a model: mended where nothing is lost, and nowhere else."""

from __future__ import annotations

import datetime as dt
import enum
import json
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

import pytest
from hypothesis import given, strategies as st
from tests.support.strategies import type_cases

from portico._schema.coerce import structure_leniently
from portico._types.compiled import Mismatch
from portico._types.compiling import compile_type
from portico_testkit.strategies import json_values


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclass
class Stop:
    name: str
    nights: int = 1


@dataclass
class Trip:
    stops: list[Stop]
    by: Stop | None = None


def read(hint: Any, value: Any) -> Any:
    return structure_leniently(compile_type(hint), value)


@pytest.mark.parametrize(
    ("hint", "value", "meant"),
    [
        (int, "5", 5),
        (int, "-5", -5),
        (int | None, "5", 5),
        (float, "5", 5.0),
        (float, "5.5", 5.5),
        (float, "5.0", 5.0),
        (bool, "true", True),
        (bool, "True", True),
        (bool | None, "None", None),
        (list[bool], "[True, False]", [True, False]),
        (Trip, "{'stops': [{'name': 'Oslo', 'nights': 2}], 'by': None}", Trip([Stop("Oslo", 2)])),
        (bool | None, "null", None),
        (None, "null", None),
        (list[int], "[1,2]", [1, 2]),
        (list[int], " [1, 2]\n", [1, 2]),
        (list[int] | None, '["1", 2]', [1, 2]),
        (dict[str, int], '{"a": 1}', {"a": 1}),
        (Trip, '{"stops": "[{\\"name\\": 7}]"}', Trip([Stop("7")])),
        (Trip, {"stops": [{"name": "Oslo", "nights": "2"}], "by": "null"}, Trip([Stop("Oslo", 2)])),
        (str, 5, "5"),
        (str, 10**30, "1" + "0" * 30),
        (list[str], [1, "a"], ["1", "a"]),
        (str | None, 5, "5"),
        (Decimal, 5, Decimal(5)),
        (Literal[1, 2], "2", 2),
        (Literal["1", "2"], 2, "2"),
        (Level, "2", Level.HIGH),
        (tuple[int, str], ["1", 2], (1, "2")),
        (int, 5.0, 5),
    ],
    ids=str,
)
def test_what_is_only_written_otherwise_is_taken_for_what_it_is(hint: Any, value: Any, meant: Any) -> None:
    made = read(hint, value)
    assert made == meant
    assert type(made) is type(meant)


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (int, "05"),
        (int, "5.0"),
        (int, "1e3"),
        (int, " 5"),
        (int, "+5"),
        (int, "5.5"),
        (int, "five"),
        (int, ""),
        (int, "true"),
        (int, True),
        (float, "1e3"),
        (float, "NaN"),
        (float, "1.10"),
        (bool, "1"),
        (bool, 1),
        (str, True),
        (str, 5.5),
        (str, None),
        (str, [1]),
        (dt.date, 20240101),
        (dt.date, 2024010115),
        (list[int], "1,2"),
        (list[int], "[1, x]"),
        (list[int], 1),
        (list[int], "[1, 2.5]"),
        (dict[str, int], '{"a": 1, "a": 2}'),
        (Stop, "{}"),
        (Stop, '{"name": "Oslo", "days": 1}'),
        (list[bool], "[NaN]"),
        (list[Any], "[" * 100_000),
        (str, 10**5000),
    ],
    ids=lambda value: str(value)[:40] if not isinstance(value, int) or abs(value) < 10**9 else "a long number",
)
def test_what_would_lose_or_guess_is_left_and_refused_as_it_came(hint: Any, value: Any) -> None:
    compiled = compile_type(hint)
    with pytest.raises(Mismatch) as strict:
        compiled.structure(value)
    with pytest.raises(Mismatch) as lenient:
        structure_leniently(compiled, value)
    assert lenient.value.faults == strict.value.faults


def test_text_stays_text_where_text_is_expected() -> None:
    assert read(str, "5") == "5"
    assert read(str | None, "null") == "null"
    assert read(list[str], ["[1]"]) == ["[1]"]
    assert read(dict[str, Any], {"a": "5"}) == {"a": "5"}


def test_the_value_that_came_is_not_changed() -> None:
    value = {"stops": [{"name": 7, "nights": "2"}]}
    before = json.dumps(value)
    assert read(Trip, value) == Trip([Stop("7", 2)])
    assert json.dumps(value) == before


@given(st.data())
def test_a_value_that_fits_is_read_as_ever(data: st.DataObject) -> None:
    case = data.draw(type_cases())
    compiled = compile_type(case.hint)
    written = compiled.unstructure(data.draw(case.values))
    assert structure_leniently(compiled, written) == compiled.structure(written)


@given(st.data())
def test_json_written_into_a_string_is_read_where_no_string_is_expected(data: st.DataObject) -> None:
    case = data.draw(type_cases().filter(lambda case: case.kind in ("array", "object")))
    compiled = compile_type(case.hint)
    written = compiled.unstructure(data.draw(case.values))
    assert structure_leniently(compiled, json.dumps(written)) == compiled.structure(written)


@given(st.data())
def test_of_any_json_value_comes_a_value_or_the_faults_as_they_were(data: st.DataObject) -> None:
    compiled = compile_type(data.draw(type_cases()).hint)
    value = data.draw(json_values())
    try:
        compiled.structure(value)
    except Mismatch as error:
        strict = error
    else:
        return
    try:
        structure_leniently(compiled, value)
    except Mismatch as error:
        assert error.faults == strict.faults
