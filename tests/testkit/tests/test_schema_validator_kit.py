"""The SchemaValidator kit passes a correct validator and catches broken ones."""

from __future__ import annotations

import json
import threading
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from portico.errors import SchemaUnsupported
from portico.schemas import PlainSchemaValidator
from portico_testkit.kit_failures import KnownFaults
from portico_testkit.kit_of_a_kit import KitOfAKit
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
        validate = self.plain.compile(self.changed(schema))
        return lambda value: self.told(validate(value), value, schema)

    def changed(self, schema: Any) -> Any:
        return schema

    def told(self, faults: list[str], value: Any, schema: Any) -> list[str]:
        return faults


def without(schema: Any, drop: Callable[[str, Any], bool]) -> Any:
    """Return a schema without some keywords, wherever they are."""
    if isinstance(schema, list):
        return [without(part, drop) for part in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: part for key, part in schema.items() if not drop(key, part)}
    return {
        key: {name: without(part, drop) for name, part in argument.items()}
        if key in ("properties", "$defs") and isinstance(argument, dict)
        else argument
        if key in ("enum", "const", "required")
        else without(argument, drop)
        for key, argument in kept.items()
    }


@FAULTS.caught_by("the_name_is_filled", "its name is empty")
class Nameless(Broken):
    name = ""


@FAULTS.caught_by("it_knows_every_keyword_that_core_emits", "uniqueItems.* takes")
class PassesOverUniqueness(Broken):
    def changed(self, schema):
        return without(schema, lambda key, part: key == "uniqueItems")


@FAULTS.caught_by("it_knows_every_keyword_that_core_emits", "takes True")
class TakesTrueForOne(Broken):
    def told(self, faults, value, schema):
        return [] if value is True and isinstance(schema, dict) and "enum" in schema else faults


@FAULTS.caught_by("it_knows_every_keyword_that_core_emits", r"minItems.*'\$: expected integer")
class LosesThePlace(Broken):
    def told(self, faults, value, schema):
        return [f"$: {fault.partition(': ')[2]}" for fault in faults]


@FAULTS.caught_by("it_knows_a_keyword_or_refuses_it", "minimum.* takes -1")
class PassesOverWhatItDoesNotKnow(Broken):
    def changed(self, schema):
        known = {"type", "enum", "const", "properties", "required", "additionalProperties", "items", "prefixItems"}
        known |= {"anyOf", "minItems", "maxItems", "uniqueItems", "$ref", "$defs", "format"}
        return without(schema, lambda key, part: key not in known)


@FAULTS.caught_by("a_keyword_that_nobody_knows_is_refused", "DID NOT RAISE")
class PassesOverMisspeltWords(Broken):
    """Knows what 2020-12 has, and refuses it, but not what nobody has."""

    def changed(self, schema):
        return without(schema, lambda key, part: key in ("minimun", "requird", "any_of", "$type"))


@FAULTS.caught_by("a_malformed_schema_is_refused_when_it_is_compiled", "took the malformed schema 5")
class ChecksSchemasLate(Broken):
    def compile(self, schema):
        try:
            return super().compile(schema)
        except SchemaUnsupported as error:
            if "not handled" in str(error) or (isinstance(schema, dict) and "://" in json.dumps(schema, default=str)):
                raise
            return lambda value: self.plain.compile(schema)(value)  # noqa: PLW0108 - late


@FAULTS.caught_by(
    "a_malformed_schema_is_refused_when_it_is_compiled", "compile raised AttributeError.*, not SchemaUnsupported"
)
class RaisesOnMalformedSchemas(Broken):
    def compile(self, schema):
        schema.get("type")
        return super().compile(schema)


@FAULTS.caught_by("references_are_never_fetched", "it fetched a reference")
class FetchesReferences(Broken):
    def compile(self, schema):
        reference = schema.get("$ref", "")
        if reference.startswith("http"):
            urllib.request.urlopen(reference).close()
        return super().compile(schema)


@FAULTS.caught_by("references_are_never_fetched", "DID NOT RAISE")
class TakesRemoteReferences(Broken):
    def changed(self, schema):
        return without(schema, lambda key, part: key in ("$ref", "$dynamicRef") and "://" in str(part))


@FAULTS.caught_by("it_agrees_with_the_reference_on_the_schemas_of_types", ": valid")
class TakesObjectsForArrays(Broken):
    def told(self, faults, value, schema):
        return [fault for fault in faults if not fault.endswith(("got object", "got string", "got null"))]


@FAULTS.caught_by("a_format_is_said_and_not_checked", "it checked the format date")
class ChecksFormats(Broken):
    def told(self, faults, value, schema):
        formatted = isinstance(schema, dict) and schema.get("format") == "date"
        return ["$: expected a date"] if formatted and value == "nothing of the kind" else faults


@FAULTS.caught_by("every_fault_is_told_at_once", "it told .* is missing")
class TellsTheFirstOnly(Broken):
    def told(self, faults, value, schema):
        return faults[:1]


@FAULTS.caught_by(
    "a_fault_of_alternatives_tells_what_is_wrong_with_the_one_that_was_meant", "one thing is wrong, and it told"
)
class TellsOfAllAlternatives(Broken):
    def told(self, faults, value, schema):
        if isinstance(schema, dict) and "anyOf" in str(schema.get("items")) and faults:
            return [f"$[0]: none of 4 alternatives fits: {faults}"] * 3
        return faults


@FAULTS.caught_by("a_schema_or_value_that_is_too_deep_is_refused", "validating raised RecursionError")
class HasNoBottom(Broken):
    def compile(self, schema):
        def depth(value):
            return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0

        validate = super().compile(schema)
        return lambda value: validate(value) if depth(value) >= 0 else []


@FAULTS.caught_by("a_schema_or_value_that_is_too_deep_is_refused")
class GivesUpEarly(Broken):
    def told(self, faults, value, schema):
        return faults or (["$: too deep"] if str(value).startswith("[" * 30) else [])


@FAULTS.caught_by("alternatives_that_meet_again_at_every_level_take_no_time_that_doubles", "too entangled")
class GivesUpOnChains(Broken):
    """What a validator says that would take for ever: it gives up, though the chain is valid."""

    def told(self, faults, value, schema):
        return faults or (["$: too entangled"] if isinstance(value, dict) and str(value).count("inner") > 30 else [])


@FAULTS.caught_by("odd_values_are_judged_like_any", "validating raised ValueError")
class FailsOnHugeNumbers(Broken):
    def told(self, faults, value, schema):
        str(value)
        return faults


@FAULTS.caught_by("odd_values_are_judged_like_any", r"a fault of \d+ characters")
class ShowsEverything(Broken):
    def told(self, faults, value, schema):
        return [f"{fault} in {value!a}" if isinstance(value, str) else fault for fault in faults]


@FAULTS.caught_by("it_keeps_and_changes_neither_schema_nor_value", "it changed the schema")
class ChangesTheSchema(Broken):
    def changed(self, schema):
        if isinstance(schema, dict) and schema.get("type") == "array":
            schema.setdefault("title", "seen")
        return schema


@FAULTS.caught_by("it_keeps_and_changes_neither_schema_nor_value", "refuses 'a'")
class KeepsTheSchema(Broken):
    def compile(self, schema):
        super().compile(schema)
        return lambda value: self.plain.compile(schema)(value)  # noqa: PLW0108 - late


@FAULTS.caught_by("it_keeps_and_changes_neither_schema_nor_value", r"it changed \[None\]")
class ChangesTheValue(Broken):
    def told(self, faults, value, schema):
        if isinstance(value, list) and not faults:
            value.append(None)
        return faults


@FAULTS.caught_by("it_keeps_and_changes_neither_schema_nor_value", "it still holds")
class KeepsTheValue(Broken):
    def told(self, faults, value, schema):
        self.last = value
        return faults


@FAULTS.caught_by("threads_may_check_and_compile_at_once", "in a thread is another's")
class MixesThreads(Broken):
    def compile(self, schema):
        self.compiled = self.plain.compile(schema)
        threading.Event().wait(0.0005)
        return self.compiled


@FAULTS.caught_by("it_knows_every_keyword_that_core_emits", "returned tuple, not a list")
class ReturnsATuple(Broken):
    def told(self, faults, value, schema):
        return tuple(faults)


class TestTheSchemaValidatorKit(KitOfAKit):
    faults = FAULTS
    correct = (Broken,)


async def test_a_validator_that_says_it_is_complete_must_know_everything() -> None:
    class CompleteKit(SchemaValidatorKit):
        complete = True

    found = await KnownFaults(CompleteKit, FAULTS.fixtures).failures_of(Broken)
    assert list(found) == ["test_it_knows_a_keyword_or_refuses_it"]
