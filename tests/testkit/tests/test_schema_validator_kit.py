"""The SchemaValidator kit passes a correct validator and catches broken ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from portico.plugins import PlainSchemaValidator
from portico_testkit.kit_failures import Fault, KnownFaults
from portico_testkit.schema_validator import SchemaValidatorKit


class TestPlainSchemaValidator(SchemaValidatorKit):
    @pytest.fixture
    def schema_validator(self) -> PlainSchemaValidator:
        return PlainSchemaValidator()


FAULTS = KnownFaults(SchemaValidatorKit, lambda kind: {"schema_validator": kind})


class Broken:
    """Does right what a variant does not do wrong."""

    name = "broken"

    def __init__(self) -> None:
        self.plain = PlainSchemaValidator()

    def compile(self, schema: Mapping[str, Any]) -> Callable[[Any], list[str]]:
        validate = self.plain.compile(schema)
        return lambda value: self.changed(validate(value))

    def changed(self, faults: list[str]) -> Any:
        return faults


@FAULTS.caught_by("every_fault_is_told_at_once", "it told .*expected integer")
class TellsTheFirstOnly(Broken):
    def changed(self, faults):
        return faults[:1]


@FAULTS.caught_by("it_knows_every_keyword_that_core_emits", "returned tuple, not a list")
class ReturnsATuple(Broken):
    def changed(self, faults):
        return tuple(faults)


@pytest.mark.parametrize("fault", FAULTS, ids=str)
async def test_the_kit_finds_what_is_broken(fault: Fault, given: Any) -> None:
    await FAULTS.check(fault, given)
