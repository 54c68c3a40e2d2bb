"""The settings, the bounds, and the words of the validator."""

from __future__ import annotations

import logging
import subprocess
import sys
from typing import Any

import pytest

from portico.errors import SchemaUnsupported
from portico_basics.config import JsonschemaSettings
from portico_basics.jsonschema.validator import JsonschemaValidator


def faults(schema: Any, value: Any, **settings: Any) -> list[str]:
    return JsonschemaValidator(JsonschemaSettings(**settings)).compile(schema)(value)


def refused(schema: Any, **settings: Any) -> str:
    with pytest.raises(SchemaUnsupported) as caught:
        JsonschemaValidator(JsonschemaSettings(**settings)).compile(schema)
    return str(caught.value)


@pytest.mark.parametrize(
    ("schema", "value", "told"),
    [
        ({"type": ["integer", "null"]}, "x", "$: expected integer or null, got string"),
        ({"enum": ["a", 1, None]}, "b", "$: expected one of 'a', 1, None"),
        ({"const": {"a": 1}}, 5, "$: expected {'a': 1}"),
        ({"minimum": 1}, 0.5, "$: expected at least 1, got 0.5"),
        ({"exclusiveMaximum": 3}, 3, "$: expected less than 3, got 3"),
        ({"multipleOf": 0.1}, 0.25, "$: expected a multiple of 0.1, got 0.25"),
        ({"maxLength": 2}, "abc", "$: expected at most 2 characters, got 3"),
        ({"minItems": 2}, [1], "$: expected at least 2 elements, got 1"),
        ({"maxProperties": 0}, {"a": 1}, "$: expected at most 0 keys, got 1"),
        ({"uniqueItems": True}, [1, 1], "$: the elements are not all different"),
        ({"pattern": "^a$"}, "b", "$: expected a string that matches '^a$'"),
        ({"required": ["a"]}, {}, "$: 'a' is a required property"),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, "$: 'b' is a dependency of 'a'"),
        ({"additionalProperties": False}, {"a": 1}, "$: Additional properties are not allowed ('a' was unexpected)"),
        ({"unevaluatedProperties": False}, {"a": 1}, "$: Unevaluated properties are not allowed ('a' was unexpected)"),
        ({"unevaluatedItems": False}, [1], "$: Unevaluated items are not allowed (1 was unexpected)"),
        ({"propertyNames": {"maxLength": 1}}, {"ab": 1}, "$: the key 'ab': expected at most 1 characters, got 2"),
        ({"contains": {"const": 1}}, [2], "$: [2] does not contain items matching the given schema"),
        ({"contains": {}, "maxContains": 1}, [1, 2], "$: Too many items match the given schema (expected at most 1)"),
        ({"not": {"type": "null"}}, None, "$: this value is not allowed"),
        ({"oneOf": [{}, True, False]}, 1, "$: more than one alternative fits, where only one may"),
        (False, 1, "$: this value is not allowed"),
        ({"properties": {"a": {"items": False}}}, {"a": [1]}, "$.a[0]: this value is not allowed"),
        ({"if": True, "then": {"required": ["b"]}}, {}, "$: 'b' is a required property"),
    ],
    ids=str,
)
def test_a_fault_is_a_sentence_with_its_place(schema: Any, value: Any, told: str) -> None:
    assert faults(schema, value) == [told]


def shape(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"kind": {"const": kind}, **more}, "required": ["kind"]}


def test_of_alternatives_only_what_is_wrong_with_the_one_that_was_meant_is_told() -> None:
    schema = {"oneOf": [shape("a", n={"type": "integer"}), shape("b", n={"type": "string"}), {"type": "array"}]}
    assert faults(schema, {"kind": "b", "n": 1}) == ["$.n: expected string, got integer"]
    assert faults(schema, 5) == ["$: expected object or array, got integer"]
    assert faults(schema, {"kind": "c"}) == ["$: none of 3 alternatives fits; the nearest: $.kind: expected 'a'"]
    assert faults({"anyOf": [schema, {"type": "null"}]}, "x") == ["$: expected object or array, got string"]
    assert faults({"items": {"anyOf": [{"minimum": 5}, {"maximum": 1}]}}, [3]) == [
        "$[0]: none of 2 alternatives fits; the nearest: $[0]: expected at least 5, got 3"
    ]


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"minimun": 3}, "#: 'minimun' is not a keyword of JSON Schema 2020-12."),
        ({"items": {"nullable": True}}, "#/items: 'nullable' is not a keyword of JSON Schema 2020-12."),
        ({"markdown": ""}, "#: 'markdown' is not a keyword of JSON Schema 2020-12. Name it in `annotations`"),
        ({"properties": {"a": {"type": "int"}}}, "The schema is malformed at #/properties/a/type: 'int' is not"),
        ({"$ref": "other.json"}, "#: the reference 'other.json' leads to nothing within the schema."),
        ({"$ref": "#/title", "title": "x"}, "#: the reference '#/title' leads to what no keyword has as a schema"),
        ({"$ref": "#/default", "default": {"type": "null"}}, "leads to what no keyword has as a schema"),
        ({"allOf": [{"$ref": "#"}]}, "the schema refers to itself without an end"),
        ({"not": {"$dynamicRef": "#x"}, "$dynamicAnchor": "x"}, "the schema refers to itself without an end"),
        ({"$schema": "https://example.org/mine"}, "#: 'https://example.org/mine' is not a dialect of JSON Schema"),
        ({"const": float("nan")}, "The schema is not JSON"),
    ],
    ids=str,
)  # fmt: skip
def test_a_schema_that_cannot_be_used_is_refused_with_place_and_reason(schema: Any, told: str) -> None:
    assert told in refused(schema)


def test_an_older_dialect_is_taken_where_it_means_the_same() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"a": {"$ref": "#/definitions/a", "description": "said beside it"}},
        "definitions": {"a": {"type": "integer"}},
        "x-note": {"anything": 1},
    }
    assert faults(schema, {"a": "x"}) == ["$.a: expected integer, got string"]
    assert "malformed at #/items" in refused({"$schema": schema["$schema"], "items": [{"type": "string"}]})


def test_a_keyword_is_passed_over_when_the_settings_name_it() -> None:
    assert faults({"markdown": "**a**", "type": "null"}, 1, annotations=("markdown",)) == [
        "$: expected null, got integer"
    ]


@pytest.mark.parametrize(
    ("format", "yes", "no"),
    [
        ("date", ["2026-02-01"], ["2026-02-30", "x"]),
        ("date-time", ["2026-02-01T08:00:00Z", "2026-02-01T08:00:00"], ["2026-02-01T25:00:00Z"]),
        ("time", ["08:00:00", "00:00:00+01:00"], ["8"]),
        ("duration", ["P1DT2H", "PT5S", "P2W", "P1Y2M"], ["P", "1D", "PT", "P1S"]),
        ("decimal", ["1.10", "1E+5", "0"], ["many"]),
        ("uuid", ["6F2C1BD0-3c1b-4e7e-9c39-000000000001"], ["6f2c"]),
        ("email", ["a@b.c", "é@b"], ["a", "@b", "a b@c"]),
        ("ipv4", ["1.2.3.4"], ["1.2.3", "01.2.3.4"]),
        ("ipv6", ["::1"], [":"]),
        ("uri", ["https://a/b?c#d", "urn:x"], ["/a", "a b:c"]),
        ("regex", ["^a+$", "(?=a)"], ["("]),
    ],
)
def test_a_format_is_checked_when_the_settings_say_so(format: str, yes: list[str], no: list[str]) -> None:
    validate = JsonschemaValidator(JsonschemaSettings(formats=True)).compile({"format": format})
    assert [text for text in yes if validate(text)] == []
    assert [text for text in no if not validate(text)] == []
    assert validate(5) == [], "a format speaks of strings"
    assert validate(no[0]) == [f"$: expected a string of the format {format!r}"]


def test_a_format_that_cannot_be_checked_is_refused_when_formats_are() -> None:
    assert faults({"format": "of-mine"}, "x") == []
    assert refused({"items": {"format": "of-mine"}}, formats=True).startswith("#/items: the format 'of-mine' cannot be")


def test_a_check_that_takes_too_many_steps_is_given_up_as_a_fault() -> None:
    again = {"$dynamicAnchor": "n", "allOf": [{"properties": {"n": {"$dynamicRef": "#n"}}}] * 2}
    value: Any = {}
    for _ in range(40):
        value = {"n": value}
    assert faults(again, value) == ["$: too large or too entangled to be checked: it takes more steps than it may"]
    large = [{"id": number, "tags": ["a", "b"]} for number in range(20_000)]
    shape = {"type": "object", "properties": {"id": {"type": "integer", "minimum": 0}, "tags": {"uniqueItems": True}}}
    assert faults({"items": {**shape, "required": ["id"]}}, large) == [], "what is large may take more"


def test_a_reference_is_looked_up_and_never_fetched(monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    def refuse(*arguments: Any, **options: Any) -> Any:
        raise AssertionError("it went to the network")

    monkeypatch.setattr("urllib.request.urlopen", refuse)
    with caplog.at_level(logging.DEBUG):
        assert "never fetched" in refused({"$id": "https://example.org/a", "items": {"$ref": "b"}})
    assert faults({"$id": "https://example.org/a", "$defs": {"b": {"$id": "b", "type": "null"}}, "$ref": "b"}, 1) == [
        "$: expected null, got integer"
    ]


def test_a_schema_is_compiled_once_and_what_is_done_to_it_afterwards_changes_nothing() -> None:
    validator = JsonschemaValidator()
    schema: dict[str, Any] = {"type": "array", "items": {"type": "integer"}}
    validate = validator.compile(schema)
    assert validator.compile(dict(schema)) is validate
    schema["items"]["type"] = "string"
    assert validate([1]) == []
    assert validator.compile(schema)([1]) == ["$[0]: expected string, got integer"]


def test_the_vendor_is_imported_when_a_schema_comes_and_not_before() -> None:
    code = """
import sys
import portico_basics._plugin, portico_basics.config
from portico_basics.jsonschema.validator import JsonschemaValidator
validator = JsonschemaValidator()
assert not {"jsonschema", "referencing"} & set(sys.modules)
assert validator.compile({"type": "null"})(None) == []
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("levels", [60, 200, 500, 900])
@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"$ref": "#"}}},
        {"additionalProperties": {"$dynamicRef": "#it"}, "$dynamicAnchor": "it"},
        {"anyOf": [{"allOf": [{"properties": {"a": {"$ref": "#"}}}]}]},
        {"properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {"b": {"$ref": "#/$defs/c"}, "c": {"$ref": "#"}}},
        {"properties": {"a": {"$ref": "#"}}, "unevaluatedProperties": False},
    ],
    ids=str,
)
def test_a_value_that_nests_too_deeply_is_a_fault_and_never_a_panic(schema: Any, levels: int) -> None:
    value: Any = {}
    for _ in range(levels):
        value = {"a": value}
    told = faults(schema, value)
    if levels >= 500:
        assert told == ["$: nested too deeply to be checked"]
    else:
        assert told in ([], ["$: nested too deeply to be checked"])
