"""Whoever wrote a schema and a value: checking one with the other ends, with an answer or with one clear fault."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.strangers import pairs

from portico._schema import bounded
from portico.errors import SchemaUnsupported
from portico.plugins import Mismatch
from portico_basics.jsonschema.validator import JsonschemaValidator
from portico_openapi._validation import compile_schema

SMALL = pairs(2_000)
VALIDATOR = JsonschemaValidator()


def of_the_port(schema: Any) -> Callable[[Any], list[str]]:
    return VALIDATOR.compile(schema)


def of_a_document(schema: Any) -> Callable[[Any], list[str]]:
    compiled = compile_schema(schema)

    def validate(value: Any) -> list[str]:
        try:
            compiled.structure(value)
        except Mismatch as error:
            return [str(fault) for fault in error.faults]
        return []

    return validate


def is_given_up(told: list[str]) -> bool:
    return len(told) == 1 and ("too entangled" in told[0] or "too deeply" in told[0])


@pytest.mark.timeout(60)
@pytest.mark.parametrize("what", SMALL)
def test_a_check_ends_and_both_ways_find_the_same(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "_STEPS", 5_000)
    schema, value = SMALL[what]
    told, of_calls = of_the_port(schema)(value), of_a_document(schema)(value)
    assert bool(told) == bool(of_calls) or is_given_up(told) or is_given_up(of_calls), (told[:3], of_calls[:3])


@pytest.mark.slow
@pytest.mark.parametrize("what", SMALL)
@pytest.mark.parametrize("make", [of_the_port, of_a_document])
def test_a_pair_of_a_hundred_kilobytes_takes_a_second_at_most(make: Any, what: str) -> None:
    schema, value = pairs(100_000)[what]
    make({"type": "null"})(None)
    try:
        validate = make(schema)
    except SchemaUnsupported:
        return
    before = time.process_time()
    validate(value)
    assert time.process_time() - before < 1
