"""A schema is malformed where the meta-schema of 2020-12 says so, and large ones are judged quickly."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator
from referencing._core import Resolver

from portico.errors import SchemaUnsupported
from portico_basics.jsonschema._dialect import _KNOWN
from portico_basics.jsonschema.validator import JsonschemaValidator

ARGUMENTS: list[Any] = [
    1,
    -1,
    0.5,
    "x",
    "#x#",
    [],
    ["a", "a"],
    [1],
    [{}],
    {},
    {"a": 1},
    {"a": {"type": "no"}},
    True,
    None,
]


@pytest.mark.parametrize("keyword", sorted(_KNOWN - {"$schema", "definitions"}))
def test_a_schema_is_malformed_where_the_meta_schema_says_so(keyword: str) -> None:
    vendor = Draft202012Validator(Draft202012Validator.META_SCHEMA)
    for argument in ARGUMENTS:
        schema = {"properties": {"p": {keyword: argument}}}
        try:
            JsonschemaValidator().compile(schema)
            told = ""
        except SchemaUnsupported as error:
            told = str(error)
        assert told.startswith("The schema is malformed at #/properties/p/") == (not vendor.is_valid(schema)), argument


def test_a_schema_is_judged_with_few_references_for_each_of_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    lookup = Resolver.lookup

    def look(self: Any, ref: str) -> Any:
        looked.append(ref)
        return lookup(self, ref)

    monkeypatch.setattr(Resolver, "lookup", look)
    parts = 200
    JsonschemaValidator().compile(
        {"properties": {f"p{one}": {"type": "string", "minLength": 1} for one in range(parts)}}
    )
    assert len(looked) < 5 * parts
