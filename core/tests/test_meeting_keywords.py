"""What is decided about two schemas, keyword by keyword, at the boundary and on both sides of it.

That "always" and "never" are right, `test_meeting.py` shows for schemas of every kind; a decision that is lost to
"maybe" is noticed here. Each decision is that of JSON Schema's definition: values show it, under another validator.
Keywords of objects and arrays are in `test_meeting_inside.py`.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, TypeAlias

import jsonschema
import pytest

from portico.plans.checking.meeting import meeting

Row: TypeAlias = tuple[Any, Any, str]

TEXT, WHOLE, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}
OBJECT, ARRAY, NULL, BOOLEAN = {"type": "object"}, {"type": "array"}, {"type": "null"}, {"type": "boolean"}
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


def one_of(*schemas: Any) -> dict[str, Any]:
    return {"oneOf": list(schemas)}


DECIDED: dict[str, list[Row]] = {
    "type": [
        (WHOLE, NUMBER, "always"),
        (WHOLE, {"type": ["integer", "null"]}, "always"),
        (WHOLE, {"type": ["number"]}, "always"),
        (NUMBER, WHOLE, "maybe"),
        ({"type": ["number", "integer"]}, WHOLE, "maybe"),
        ({"type": ["integer", "null"]}, {"type": ["integer", "null"]}, "always"),
        ({"type": ["integer", "null"]}, {"type": ["null", "number"]}, "always"),
        ({"type": ["integer", "null"]}, WHOLE, "maybe"),
        ({"type": ["integer", "null"]}, {"type": ["string", "boolean"]}, "never"),
        ({"type": []}, TEXT, "never"),
        (both(WHOLE, NUMBER), WHOLE, "always"),
        (both(NUMBER, WHOLE), WHOLE, "always"),
        (both(TEXT, WHOLE), {}, "never"),
        *((schema, deepcopy(schema), "always") for schema in (TEXT, WHOLE, NUMBER, OBJECT, ARRAY, NULL, BOOLEAN)),
        *(
            (one, other, "never")
            for one in (TEXT, WHOLE, NUMBER, OBJECT, ARRAY, NULL, BOOLEAN)
            for other in (TEXT, NUMBER, OBJECT, ARRAY, NULL, BOOLEAN)
            if one is not other and {one["type"], other["type"]} != {"integer", "number"}
        ),
        ({}, {"type": ["null", "boolean", "number", "string", "array", "object"]}, "always"),
        ({}, {"type": ["null", "boolean", "number", "string", "array"]}, "maybe"),
        ({}, {"type": ["null", "boolean", "integer", "string", "array", "object"]}, "maybe"),
    ],
    "boolean schemas": [
        (True, True, "always"),
        ({}, True, "always"),
        (True, {}, "always"),
        (TEXT, True, "always"),
        (TEXT, False, "never"),
        (False, True, "never"),
        (True, TEXT, "maybe"),
        (both(TEXT, False), {}, "never"),
        (both(TEXT, True, {}), TEXT, "always"),
        (either(TEXT, False), TEXT, "always"),
        (having({"a": False}), having({"a": TEXT}), "always"),
        (having({"a": TEXT}), having({"a": False}), "maybe"),
        (having({"a": TEXT}, required=["a"]), having({"a": False}), "never"),
        (having({"a": TEXT}), having({"a": True}), "always"),
        (having({"a": False}, required=["a"]), {}, "never"),
        (True, {"minLength": 0}, "always"),
        (True, {"minItems": 1}, "maybe"),
        (TEXT, either(True, WHOLE), "always"),
        (TEXT, either(False, TEXT), "always"),
        (TEXT, either(False, WHOLE), "never"),
    ],
    "minLength": [
        (text(minLength=2), text(minLength=1), "always"),
        (text(minLength=2), text(minLength=2), "always"),
        (text(minLength=2), text(minLength=3), "maybe"),
        (text(minLength=2.0), text(minLength=2.0), "always"),
        (TEXT, text(minLength=0), "always"),
        (TEXT, text(minLength=1), "maybe"),
        (both(text(minLength=1), text(minLength=2)), text(minLength=2), "always"),
        (both(text(minLength=2), text(minLength=1)), text(minLength=2), "always"),
        (text(minLength=2), text(maxLength=1), "never"),
        (text(minLength=1), text(maxLength=1), "maybe"),
        (text(required=["a", "b"]), text(minLength=2), "maybe"),
        (WHOLE, {"minLength": 1}, "always"),
    ],
    "maxLength": [
        (text(maxLength=2), text(maxLength=1), "maybe"),
        (text(maxLength=2), text(maxLength=2), "always"),
        (text(maxLength=2), text(maxLength=3), "always"),
        (TEXT, text(maxLength=2), "maybe"),
        (text(maxItems=1, maxProperties=1), text(maxLength=1), "maybe"),
        (both(text(maxLength=1), text(maxLength=2)), text(maxLength=1), "always"),
        (both(text(maxLength=2), text(maxLength=1)), text(maxLength=1), "always"),
        (text(maxLength=1), text(minLength=2), "never"),
        (text(maxLength=1), text(minLength=1), "maybe"),
        (text(minLength=2, maxLength=1), {}, "never"),
        (WHOLE, {"maxLength": 0}, "always"),
    ],
    "minimum": [
        (number(minimum=1), number(minimum=0), "always"),
        (number(minimum=1), number(minimum=1), "always"),
        (number(minimum=1), number(minimum=1.5), "maybe"),
        (number(minimum=1), number(exclusiveMinimum=1), "maybe"),
        (number(minimum=1), number(exclusiveMinimum=0.5), "always"),
        (NUMBER, number(minimum=0), "maybe"),
        (number(maximum=1), number(minimum=0), "maybe"),
        (whole(minimum=0.5), number(minimum=1), "always"),
        (whole(minimum=0.5), number(exclusiveMinimum=1), "maybe"),
        (whole(minimum=1), number(exclusiveMinimum=0), "always"),
        (number(minimum=2), number(maximum=1), "never"),
        (number(minimum=1), number(maximum=1), "maybe"),
        (both(number(minimum=0), number(minimum=1)), number(minimum=1), "always"),
        (both(number(minimum=1), number(minimum=0)), number(minimum=1), "always"),
        (both(number(minimum=1), number(exclusiveMinimum=1)), number(exclusiveMinimum=1), "always"),
        (number(minimum=1, exclusiveMinimum=0), number(minimum=1), "always"),
        (TEXT, {"minimum": 1}, "always"),
        (whole(minimum=1), number(minimum=2), "maybe"),
        (whole(minimum=1, maximum=1), number(minimum=1), "always"),
        (whole(minimum=1, maximum=1), number(minimum=2), "never"),
    ],
    "exclusiveMinimum": [
        (number(exclusiveMinimum=1), number(exclusiveMinimum=0), "always"),
        (number(exclusiveMinimum=1), number(exclusiveMinimum=1), "always"),
        (number(exclusiveMinimum=1), number(exclusiveMinimum=1.5), "maybe"),
        (number(exclusiveMinimum=1), number(minimum=1), "always"),
        (number(exclusiveMinimum=1), number(minimum=1.5), "maybe"),
        (NUMBER, number(exclusiveMinimum=0), "maybe"),
        (whole(exclusiveMinimum=0), number(minimum=1), "always"),
        (whole(exclusiveMinimum=0.5), number(minimum=1), "always"),
        (whole(exclusiveMinimum=0), number(minimum=1.5), "maybe"),
        (whole(exclusiveMinimum=0), number(exclusiveMinimum=1), "maybe"),
        (number(exclusiveMinimum=1), number(maximum=1), "never"),
        (number(exclusiveMinimum=1), number(maximum=1.5), "maybe"),
        (whole(exclusiveMinimum=1), number(exclusiveMaximum=2), "never"),
        (whole(exclusiveMinimum=1), number(exclusiveMaximum=3), "maybe"),
        (TEXT, {"exclusiveMinimum": 1}, "always"),
    ],
    "maximum": [
        (number(maximum=1), number(maximum=2), "always"),
        (number(maximum=1), number(maximum=1), "always"),
        (number(maximum=1), number(maximum=0.5), "maybe"),
        (number(maximum=1), number(exclusiveMaximum=1), "maybe"),
        (number(maximum=1), number(exclusiveMaximum=1.5), "always"),
        (NUMBER, number(maximum=0), "maybe"),
        (number(minimum=0), number(maximum=1), "maybe"),
        (whole(maximum=1.5), number(maximum=1), "always"),
        (whole(maximum=1.5), number(exclusiveMaximum=1), "maybe"),
        (whole(maximum=0), number(exclusiveMaximum=1), "always"),
        (number(maximum=1), number(minimum=2), "never"),
        (both(number(maximum=2), number(maximum=1)), number(maximum=1), "always"),
        (both(number(maximum=1), number(maximum=2)), number(maximum=1), "always"),
        (both(number(maximum=1), number(exclusiveMaximum=1)), number(exclusiveMaximum=1), "always"),
        (number(maximum=1, exclusiveMaximum=2), number(maximum=1), "always"),
        (TEXT, {"maximum": 1}, "always"),
        (whole(maximum=1), number(maximum=0), "maybe"),
    ],
    "exclusiveMaximum": [
        (number(exclusiveMaximum=1), number(exclusiveMaximum=2), "always"),
        (number(exclusiveMaximum=1), number(exclusiveMaximum=1), "always"),
        (number(exclusiveMaximum=1), number(exclusiveMaximum=0.5), "maybe"),
        (number(exclusiveMaximum=1), number(maximum=1), "always"),
        (number(exclusiveMaximum=1), number(maximum=0.5), "maybe"),
        (NUMBER, number(exclusiveMaximum=1), "maybe"),
        (whole(exclusiveMaximum=2), number(maximum=1), "always"),
        (whole(exclusiveMaximum=1.5), number(maximum=1), "always"),
        (whole(exclusiveMaximum=2), number(maximum=0.5), "maybe"),
        (whole(exclusiveMaximum=2), number(exclusiveMaximum=1), "maybe"),
        (number(exclusiveMaximum=1), number(minimum=1), "never"),
        (number(exclusiveMaximum=1), number(minimum=0.5), "maybe"),
        (number(exclusiveMaximum=2, minimum=2), {}, "never"),
        (TEXT, {"exclusiveMaximum": 1}, "always"),
    ],
    "multipleOf": [
        (WHOLE, number(multipleOf=1), "always"),
        (WHOLE, number(multipleOf=1.0), "always"),
        (WHOLE, number(multipleOf=2), "maybe"),
        (NUMBER, number(multipleOf=1), "maybe"),
        (number(multipleOf=2), number(multipleOf=1), "always"),
        (number(multipleOf=4), number(multipleOf=2), "always"),
        (number(multipleOf=2), number(multipleOf=2), "always"),
        (number(multipleOf=2), number(multipleOf=4), "maybe"),
        (number(multipleOf=3), number(multipleOf=2), "maybe"),
        (number(multipleOf=0.5), number(multipleOf=0.5), "always"),
        (number(multipleOf=0.5), number(multipleOf=1), "maybe"),
        (number(multipleOf=0.5), number(multipleOf=2), "maybe"),
        (both(NUMBER, number(multipleOf=4), number(multipleOf=3)), number(multipleOf=2), "always"),
        (both(number(multipleOf=3), number(multipleOf=4)), number(multipleOf=2), "always"),
        (TEXT, {"multipleOf": 2}, "always"),
    ],
    "enum": [
        ({"enum": ["x", "y"]}, {"enum": ["y", "x"]}, "always"),
        ({"enum": ["x"]}, {"enum": ["x", "y"]}, "always"),
        ({"enum": ["x", "y"]}, {"enum": ["x"]}, "maybe"),
        ({"enum": ["x"]}, {"enum": ["y"]}, "never"),
        ({"enum": []}, {}, "never"),
        ({"enum": [1]}, {"enum": [1.0]}, "always"),
        ({"enum": [1]}, {"enum": [True]}, "never"),
        ({"enum": [0, False]}, {"enum": [0]}, "maybe"),
        ({"enum": ["x", None]}, {"type": ["string", "null"]}, "always"),
        ({"enum": ["x", None]}, TEXT, "maybe"),
        ({"enum": ["x", None], **TEXT}, TEXT, "always"),
        ({"enum": ["x", "xyz"]}, text(maxLength=1), "maybe"),
        ({"enum": ["x", "xyz"]}, text(maxLength=3), "always"),
        (both({"enum": ["x", "xyz"]}, text(maxLength=1)), {"const": "x"}, "always"),
        (both({"enum": ["x", "y"]}, {"enum": ["y", "xy"]}), {"const": "y"}, "always"),
        (TEXT, {"enum": ["x"]}, "maybe"),
        (text(minLength=4), {"enum": ["x", "xyz"]}, "never"),
        (BOOLEAN, {"enum": [True, False]}, "always"),
        (BOOLEAN, {"enum": [True]}, "maybe"),
        (NULL, {"enum": [None]}, "always"),
        (NULL, {"enum": [1]}, "never"),
        (WHOLE, {"enum": [1.5]}, "never"),
        ({"enum": [1, "x", [1]]}, {"type": ["integer", "string", "array"]}, "always"),
        ({"enum": [{"a": 1}, {"a": "x"}], "properties": {"a": DAY}, **DAYS}, having({"a": TEXT}), "always"),
    ],
    "const": [
        ({"const": "x"}, {"const": "x"}, "always"),
        ({"const": "x"}, {"const": "y"}, "never"),
        ({"const": "x"}, {"enum": ["x", "y"]}, "always"),
        ({"const": "x"}, {"enum": ["y"]}, "never"),
        ({"const": 1.0}, WHOLE, "always"),
        ({"const": 1.5}, WHOLE, "never"),
        ({"const": None}, NULL, "always"),
        ({"const": None}, TEXT, "never"),
        ({"const": True}, {"const": 1}, "never"),
        (TEXT, {"const": "x"}, "maybe"),
        (WHOLE, {"const": "x"}, "never"),
        ({"const": {"a": 1}}, having({"a": WHOLE}, required=["a"], additionalProperties=False), "always"),
        ({"const": {"a": 1}}, having({"a": TEXT}), "never"),
        ({"const": {"a": 1}}, having(required=["b"]), "never"),
        ({"const": [1, "x"]}, array(WHOLE, TEXT, items=False), "always"),
        ({"const": [1, "x"]}, array(items=WHOLE), "never"),
        ({"const": "x", "enum": ["x", "y"]}, {"const": "x"}, "always"),
    ],
    "pattern": [
        (text(pattern="^x"), text(pattern="^x"), "always"),
        (text(pattern="^x"), text(pattern="y$"), "maybe"),
        (TEXT, text(pattern="^x"), "maybe"),
        (text(pattern="^x"), TEXT, "always"),
        (both(text(pattern="^x"), text(pattern="y$")), text(pattern="^x"), "always"),
        (both(text(pattern="y$"), text(pattern="^x")), text(pattern="^x"), "always"),
        (WHOLE, {"pattern": "^x"}, "always"),
    ],
    "allOf": [
        (text(minLength=2, maxLength=3), both(text(minLength=1), text(maxLength=4)), "always"),
        (text(minLength=2), both(text(minLength=1), text(maxLength=4)), "maybe"),
        (text(maxLength=3), both(text(minLength=1), text(maxLength=4)), "maybe"),
        (TEXT, both(TEXT, WHOLE), "never"),
        (both(both(TEXT), both(both(text(minLength=1)))), text(minLength=1), "always"),
        (text(allOf=[{"minLength": 1}]), text(minLength=1), "always"),
        (TEXT, both(), "always"),
        (text(minLength=1), {**both(TEXT, DAY), **DAYS}, "always"),
    ],
    "anyOf": [
        (TEXT, either(WHOLE, TEXT), "always"),
        (TEXT, either(TEXT, WHOLE), "always"),
        (either(TEXT, NULL), either(NULL, TEXT), "always"),
        (either(TEXT, NULL), TEXT, "maybe"),
        (either(TEXT, NULL), either(WHOLE, BOOLEAN), "never"),
        (TEXT, either(WHOLE, NULL), "never"),
        (NUMBER, either(WHOLE, TEXT), "maybe"),
        (either(text(minLength=1), text(minLength=2)), text(minLength=1), "always"),
        (either(text(minLength=2), text(minLength=1)), text(minLength=2), "maybe"),
        (either(both(TEXT, WHOLE), NULL), NULL, "always"),
        ({**either({"minLength": 1}, {"minLength": 2}), **TEXT}, text(minLength=1), "always"),
        (both(either(TEXT, NULL), either(TEXT, WHOLE)), TEXT, "always"),
        (both(either(TEXT, NULL), either(WHOLE, BOOLEAN)), {}, "never"),
        (TEXT, text(anyOf=[text(minLength=0), NULL]), "always"),
        (having({"a": either(TEXT, NULL)}), having({"a": {"type": ["null", "string"]}}), "always"),
        (either(text(minLength=2, maxLength=1), NULL), NULL, "always"),
        (either(array(minItems=1, items=False), NULL), NULL, "always"),
        (text(minLength=1), {**either(NULL, DAY), **DAYS}, "always"),
    ],
    "oneOf": [
        (TEXT, one_of(TEXT, WHOLE), "always"),
        (TEXT, one_of(WHOLE, TEXT), "always"),
        (TEXT, one_of(NULL, TEXT, WHOLE), "always"),
        (TEXT, one_of(text(minLength=1), TEXT), "maybe"),
        (text(minLength=2), one_of(text(minLength=1), text(maxLength=1)), "always"),
        (text(minLength=1), one_of(text(minLength=1), text(maxLength=1)), "maybe"),
        (WHOLE, one_of(TEXT, NULL), "never"),
        (one_of(TEXT, WHOLE), {"type": ["string", "number"]}, "always"),
        (one_of(TEXT, WHOLE), TEXT, "maybe"),
        (one_of(TEXT, NULL), WHOLE, "never"),
        ({"const": 1}, one_of(WHOLE, NUMBER), "never"),
        ({"const": 1.5}, one_of(WHOLE, NUMBER), "always"),
        (text(minLength=1), {**one_of(NULL, DAY), **DAYS}, "always"),
        (NUMBER, one_of(WHOLE, TEXT), "maybe"),
        (WHOLE, one_of(number(minimum=1), number(minimum=2), TEXT), "maybe"),
    ],
    "not": [
        (TEXT, {"not": WHOLE}, "always"),
        (text(minLength=2), {"not": text(maxLength=1)}, "always"),
        (text(minLength=1), {"not": text(maxLength=1)}, "maybe"),
        ({"const": 1}, {"not": {"const": 1}}, "never"),
        ({"const": 1}, {"not": {"const": 2}}, "always"),
        (TEXT, {"not": False}, "always"),
    ],
    "$ref": [
        ({**DAY, **DAYS}, text(minLength=1), "always"),
        ({"const": "x"}, {**DAY, **DAYS}, "always"),
        ({**DAY, **DAYS}, text(minLength=2), "maybe"),
        ({**DAY, **DAYS}, WHOLE, "never"),
        (text(minLength=1), {**DAY, **DAYS}, "always"),
        (TEXT, {**DAY, **DAYS}, "maybe"),
        (WHOLE, {**DAY, **DAYS}, "never"),
        ({**DAY, **DAYS, "maxLength": 2}, text(minLength=1, maxLength=2), "always"),
        (text(minLength=1), {**DAY, **DAYS, "maxLength": 2}, "maybe"),
        (text(minLength=1, maxLength=2), {**DAY, **DAYS, "maxLength": 2}, "always"),
        ({"$ref": "#/definitions/Day", "definitions": {"Day": TEXT}}, TEXT, "always"),
        ({"$ref": "#/$defs/a~1b", "$defs": {"a/b": TEXT}}, TEXT, "always"),
        ({"$ref": "#/$defs/a~0b", "$defs": {"a~b": TEXT}}, TEXT, "always"),
        ({"$ref": "#/$defs/a%20b", "$defs": {"a b": TEXT}}, TEXT, "always"),
        ({"$ref": "#/$defs/both/allOf/1", "$defs": {"both": both(WHOLE, TEXT)}}, TEXT, "always"),
        (closed({"a": {"$ref": "#"}}), closed({"a": {"$ref": "#"}, "b": TEXT}), "always"),
        (closed({"a": {"$ref": "#"}, "b": TEXT}), closed({"a": {"$ref": "#"}}), "maybe"),
    ],
    "annotations": [
        (TEXT, text(title="t", description="d", default="x", examples=["x"], deprecated=True), "always"),
        (text(title="t", default=1), TEXT, "always"),
        (TEXT, text(**{"$comment": "c", "x-order": 1, "readOnly": True, "writeOnly": False}), "always"),
    ],
}
ROWS = [
    pytest.param(*row, id=f"{keyword}-{index}") for keyword, rows in DECIDED.items() for index, row in enumerate(rows)
]
VALUES: list[Any] = [
    None, True, False, -1, 0, 0.25, 0.5, 0.75, 1, 1.0, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 12,
    "", "x", "y", "xy", "yx", "xyz", "xyzxy",
    [], [1], ["x"], [1, "x"], [1, 1], {}, {"a": 1}, {"a": "x"}, {"a": {}}, {"a": {"a": {}}}, {"a": {}, "b": "x"},
]  # fmt: skip


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
