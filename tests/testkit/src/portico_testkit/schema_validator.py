"""What every SchemaValidator must do."""

from __future__ import annotations

import copy
import re
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, ClassVar

import pytest

from portico.errors import SchemaUnsupported
from portico.ports import SchemaValidator
from portico_testkit.schema_cases import EVERYTHING, MALFORMED, ODD_VALUES, PLAIN, SchemaCase, deep

__all__ = ["SchemaValidatorKit"]

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
        """People read it."""
        assert isinstance(schema_validator.name, str), f"its name is {schema_validator.name!r}"
        assert schema_validator.name.strip(), "its name is empty"

    def test_it_knows_every_keyword_that_core_emits(self, schema_validator: SchemaValidator) -> None:
        """With what each means, to the letter: 1 and 1.0 are equal, 1 and true are not."""
        for case in PLAIN:
            _check_case(schema_validator.compile(case.schema), case)

    def test_it_knows_a_keyword_or_refuses_it(self, schema_validator: SchemaValidator) -> None:
        """One that is passed over would let anything through."""
        for case in EVERYTHING:
            try:
                validate = schema_validator.compile(case.schema)
            except SchemaUnsupported:
                if self.complete:
                    raise
                continue
            _check_case(validate, case)

    def test_a_malformed_schema_is_refused_when_it_is_compiled(self, schema_validator: SchemaValidator) -> None:
        """Not when the first value comes; one that refers to itself without an end is malformed, too."""
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
        """A schema from outside could else send requests from inside."""
        with _server() as (address, requests):
            for reference in (address, f"{address}#/$defs/a", f"file://{__file__}"):
                for schema in ({"$ref": reference}, {"properties": {"a": {"$dynamicRef": reference}}}):
                    with pytest.raises(SchemaUnsupported):
                        schema_validator.compile(schema)
            assert requests == [], "it fetched a reference"

    def test_every_fault_is_told_at_once(self, schema_validator: SchemaValidator) -> None:
        """So that a model can mend all of them."""
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
        """And 50 levels are not too deep."""
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
        """Whatever Python's JSON parser gives: faults or none, no exception."""
        for case in (*PLAIN, *EVERYTHING):
            try:
                validate = schema_validator.compile(case.schema)
            except SchemaUnsupported:
                continue
            for value in (*ODD_VALUES, *([odd] for odd in ODD_VALUES), *({"a": odd} for odd in ODD_VALUES)):
                for fault in _faults(validate, value):
                    assert len(fault) < 1_000, f"a fault of {len(fault)} characters"

    def test_it_keeps_and_changes_neither_schema_nor_value(self, schema_validator: SchemaValidator) -> None:
        """Schemas and values belong to others, who may change them."""
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
        """Each has its own value."""
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
