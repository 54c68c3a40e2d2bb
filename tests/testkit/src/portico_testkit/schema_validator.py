"""JSON Schemas with values that they allow and values that they do not, keyword by keyword."""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from portico.errors import SchemaUnsupported
from portico.ports import SchemaValidator

__all__ = ["EVERYTHING", "MALFORMED", "PLAIN", "SchemaCase", "SchemaValidatorKit", "deep"]


@dataclass(frozen=True, slots=True)
class SchemaCase:
    """A schema, values that are valid under it, and others with the places where they are not."""

    schema: Any
    valid: Sequence[Any]
    invalid: Sequence[tuple[Any, Sequence[str]]]


_KINDS: dict[str, Any] = {"string": "a", "integer": 3, "boolean": True, "null": None, "array": [], "object": {}}

PLAIN: Sequence[SchemaCase] = (
    *(
        SchemaCase({"type": name}, [value], [(other, ["$"]) for kind, other in _KINDS.items() if kind != name])
        for name, value in _KINDS.items()
    ),
    SchemaCase({}, list(_KINDS.values()), []),
    SchemaCase({"type": "number"}, [1, 1.5, -2, 1e300], [(True, ["$"]), ("1", ["$"]), (None, ["$"])]),
    SchemaCase({"type": "integer"}, [0, -1, 2.0, 10**30], [(2.5, ["$"]), (False, ["$"]), ("2", ["$"])]),
    SchemaCase({"type": ["string", "null"]}, ["", None], [(1, ["$"]), ([], ["$"])]),
    SchemaCase(
        {"enum": ["a", 1, None, [1]]}, ["a", 1, 1.0, None, [1.0]], [(True, ["$"]), ("b", ["$"]), ([True], ["$"])]
    ),
    SchemaCase({"const": {"a": [False]}}, [{"a": [False]}], [({"a": [0]}, ["$"]), ({}, ["$"])]),
    SchemaCase({"const": 0}, [0, 0.0], [(False, ["$"]), ("0", ["$"])]),
    SchemaCase(
        {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3},
        [[1], [1, 2, 3]],
        [([], ["$"]), ([1, 2, 3, 4], ["$"]), ([1, "b", None], ["$[1]", "$[2]"])],
    ),
    SchemaCase(
        {"prefixItems": [{"type": "string"}, {"type": "integer"}], "items": {"type": "null"}},
        [["a", 1], ["a"], [], ["a", 1, None], "x"],
        [([1, "a"], ["$[0]", "$[1]"]), (["a", 1, 2], ["$[2]"])],
    ),
    SchemaCase(
        {"uniqueItems": True}, [[1, "1", True, [1], {}], []], [([1, 1.0], ["$"]), ([{"a": 1}, {"a": 1}], ["$"])]
    ),
    SchemaCase(
        {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b c": {"type": "array", "items": {"type": "string"}}},
            "required": ["a"],
            "additionalProperties": False,
        },
        [{"a": 1}, {"a": 1, "b c": ["x"]}],
        [({}, ["$"]), ({"a": "x", "b c": [1]}, ["$.a", "$.b c[0]"]), ({"a": 1, "d": 2}, ["$"])],
    ),
    SchemaCase({"additionalProperties": {"type": "integer"}}, [{}, {"a": 1}, 5], [({"a": 1, "b": "x"}, ["$.b"])]),
    SchemaCase({"properties": {"a": False}}, [{}, {"b": 1}], [({"a": 1}, ["$.a"])]),
    SchemaCase({"anyOf": [{"type": "integer"}, {"type": "null"}]}, [1, None], [("x", ["$"]), (1.5, ["$"])]),
    SchemaCase(
        {
            "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}, "required": ["id"]}},
            "$ref": "#/$defs/node",
        },
        [{"id": 1}, {"id": 1, "next": {"id": 2}}],
        [({"id": 1, "next": {}}, ["$.next"]), ({"id": 1, "next": {"id": 1, "next": 5}}, ["$.next.next"])],
    ),
)
"""The keywords that core emits: every validator knows these."""

EVERYTHING: Sequence[SchemaCase] = (
    SchemaCase({"minimum": 0, "maximum": 5}, [0, 5, "x", True], [(-1, ["$"]), (5.5, ["$"])]),
    SchemaCase({"minLength": 2, "maxLength": 3}, ["ab", "🙂🙂🙂", 5], [("a", ["$"]), ("abcd", ["$"])]),
    SchemaCase({"pattern": "^a+$"}, ["aaa", 5], [("b", ["$"]), ("a\n", ["$"]), ("xa", ["$"])]),
    SchemaCase(
        {"patternProperties": {"^n_": {"type": "integer"}}, "additionalProperties": {"type": "string"}},
        [{"n_a": 1, "b": "x"}],
        [({"n_a": "x", "b": 1}, ["$.n_a", "$.b"])],
    ),
    SchemaCase(
        {"dependentSchemas": {"a": {"properties": {"b": {"type": "integer"}}}}},
        [{"b": "x"}, {"a": 1, "b": 2}],
        [({"a": 1, "b": "x"}, ["$.b"])],
    ),
    SchemaCase(
        {"contains": {"type": "integer"}, "minContains": 2, "maxContains": 3},
        [[1, 2, "x"], [1, 2, 3]],
        [([1], ["$"]), ([1, 2, 3, 4], ["$"])],
    ),
    SchemaCase({"allOf": [{"minimum": 1}, {"maximum": 3}]}, [2], [(0, ["$"]), (4, ["$"])]),
    SchemaCase({"oneOf": [{"type": "integer"}, {"minimum": 3}]}, [1, 3.5], [(5, ["$"]), (1.5, ["$"])]),
    SchemaCase({"not": {"type": "string"}}, [1, None], [("x", ["$"])]),
    SchemaCase(
        {"if": {"type": "integer"}, "then": {"minimum": 3}, "else": {"type": "string"}},
        [3, "x"],
        [(1, ["$"]), (None, ["$"])],
    ),
    SchemaCase(
        {"allOf": [{"properties": {"a": {"type": "integer"}}}], "unevaluatedProperties": False},
        [{}, {"a": 1}],
        [({"a": 1, "b": 2}, ["$"])],
    ),
    SchemaCase(
        {"$defs": {"a": {"$anchor": "here", "type": "integer"}}, "properties": {"x": {"$ref": "#here"}}},
        [{"x": 1}],
        [({"x": "y"}, ["$.x"])],
    ),
    SchemaCase(
        {"title": "t", "description": "d", "default": 5, "examples": [1], "deprecated": True, "readOnly": True,
         "writeOnly": False, "$comment": "c", "contentEncoding": "base64", "contentMediaType": "text/plain"},
        ["%", 5],
        [],
    ),
)  # fmt: skip
"""What the rest of 2020-12 can say: a validator knows a keyword of these or refuses it."""

MALFORMED: Sequence[Any] = (
    5, None, [], "string", {"type": "date"}, {"type": 5}, {"type": {"string": 1}}, {"enum": 3}, {"properties": []},
    {"properties": {"a": 5}}, {"items": "string"}, {"anyOf": None}, {"prefixItems": 2}, {"required": 1},
    {"minItems": "2"}, {"minItems": -1}, {"$ref": 3}, {"$ref": "#/$defs/missing"}, {"$defs": [], "$ref": "#/$defs/a"},
    {"$defs": {"a": 5}, "$ref": "#/$defs/a"}, {"properties": {"a": {"items": [{}]}}},
    {"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
    {"$defs": {"a": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"},
)  # fmt: skip


def deep(levels: int, inner: Any = None) -> Any:
    """Return an array in an array, so many levels deep."""
    value: Any = [] if inner is None else inner
    for _ in range(levels):
        value = [value]
    return value


_LEVELS = 50


class SchemaValidatorKit:
    """Subclass it and give a fixture named ``schema_validator``::

        class TestAcmeValidator(SchemaValidatorKit):
            complete = True

            @pytest.fixture
            def schema_validator(self) -> AcmeValidator:
                return AcmeValidator(AcmeSettings(), None)

    ``complete`` says that it knows all of JSON Schema 2020-12; one that does not refuses what it does not know.
    """

    complete: ClassVar[bool] = False

    def test_the_name_is_filled(self, schema_validator: SchemaValidator) -> None:
        assert isinstance(schema_validator.name, str), f"its name is {schema_validator.name!r}"
        assert schema_validator.name.strip(), "its name is empty"

    def test_it_knows_every_keyword_that_core_emits(self, schema_validator: SchemaValidator) -> None:
        for case in PLAIN:
            _check_case(schema_validator.compile(case.schema), case)

    def test_it_knows_a_keyword_or_refuses_it(self, schema_validator: SchemaValidator) -> None:
        for case in EVERYTHING:
            try:
                validate = schema_validator.compile(case.schema)
            except SchemaUnsupported:
                if self.complete:
                    raise
                continue
            _check_case(validate, case)

    def test_a_malformed_schema_is_refused_when_it_is_compiled(self, schema_validator: SchemaValidator) -> None:
        for schema in MALFORMED:
            try:
                schema_validator.compile(schema)
            except SchemaUnsupported as error:
                assert str(error), f"{schema!r} is refused without a reason"
            except Exception as error:
                raise AssertionError(f"{schema!r}: compile raised {error!r}, not SchemaUnsupported") from error
            else:
                raise AssertionError(f"it took the malformed schema {schema!r}")

    def test_references_are_never_fetched(self, schema_validator: SchemaValidator) -> None:
        for reference in ("http://127.0.0.1:9/schema.json#/$defs/a", f"file://{__file__}"):
            for schema in ({"$ref": reference}, {"properties": {"a": {"$dynamicRef": reference}}}):
                with pytest.raises(SchemaUnsupported):
                    schema_validator.compile(schema)

    def test_every_fault_is_told_at_once(self, schema_validator: SchemaValidator) -> None:
        schema = {
            "type": "object",
            "properties": {"a": {"type": "array", "items": {"type": "integer"}}, "b": {"enum": ["x", 1]}},
            "required": ["a", "c"],
            "additionalProperties": False,
        }
        faults = _faults(schema_validator.compile(schema), {"a": [1, "2", 2.5], "b": True, "d": 0})
        assert sorted(map(_place, faults)) == ["$", "$", "$.a[1]", "$.a[2]", "$.b"], f"it told {faults}"
        for word in ("'c'", "'d'", "integer", "string", "'x'"):
            assert any(word in fault for fault in faults), f"no fault speaks of {word}: {faults}"

    def test_a_schema_or_value_that_is_too_deep_is_refused(self, schema_validator: SchemaValidator) -> None:
        recursive = {"$defs": {"list": {"type": "array", "items": {"$ref": "#/$defs/list"}}}, "$ref": "#/$defs/list"}
        validate = schema_validator.compile(recursive)
        assert _faults(validate, deep(_LEVELS)) == []
        wrong = _faults(validate, deep(_LEVELS, inner=5))
        assert [_place(fault) for fault in wrong] == ["$" + "[0]" * _LEVELS]
        assert _faults(validate, deep(20_000)), "a value of 20,000 levels is checked to its end"
        assert _faults(validate, [1]), "after a value that was too deep it finds nothing"
        schema: Any = {}
        for _ in range(20_000):
            schema = {"items": schema}
        with pytest.raises(SchemaUnsupported):
            schema_validator.compile(schema)

    def test_it_keeps_and_changes_neither_schema_nor_value(self, schema_validator: SchemaValidator) -> None:
        for case in PLAIN:
            schema = copy.deepcopy(case.schema)
            validate = schema_validator.compile(schema)
            assert schema == case.schema, "it changed the schema"
            schema.clear()
            schema["type"] = "null"
            _check_case(validate, case)
            for value in (value for value in case.valid if isinstance(value, list | dict)):
                before, kept = copy.deepcopy(value), sys.getrefcount(value)
                validate(value)
                assert value == before, f"it changed {before!r} to {value!r}"
                assert sys.getrefcount(value) == kept, f"it still holds {value!r}"


def _check_case(validate: Callable[[Any], list[str]], case: SchemaCase) -> None:
    for value in case.valid:
        assert not (told := _faults(validate, value)), f"{case.schema!r} refuses {value!r}: {told}"
    for value, places in case.invalid:
        faults = _faults(validate, value)
        assert faults, f"{case.schema!r} takes {value!r}"
        found = list(dict.fromkeys(map(_place, faults)))
        assert sorted(found) == sorted(places), f"{case.schema!r} and {value!r}: {faults}"


def _faults(validate: Callable[[Any], list[str]], value: Any) -> list[str]:
    try:
        faults = validate(value)
    except Exception as error:
        raise AssertionError(f"validating raised {error!r}") from error
    assert isinstance(faults, list), f"validating returned {type(faults).__name__}, not a list"
    for fault in faults:
        assert isinstance(fault, str), f"a fault is {fault!r}, not a str"
        assert re.match(r"\$.*?: \S", fault, re.DOTALL), f"the fault {fault!r} does not begin with its place"
    return faults


def _place(fault: str) -> str:
    return fault.partition(": ")[0]
