"""What is decided about two schemas of objects or arrays, keyword by keyword; see `test_meeting_keywords.py`."""

from __future__ import annotations

from copy import deepcopy
from itertools import product
from typing import Any, TypeAlias

import jsonschema
import pytest

from portico.plans.checking.meeting import meeting

Row: TypeAlias = tuple[Any, Any, str]

TEXT, WHOLE, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}
OBJECT, ARRAY, NULL = {"type": "object"}, {"type": "array"}, {"type": "null"}
DAY = {"$ref": "#/$defs/Day"}
DAYS = {"$defs": {"Day": {"type": "string", "minLength": 1}}}


def text(**limits: Any) -> dict[str, Any]:
    return {**TEXT, **limits}


def whole(**limits: Any) -> dict[str, Any]:
    return {**WHOLE, **limits}


def number(**limits: Any) -> dict[str, Any]:
    return {**NUMBER, **limits}


def array(*fixed: Any, **limits: Any) -> dict[str, Any]:
    return {**ARRAY, **({"prefixItems": list(fixed)} if fixed else {}), **limits}


def having(properties: dict[str, Any] | None = None, **limits: Any) -> dict[str, Any]:
    """Give the schema of open objects."""
    return {**OBJECT, **({} if properties is None else {"properties": properties}), **limits}


def closed(properties: dict[str, Any], **limits: Any) -> dict[str, Any]:
    return having(properties, additionalProperties=False, **limits)


def both(*schemas: Any) -> dict[str, Any]:
    return {"allOf": list(schemas)}


def either(*schemas: Any) -> dict[str, Any]:
    return {"anyOf": list(schemas)}


PAIR = {"a": WHOLE, "b": TEXT}
DECIDED: dict[str, list[Row]] = {
    "properties": [
        (having({"a": WHOLE}), having({"a": NUMBER}), "always"),
        (having({"a": WHOLE}), having({"a": TEXT}), "maybe"),
        (having({"a": WHOLE}, required=["a"]), having({"a": TEXT}), "never"),
        (having({"a": TEXT}), having({"a": TEXT}, required=["a"]), "maybe"),
        (OBJECT, having({"a": TEXT}), "maybe"),
        (having({"b": TEXT}), having({"a": TEXT}), "maybe"),
        (closed({"b": TEXT}), having({"a": TEXT}), "always"),
        (having(additionalProperties=TEXT), having({"a": TEXT}), "always"),
        (having(additionalProperties=TEXT), having({"a": WHOLE}), "maybe"),
        (having({"a": WHOLE}, additionalProperties=TEXT), having({"a": WHOLE, "b": TEXT}), "always"),
        (having({"a": WHOLE}, additionalProperties=TEXT), having({"a": TEXT}), "maybe"),
        (having(PAIR), having(PAIR), "always"),
        (having(PAIR), having({"a": WHOLE, "b": WHOLE}), "maybe"),
        (having(PAIR), having({"a": TEXT, "b": TEXT}), "maybe"),
        (both(having({"a": WHOLE}), having({"b": TEXT})), having(PAIR), "always"),
        (
            both(having({"a": text(minLength=1)}), having({"a": text(maxLength=1)})),
            having({"a": text(minLength=1, maxLength=1)}),
            "always",
        ),
        (having({"a": text(minLength=1)}), {**having({"a": DAY}), **DAYS}, "always"),
        ({**having({"a": DAY}), **DAYS}, having({"a": text(minLength=1)}), "always"),
        ({**having({"a": DAY}), **DAYS}, having({"a": text(minLength=2)}), "maybe"),
        (having({"a": having({"b": WHOLE})}), having({"a": having({"b": NUMBER})}), "always"),
        (having({"a": having({"b": WHOLE})}), having({"a": having({"b": TEXT})}), "maybe"),
        (TEXT, {"properties": {"a": WHOLE}}, "always"),
        (having({"a": text(minLength=1), "b": TEXT}), {**having({"a": DAY, "b": DAY}), **DAYS}, "maybe"),
        (having({"a": TEXT, "b": text(minLength=1)}), {**having({"a": DAY, "b": DAY}), **DAYS}, "maybe"),
    ],
    "additionalProperties": [
        (OBJECT, having(additionalProperties=True), "always"),
        (having(additionalProperties=True), OBJECT, "always"),
        (having({"a": TEXT}), having({"b": TEXT}, additionalProperties=True), "maybe"),
        (having({"a": TEXT}), having({"a": TEXT}, additionalProperties=True), "always"),
        (OBJECT, having(additionalProperties={}), "always"),
        (OBJECT, having(additionalProperties=False), "maybe"),
        (having(additionalProperties=False), having(additionalProperties=False), "always"),
        (having(additionalProperties=False), having(additionalProperties=TEXT), "always"),
        (having(additionalProperties=TEXT), having(additionalProperties=False), "maybe"),
        (having(additionalProperties=TEXT), having(additionalProperties=TEXT), "always"),
        (having(additionalProperties=WHOLE), having(additionalProperties=NUMBER), "always"),
        (having(additionalProperties=NUMBER), having(additionalProperties=WHOLE), "maybe"),
        (closed({"a": WHOLE}), having(additionalProperties=WHOLE), "always"),
        (closed({"a": WHOLE}), having(additionalProperties=TEXT), "maybe"),
        (closed({"a": WHOLE}, required=["a"]), having(additionalProperties=TEXT), "never"),
        (closed({"a": WHOLE}, required=["a"]), having(additionalProperties=False), "never"),
        (closed({"a": WHOLE}), closed({"a": WHOLE}), "always"),
        (closed({"a": WHOLE}), closed(PAIR), "always"),
        (closed(PAIR), closed({"a": WHOLE}), "maybe"),
        (closed(PAIR, required=["b"]), closed({"a": WHOLE}), "never"),
        (closed({"a": False}), having(additionalProperties=False), "always"),
        (having({"a": TEXT}, additionalProperties=WHOLE), having(additionalProperties=WHOLE), "maybe"),
        (having({"a": WHOLE}, additionalProperties=TEXT), having({"a": WHOLE}, additionalProperties=TEXT), "always"),
        (having({"a": WHOLE}, additionalProperties=TEXT), having(additionalProperties=either(TEXT, WHOLE)), "always"),
        (having({"a": WHOLE}), having({"a": WHOLE}, additionalProperties=TEXT), "maybe"),
        (both(having(additionalProperties=WHOLE), having({"a": NUMBER})), having({"a": WHOLE}), "always"),
        (both(closed({"a": WHOLE}), having({"b": TEXT}, required=["b"])), OBJECT, "never"),
        (having(additionalProperties=text(minLength=1)), {**having(additionalProperties=DAY), **DAYS}, "always"),
        ({**having(additionalProperties=DAY), **DAYS}, having(additionalProperties=text(minLength=1)), "always"),
        (
            having(patternProperties={"^b": WHOLE}, additionalProperties=False),
            having(additionalProperties=False),
            "maybe",
        ),
        (having(patternProperties={"^b": WHOLE}, additionalProperties=TEXT), having({"b": TEXT}), "maybe"),
        (TEXT, {"additionalProperties": False}, "always"),
    ],
    "required": [
        (having(required=["a"]), having(required=["a"]), "always"),
        (having(required=["a", "b"]), having(required=["a"]), "always"),
        (having(required=["a", "b"]), having(required=["b", "a"]), "always"),
        (having(required=["a"]), having(required=["a", "b"]), "maybe"),
        (having(required=["b"]), having(required=["a", "b"]), "maybe"),
        (having({"a": TEXT}), having(required=["a"]), "maybe"),
        (OBJECT, having(required=[]), "always"),
        (closed({"a": TEXT}), having(required=["b"]), "never"),
        (closed({"a": TEXT}), having(required=["a"]), "maybe"),
        (both(having(required=["a"]), having(required=["b"])), having(required=["a", "b"]), "always"),
        (both(having(required=["a"]), OBJECT), having(required=["a"]), "always"),
        (TEXT, {"required": ["a"]}, "always"),
    ],
    "minProperties": [
        (having(minProperties=2), having(minProperties=1), "always"),
        (having(minProperties=2), having(minProperties=2), "always"),
        (having(minProperties=2), having(minProperties=3), "maybe"),
        (OBJECT, having(minProperties=0), "always"),
        (OBJECT, having(minProperties=1), "maybe"),
        (having(required=["a", "b"]), having(minProperties=1), "always"),
        (having(required=["a", "b"]), having(minProperties=2), "always"),
        (having(required=["a", "b"]), having(minProperties=3), "maybe"),
        (having(required=["a", "a"]), having(minProperties=2), "maybe"),
        (having(required=["a"], minProperties=2), having(minProperties=2), "always"),
        (having(PAIR), having(minProperties=1), "maybe"),
        (having(minProperties=2), having(maxProperties=1), "never"),
        (having(minProperties=2), having(maxProperties=2), "maybe"),
        (both(having(minProperties=1), having(minProperties=2)), having(minProperties=2), "always"),
        (both(having(required=["a"]), having(required=["b"])), having(minProperties=2), "always"),
        (ARRAY, {"minProperties": 1}, "always"),
    ],
    "maxProperties": [
        (having(maxProperties=2), having(maxProperties=1), "maybe"),
        (having(maxProperties=2), having(maxProperties=2), "always"),
        (having(maxProperties=2), having(maxProperties=3), "always"),
        (OBJECT, having(maxProperties=1), "maybe"),
        (having({"a": TEXT}), having(maxProperties=1), "maybe"),
        (closed(PAIR), having(maxProperties=1), "maybe"),
        (closed(PAIR), having(maxProperties=2), "always"),
        (closed(PAIR), having(maxProperties=3), "always"),
        (closed(PAIR, maxProperties=1), having(maxProperties=1), "always"),
        (closed({}), having(maxProperties=0), "always"),
        (having({"a": TEXT}, additionalProperties=both(TEXT, WHOLE)), having(maxProperties=1), "always"),
        (both(having(maxProperties=2), having(maxProperties=1)), having(maxProperties=1), "always"),
        (both(having(maxProperties=1), having(maxProperties=2)), having(maxProperties=1), "always"),
        (having(maxProperties=1), having(minProperties=2), "never"),
        (having(maxProperties=1), having(minProperties=1), "maybe"),
        (array(maxItems=1), {"maxProperties": 1}, "always"),
        (array(maxProperties=1), array(maxItems=1), "maybe"),
    ],
    "items": [
        (array(items=WHOLE), array(items=NUMBER), "always"),
        (array(items=NUMBER), array(items=WHOLE), "maybe"),
        (array(items=WHOLE), array(items=TEXT), "maybe"),
        (array(items=WHOLE, minItems=1), array(items=TEXT), "never"),
        (ARRAY, array(items=TEXT), "maybe"),
        (array(items=TEXT), array(items={}), "always"),
        (ARRAY, array(items=True), "always"),
        (array(items=False), array(items=TEXT), "always"),
        (array(items=TEXT), array(items=False), "maybe"),
        (array(items=TEXT, minItems=1), array(items=False), "never"),
        (array(items=TEXT, maxItems=0), array(items=WHOLE), "always"),
        (array(items=TEXT, maxItems=0), array(items=False), "always"),
        (array(items=TEXT, maxItems=1), array(items=False), "maybe"),
        (array(WHOLE, items=WHOLE), array(items=WHOLE), "always"),
        (array(WHOLE, items=TEXT), array(items=TEXT), "maybe"),
        (array(WHOLE, items=TEXT), array(items=WHOLE), "maybe"),
        (array(WHOLE, items=False), array(items=WHOLE), "always"),
        (array(WHOLE, TEXT, items=False), array(items=WHOLE), "maybe"),
        (array(WHOLE, TEXT, items=False), array(items=either(WHOLE, TEXT)), "always"),
        (array(WHOLE, maxItems=1), array(items=WHOLE), "always"),
        (array(WHOLE, maxItems=2), array(items=WHOLE), "maybe"),
        (array(WHOLE, False), array(items=WHOLE), "always"),
        (array(WHOLE, TEXT, NULL, items=False), array(WHOLE, items=either(TEXT, NULL)), "always"),
        (array(WHOLE, TEXT, NULL, items=False), array(WHOLE, items=TEXT), "maybe"),
        (array(WHOLE, items=TEXT), array(WHOLE, TEXT, items=TEXT), "always"),
        (array(WHOLE, items=TEXT), array(WHOLE, TEXT, items=WHOLE), "maybe"),
        (both(array(items=WHOLE), array(items=number(minimum=1))), array(items=whole(minimum=1)), "always"),
        (both(array(items=WHOLE), array(NUMBER)), array(items=WHOLE), "always"),
        (array(items=text(minLength=1)), {**array(items=DAY), **DAYS}, "always"),
        ({**array(items=DAY), **DAYS}, array(items=text(minLength=1)), "always"),
        (array(items=array(items=WHOLE)), array(items=array(items=NUMBER)), "always"),
        (array(items=array(items=WHOLE)), array(items=array(items=TEXT)), "maybe"),
        (TEXT, {"items": False}, "always"),
    ],
    "prefixItems": [
        (array(WHOLE, TEXT), array(WHOLE, TEXT), "always"),
        (array(WHOLE, TEXT), array(NUMBER), "always"),
        (array(WHOLE), array(WHOLE, TEXT), "maybe"),
        (array(WHOLE, TEXT), array(WHOLE, WHOLE), "maybe"),
        (array(WHOLE, TEXT, minItems=2), array(WHOLE, WHOLE), "never"),
        (array(WHOLE, TEXT, minItems=1), array(WHOLE, WHOLE), "maybe"),
        (array(WHOLE), array(TEXT), "maybe"),
        (array(WHOLE, minItems=1), array(TEXT), "never"),
        (array(WHOLE, items=TEXT), array(WHOLE, TEXT, TEXT), "always"),
        (array(WHOLE, items=TEXT), array(WHOLE, WHOLE), "maybe"),
        (array(items=WHOLE), array(WHOLE, NUMBER), "always"),
        (array(items=WHOLE, maxItems=1), array(WHOLE, TEXT), "always"),
        (array(items=WHOLE, maxItems=2), array(WHOLE, TEXT), "maybe"),
        (array(WHOLE, items=False), array(WHOLE, TEXT), "always"),
        (array(WHOLE, False), array(WHOLE, TEXT, TEXT), "always"),
        (ARRAY, array(True, {}), "always"),
        (both(array(WHOLE), array(NUMBER, TEXT)), array(WHOLE, TEXT), "always"),
        (array(text(minLength=1)), {**array(DAY), **DAYS}, "always"),
        ({**array(DAY), **DAYS}, array(text(minLength=1)), "always"),
        (TEXT, {"prefixItems": [WHOLE]}, "always"),
    ],
    "uniqueItems": [
        (ARRAY, array(uniqueItems=False), "always"),
        (ARRAY, array(uniqueItems=True), "maybe"),
        (array(uniqueItems=True), array(uniqueItems=True), "always"),
        (array(uniqueItems=False), array(uniqueItems=True), "maybe"),
        (array(maxItems=1), array(uniqueItems=True), "always"),
        (array(maxItems=2), array(uniqueItems=True), "maybe"),
        (array(TEXT, items=False), array(uniqueItems=True), "always"),
        (array(TEXT, TEXT, items=False), array(uniqueItems=True), "maybe"),
        (both(ARRAY, array(uniqueItems=True)), array(uniqueItems=True), "always"),
        (both(array(uniqueItems=True), array(uniqueItems=False)), array(uniqueItems=True), "always"),
        (TEXT, {"uniqueItems": True}, "always"),
    ],
    "minItems": [
        (array(minItems=2), array(minItems=1), "always"),
        (array(minItems=2), array(minItems=2), "always"),
        (array(minItems=2), array(minItems=3), "maybe"),
        (ARRAY, array(minItems=0), "always"),
        (ARRAY, array(minItems=1), "maybe"),
        (array(TEXT, TEXT), array(minItems=1), "maybe"),
        (array(required=["a", "b"]), array(minItems=2), "maybe"),
        (both(array(minItems=1), array(minItems=2)), array(minItems=2), "always"),
        (both(array(minItems=2), array(minItems=1)), array(minItems=2), "always"),
        (array(minItems=2), array(maxItems=1), "never"),
        (array(minItems=1), array(maxItems=1), "maybe"),
        (array(minItems=2), array(TEXT, items=False), "never"),
        (array(minItems=1), array(TEXT, items=False), "maybe"),
        (array(minItems=2), array(TEXT, False), "never"),
        (array(minItems=1, items=both(TEXT, WHOLE)), {}, "never"),
        (TEXT, {"minItems": 1}, "always"),
    ],
    "maxItems": [
        (array(maxItems=2), array(maxItems=1), "maybe"),
        (array(maxItems=2), array(maxItems=2), "always"),
        (array(maxItems=2), array(maxItems=3), "always"),
        (ARRAY, array(maxItems=1), "maybe"),
        (array(TEXT, WHOLE, items=False), array(maxItems=1), "maybe"),
        (array(TEXT, WHOLE, items=False), array(maxItems=2), "always"),
        (array(TEXT, WHOLE, items=False), array(maxItems=3), "always"),
        (array(TEXT, False, TEXT), array(maxItems=1), "always"),
        (array(TEXT, WHOLE, items=False, maxItems=1), array(maxItems=1), "always"),
        (array(items=both(TEXT, WHOLE)), array(maxItems=0), "always"),
        (array(TEXT), array(maxItems=1), "maybe"),
        (both(array(maxItems=2), array(maxItems=1)), array(maxItems=1), "always"),
        (both(array(maxItems=1), array(maxItems=2)), array(maxItems=1), "always"),
        (array(maxItems=1), array(minItems=2), "never"),
        (array(maxItems=1), array(minItems=1), "maybe"),
        (TEXT, {"maxItems": 0}, "always"),
    ],
}
ROWS = [
    pytest.param(*row, id=f"{keyword}-{index}") for keyword, rows in DECIDED.items() for index, row in enumerate(rows)
]

INNER: list[Any] = [None, 1, 1.5, "", "x", "xy"]
ARRAYS: list[Any] = [[*inner] for size in (0, 1, 2) for inner in product(INNER, repeat=size)]
NESTED: list[Any] = [[[]], [[1]], [["x"]], [1, "x", None], ["x", "x", "x"], [1, "x", "x"], [1, 1, 1], [1, "x", 1]]
OBJECTS: list[Any] = [
    {name: value for name, value in zip("abc", inner, strict=True) if value != "none"}
    for inner in product(["none", *INNER, {}, {"b": 1}, {"b": "x"}], ["none", 1, "", "x"], ["none", 1, "x"])
]
VALUES = [None, 1, "x", *ARRAYS, *NESTED, *OBJECTS]


@pytest.mark.parametrize(("given", "wanted", "decision"), ROWS)
def test_each_keyword_is_decided(given: Any, wanted: Any, decision: str) -> None:
    one, other = deepcopy(given), deepcopy(wanted)
    assert meeting(one, one, other, other) == decision, f"{given} in {wanted}"


@pytest.mark.parametrize(("given", "wanted", "decision"), ROWS)
def test_values_show_each_decision(given: Any, wanted: Any, decision: str) -> None:
    first, second = jsonschema.Draft202012Validator(given), jsonschema.Draft202012Validator(wanted)
    found = {second.is_valid(value): value for value in VALUES if first.is_valid(value)}
    if decision == "maybe":
        assert len(found) == 2, f"no value shows that {given} may, or may not, be valid under {wanted}: {found}"
    else:
        assert (decision != "always") not in found, f"{found} of {given} in {wanted}"
