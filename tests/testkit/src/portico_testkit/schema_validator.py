"""JSON Schemas with values that they allow and values that they do not, keyword by keyword."""

from __future__ import annotations

import copy
import re
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, ClassVar

import pytest

from portico.errors import SchemaUnsupported
from portico.ports import SchemaValidator

__all__ = ["EVERYTHING", "MALFORMED", "ODD_VALUES", "PLAIN", "SchemaCase", "SchemaValidatorKit", "deep"]


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
    SchemaCase({"uniqueItems": False}, [[1, 1]], []),
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

_META = "https://json-schema.org/draft/2020-12/schema"

EVERYTHING: Sequence[SchemaCase] = (
    SchemaCase({"$schema": _META, "type": "null"}, [None], [(1, ["$"])]),
    SchemaCase({"minimum": 0, "maximum": 5}, [0, 5, "x", True], [(-1, ["$"]), (5.5, ["$"])]),
    SchemaCase({"exclusiveMinimum": 0, "exclusiveMaximum": 5}, [1, 4.5, "x"], [(0, ["$"]), (5, ["$"])]),
    SchemaCase({"multipleOf": 0.1}, [0.3, 1, -0.7, "x"], [(0.25, ["$"])]),
    SchemaCase({"multipleOf": 3}, [0, 3, 10**400 * 3, 9.0], [(4, ["$"]), (1e300 + 1, ["$"])]),
    SchemaCase({"minLength": 2, "maxLength": 3}, ["ab", "🙂🙂🙂", 5], [("a", ["$"]), ("abcd", ["$"])]),
    SchemaCase({"pattern": "^a+$"}, ["aaa", 5], [("b", ["$"]), ("a\n", ["$"]), ("xa", ["$"])]),
    SchemaCase({"pattern": r"\d\w"}, ["1a"], [("٣a", ["$"])]),
    SchemaCase({"minProperties": 1, "maxProperties": 1}, [{"a": 1}, []], [({}, ["$"]), ({"a": 1, "b": 2}, ["$"])]),
    SchemaCase({"propertyNames": {"maxLength": 2}}, [{"ab": 1}, 5], [({"abc": 1}, ["$"])]),
    SchemaCase(
        {"patternProperties": {"^n_": {"type": "integer"}}, "additionalProperties": {"type": "string"}},
        [{"n_a": 1, "b": "x"}],
        [({"n_a": "x", "b": 1}, ["$.n_a", "$.b"])],
    ),
    SchemaCase(
        {"properties": {"a": True}, "patternProperties": {"^x": True}, "additionalProperties": False},
        [{"a": 1, "xb": 2}],
        [({"b": 1}, ["$"])],
    ),
    SchemaCase({"dependentRequired": {"a": ["b"]}}, [{}, {"a": 1, "b": 2}, {"b": 1}], [({"a": 1}, ["$"])]),
    SchemaCase(
        {"dependentSchemas": {"a": {"properties": {"b": {"type": "integer"}}}}},
        [{"b": "x"}, {"a": 1, "b": 2}],
        [({"a": 1, "b": "x"}, ["$.b"])],
    ),
    SchemaCase({"contains": {"type": "integer"}}, [["a", 1], 5], [([], ["$"]), (["a"], ["$"])]),
    SchemaCase(
        {"contains": {"type": "integer"}, "minContains": 2, "maxContains": 3},
        [[1, 2, "x"], [1, 2, 3]],
        [([1], ["$"]), ([1, 2, 3, 4], ["$"])],
    ),
    SchemaCase({"contains": {"type": "integer"}, "minContains": 0}, [[], ["a"]], []),
    SchemaCase({"allOf": [{"minimum": 1}, {"maximum": 3}]}, [2], [(0, ["$"]), (4, ["$"])]),
    SchemaCase({"oneOf": [{"type": "integer"}, {"minimum": 3}]}, [1, 3.5], [(5, ["$"]), (1.5, ["$"])]),
    SchemaCase({"not": {"type": "string"}}, [1, None], [("x", ["$"])]),
    SchemaCase({"not": {}}, [], [(1, ["$"])]),
    SchemaCase(
        {"if": {"type": "integer"}, "then": {"minimum": 3}, "else": {"type": "string"}},
        [3, "x"],
        [(1, ["$"]), (None, ["$"])],
    ),
    SchemaCase({"then": False, "else": False}, [1, "x"], []),
    SchemaCase(
        {"allOf": [{"properties": {"a": {"type": "integer"}}}], "unevaluatedProperties": False},
        [{}, {"a": 1}],
        [({"a": 1, "b": 2}, ["$"])],
    ),
    SchemaCase({"prefixItems": [{"type": "string"}], "unevaluatedItems": False}, [["a"], []], [(["a", 1], ["$"])]),
    SchemaCase(
        {"$defs": {"a": {"$anchor": "here", "type": "integer"}}, "properties": {"x": {"$ref": "#here"}}},
        [{"x": 1}],
        [({"x": "y"}, ["$.x"])],
    ),
    SchemaCase(
        {
            "$id": "https://example.org/root",
            "$defs": {"part": {"$id": "part", "type": "integer"}},
            "items": {"$ref": "part"},
        },
        [[1]],
        [(["x"], ["$[0]"])],
    ),
    SchemaCase(
        {
            "$id": "https://example.org/strict",
            "$dynamicAnchor": "node",
            "$ref": "tree",
            "unevaluatedProperties": False,
            "$defs": {
                "tree": {
                    "$id": "tree",
                    "$dynamicAnchor": "node",
                    "type": "object",
                    "properties": {"data": True, "children": {"items": {"$dynamicRef": "#node"}}},
                }
            },
        },
        [{"data": 1, "children": [{"children": []}]}],
        [({"children": [{"daat": 1}]}, ["$.children[0]"])],
    ),
    SchemaCase({"$ref": _META}, [{"type": "integer"}, True], [({"type": "intger"}, ["$.type"])]),
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

ODD_VALUES: Sequence[Any] = (
    10**5_000, -(10**400), 1e308, 5e-324, -0.0, float("nan"), float("inf"), "half a \ud800 character", "\x00",
    "x" * 100_000, {"": {"": []}}, [[[[]]]], {"a\nb": 1}, list(range(1_000)),
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
        with _server() as (address, requests):
            for reference in (address, f"{address}#/$defs/a", f"file://{__file__}"):
                for schema in ({"$ref": reference}, {"properties": {"a": {"$dynamicRef": reference}}}):
                    with pytest.raises(SchemaUnsupported):
                        schema_validator.compile(schema)
            assert requests == [], "it fetched a reference"

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

    def test_odd_values_are_judged_like_any(self, schema_validator: SchemaValidator) -> None:
        for case in (*PLAIN, *EVERYTHING):
            try:
                validate = schema_validator.compile(case.schema)
            except SchemaUnsupported:
                continue
            for value in (*ODD_VALUES, *([odd] for odd in ODD_VALUES), *({"a": odd} for odd in ODD_VALUES)):
                for fault in _faults(validate, value):
                    assert len(fault) < 1_000, f"a fault of {len(fault)} characters"

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

    def test_threads_may_check_and_compile_at_once(self, schema_validator: SchemaValidator) -> None:
        validate = schema_validator.compile({"type": "array", "items": {"enum": [0, 1, 2]}})

        def check(number: int) -> Sequence[str]:
            own = schema_validator.compile({"const": number})
            assert own(number) == [], "a schema that was compiled in a thread is another's"
            return [_place(fault) for fault in validate([0] * number + [5])]

        with ThreadPoolExecutor(8) as pool:
            for number, places in enumerate(pool.map(check, range(200))):
                assert places == [f"$[{number}]"], f"the faults of one thread's value are {places}"


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


@contextmanager
def _server() -> Iterator[tuple[str, list[str]]]:
    """Serve a schema on this machine, and tell what was asked for."""
    requests: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requests.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"$defs": {"a": {"type": "integer"}}}')

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/schema.json", requests
        finally:
            server.shutdown()
            thread.join()
