"""The SchemaValidator kit passes a correct validator and catches broken ones."""

from __future__ import annotations

import inspect
import json
import threading
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from portico.errors import SchemaUnsupported
from portico.schemas import PlainSchemaValidator
from portico_testkit.schema_validator import SchemaValidatorKit


class TestPlainSchemaValidator(SchemaValidatorKit):
    @pytest.fixture
    def schema_validator(self) -> PlainSchemaValidator:
        return PlainSchemaValidator()


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


class Nameless(Broken):
    name = ""


class PassesOverUniqueness(Broken):
    def changed(self, schema):
        return without(schema, lambda key, part: key == "uniqueItems")


class TakesTrueForOne(Broken):
    def told(self, faults, value, schema):
        return [] if value is True and isinstance(schema, dict) and "enum" in schema else faults


class LosesThePlace(Broken):
    def told(self, faults, value, schema):
        return [f"$: {fault.partition(': ')[2]}" for fault in faults]


class PassesOverWhatItDoesNotKnow(Broken):
    def changed(self, schema):
        known = {"type", "enum", "const", "properties", "required", "additionalProperties", "items", "prefixItems"}
        known |= {"anyOf", "minItems", "maxItems", "uniqueItems", "$ref", "$defs", "format"}
        return without(schema, lambda key, part: key not in known)


class PassesOverMisspeltWords(Broken):
    """Knows what 2020-12 has, and refuses it, but not what nobody has."""

    def changed(self, schema):
        return without(schema, lambda key, part: key in ("minimun", "requird", "any_of", "$type"))


class ChecksSchemasLate(Broken):
    def compile(self, schema):
        try:
            return super().compile(schema)
        except SchemaUnsupported as error:
            if "not handled" in str(error) or (isinstance(schema, dict) and "://" in json.dumps(schema, default=str)):
                raise
            return lambda value: self.plain.compile(schema)(value)  # noqa: PLW0108 - late


class RaisesOnMalformedSchemas(Broken):
    def compile(self, schema):
        schema.get("type")
        return super().compile(schema)


class FetchesReferences(Broken):
    def compile(self, schema):
        reference = schema.get("$ref", "")
        if reference.startswith("http"):
            urllib.request.urlopen(reference).close()
        return super().compile(schema)


class TakesRemoteReferences(Broken):
    def changed(self, schema):
        return without(schema, lambda key, part: key in ("$ref", "$dynamicRef") and "://" in str(part))


class TakesObjectsForArrays(Broken):
    def told(self, faults, value, schema):
        return [fault for fault in faults if not fault.endswith(("got object", "got string", "got null"))]


class ChecksFormats(Broken):
    def told(self, faults, value, schema):
        formatted = isinstance(schema, dict) and schema.get("format") == "date"
        return ["$: expected a date"] if formatted and value == "nothing of the kind" else faults


class TellsTheFirstOnly(Broken):
    def told(self, faults, value, schema):
        return faults[:1]


class TellsOfAllAlternatives(Broken):
    def told(self, faults, value, schema):
        if isinstance(schema, dict) and "anyOf" in str(schema.get("items")) and faults:
            return [f"$[0]: none of 4 alternatives fits: {faults}"] * 3
        return faults


class HasNoBottom(Broken):
    def compile(self, schema):
        def depth(value):
            return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0

        validate = super().compile(schema)
        return lambda value: validate(value) if depth(value) >= 0 else []


class GivesUpEarly(Broken):
    def told(self, faults, value, schema):
        return faults or (["$: too deep"] if str(value).startswith("[" * 30) else [])


class GivesUpOnChains(Broken):
    """What a validator says that would take for ever: it gives up, though the chain is valid."""

    def told(self, faults, value, schema):
        return faults or (["$: too entangled"] if isinstance(value, dict) and str(value).count("inner") > 30 else [])


class FailsOnHugeNumbers(Broken):
    def told(self, faults, value, schema):
        str(value)
        return faults


class ShowsEverything(Broken):
    def told(self, faults, value, schema):
        return [f"{fault} in {value!a}" if isinstance(value, str) else fault for fault in faults]


class ChangesTheSchema(Broken):
    def changed(self, schema):
        if isinstance(schema, dict) and schema.get("type") == "array":
            schema.setdefault("title", "seen")
        return schema


class KeepsTheSchema(Broken):
    def compile(self, schema):
        super().compile(schema)
        return lambda value: self.plain.compile(schema)(value)  # noqa: PLW0108 - late


class ChangesTheValue(Broken):
    def told(self, faults, value, schema):
        if isinstance(value, list) and not faults:
            value.append(None)
        return faults


class KeepsTheValue(Broken):
    def told(self, faults, value, schema):
        self.last = value
        return faults


class MixesThreads(Broken):
    def compile(self, schema):
        validate = self.plain.compile(schema)

        def check(value):
            self.value = value
            threading.Event().wait(0.0005)
            return validate(self.value)

        return check


class ReturnsATuple(Broken):
    def told(self, faults, value, schema):
        return tuple(faults)


BROKEN = {
    Nameless: "test_the_name_is_filled",
    PassesOverUniqueness: "test_it_knows_every_keyword_that_core_emits",
    TakesTrueForOne: "test_it_knows_every_keyword_that_core_emits",
    LosesThePlace: "test_it_knows_every_keyword_that_core_emits",
    ReturnsATuple: "test_it_knows_every_keyword_that_core_emits",
    PassesOverWhatItDoesNotKnow: "test_it_knows_a_keyword_or_refuses_it",
    PassesOverMisspeltWords: "test_a_keyword_that_nobody_knows_is_refused",
    ChecksSchemasLate: "test_a_malformed_schema_is_refused_when_it_is_compiled",
    RaisesOnMalformedSchemas: "test_a_malformed_schema_is_refused_when_it_is_compiled",
    FetchesReferences: "test_references_are_never_fetched",
    TakesRemoteReferences: "test_references_are_never_fetched",
    TakesObjectsForArrays: "test_it_agrees_with_the_reference_on_the_schemas_of_types",
    ChecksFormats: "test_a_format_is_said_and_not_checked",
    TellsTheFirstOnly: "test_every_fault_is_told_at_once",
    TellsOfAllAlternatives: "test_a_fault_of_alternatives_tells_what_is_wrong_with_the_one_that_was_meant",
    HasNoBottom: "test_a_schema_or_value_that_is_too_deep_is_refused",
    GivesUpEarly: "test_a_schema_or_value_that_is_too_deep_is_refused",
    GivesUpOnChains: "test_alternatives_that_meet_again_at_every_level_take_no_time_that_doubles",
    FailsOnHugeNumbers: "test_odd_values_are_judged_like_any",
    ShowsEverything: "test_odd_values_are_judged_like_any",
    ChangesTheSchema: "test_it_keeps_and_changes_neither_schema_nor_value",
    KeepsTheSchema: "test_it_keeps_and_changes_neither_schema_nor_value",
    ChangesTheValue: "test_it_keeps_and_changes_neither_schema_nor_value",
    KeepsTheValue: "test_it_keeps_and_changes_neither_schema_nor_value",
    MixesThreads: "test_threads_may_check_and_compile_at_once",
}


def failures(make: Callable[[], Any], tests: list[str] | None = None, *, complete: bool = False) -> Iterator[str]:
    kit = type("Kit", (SchemaValidatorKit,), {"complete": complete})
    for name in tests or [name for name, _ in inspect.getmembers(kit) if name.startswith("test_")]:
        try:
            getattr(kit(), name)(make())
        except (Exception, pytest.fail.Exception):
            yield name


@pytest.mark.parametrize(("variant", "test"), BROKEN.items(), ids=lambda value: getattr(value, "__name__", None))
def test_a_fault_is_caught_by_the_test_that_names_it(variant: type[Broken], test: str) -> None:
    assert list(failures(variant, [test])) == [test], f"{test} finds nothing wrong with {variant.__name__}"


def test_every_variant_is_tried_and_every_test_of_the_kit_catches_one() -> None:
    assert set(BROKEN) == set(Broken.__subclasses__())
    assert set(BROKEN.values()) == {name for name, _ in inspect.getmembers(SchemaValidatorKit) if name[:5] == "test_"}


def test_the_kit_finds_nothing_wrong_with_the_wrapper_that_the_broken_ones_share() -> None:
    assert list(failures(Broken)) == []


def test_a_validator_that_says_it_is_complete_must_know_everything() -> None:
    assert list(failures(Broken, complete=True)) == ["test_it_knows_a_keyword_or_refuses_it"]
