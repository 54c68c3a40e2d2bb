"""Schemas and values with which a careless check never ends: each pair of about the size that is asked for."""

from __future__ import annotations

from typing import Any

EMAIL = r"^([a-zA-Z0-9_.+-]+)+@([a-zA-Z0-9-]+\.)+[a-zA-Z]{2,}$"


def pairs(size: int) -> dict[str, tuple[Any, Any]]:
    """Return schemas with values by what they try; schema and value have up to about ``size`` characters each."""
    many = size // 10
    few = size // 40
    text = "a" * size + "!"
    names = {f"n{index}": index for index in range(many)}
    objects = [{"a": index, "b": str(index)} for index in range(few)]
    whole = {"type": "integer"}
    forks = {f"f{step}": {"anyOf": [{"$ref": f"#/$defs/f{step + 1}"}] * 2} for step in range(few)}
    either = {
        f"f{step}": {"oneOf": [{"$ref": f"#/$defs/f{step + 1}"}, {"not": {"$ref": f"#/$defs/f{step + 1}"}}]}
        for step in range(60)
    }
    tree: Any = {}
    for _ in range(100):
        tree = {"n": tree}
    nested: Any = {"type": "string"}
    for _ in range(22):
        nested = {"anyOf": [{"minLength": 9}, {"allOf": [{"oneOf": [nested, {"type": "array"}]}]}]}
    patterns = {f"^(n+{index})+$": whole for index in range(size // 25)}
    tags = [{"required": ["kind"], "properties": {"kind": {"const": f"k{index}"}}} for index in range(size // 60)]
    return {
        "a repeated repetition": ({"pattern": "(a+)+$"}, text),
        "an address": ({"pattern": EMAIL}, text),
        "anything three times": ({"pattern": ".*.*.*=.*"}, text),
        "a pattern of many states": ({"pattern": "(a|b|c){1,500}x"}, "ab" * (size // 2)),
        "many patterns on one text": ({"allOf": [{"pattern": f"(a*)*b{index}"} for index in range(size // 30)]}, text),
        "a pattern on every element": ({"items": {"pattern": EMAIL}}, ["a" * 30] * (size // 34)),
        "a class many times": ({"pattern": r"[\s\S]{1000}$"}, ("é" * 90 + "\n") * (size // 91)),
        "short texts under growing patterns": (
            {"items": {"allOf": [{"pattern": f"[ab]*a[ab]{{60}}{index}"} for index in range(9)]}},
            [f"{index:060b}".replace("0", "a").replace("1", "b") for index in range(0, size**3, size**2 * 63)],
        ),
        "a key under a pattern": ({"patternProperties": {"(a+)+$": False}}, {text: 1}),
        "many keys under many patterns": ({"patternProperties": patterns, "additionalProperties": False}, names),
        "names under a pattern": ({"propertyNames": {"pattern": ".*.*.*=.*"}}, {**names, text: 1}),
        "names among alternatives": ({"propertyNames": {"anyOf": [{"const": f"m{i}"} for i in range(few)]}}, names),
        "unique objects": ({"uniqueItems": True}, objects),
        "unique numbers and flags": (
            {"uniqueItems": True},
            [*range(many), *map(float, range(many)), True, False, None],
        ),
        "unique arrays": ({"uniqueItems": True}, [[index, [index]] for index in range(many)]),
        "contains": ({"contains": {"const": -1}, "maxContains": 1}, [*range(many)]),
        "contains inside of contains": (
            {"contains": {"contains": {"contains": {"const": 1}}}},
            [[[0] * 9] * 9] * (few // 6),
        ),
        "alternatives that fork": ({"$ref": "#/$defs/f0", "$defs": {**forks, f"f{few}": {"type": "null"}}}, 1),
        "one of, and not": ({"$ref": "#/$defs/f0", "$defs": {**either, "f60": {"type": "null"}}}, 1),
        "deep alternatives": (nested, 5),
        "many alternatives of a large value": ({"anyOf": [{"type": "string"}] * (size // 18)}, objects),
        "many tags": ({"items": {"oneOf": tags}}, [{"kind": f"k{index}"} for index in range(size // 20)]),
        "an object among many tags": ({"anyOf": tags}, names),
        "a long chain of references": (
            {
                "$ref": "#/$defs/c0",
                "$defs": {f"c{i}": {"$ref": f"#/$defs/c{i + 1}"} for i in range(few)} | {f"c{few}": whole},
            },
            1,
        ),
        "a tree that forks": (
            {"$defs": {"t": {"properties": {"n": {"allOf": [{"$ref": "#/$defs/t"}] * 2}}}}, "$ref": "#/$defs/t"},
            tree,
        ),
        "dependent schemas": (
            {
                "dependentSchemas": {
                    name: {"minProperties": 1, "dependentSchemas": {"n0": {"required": ["x"]}}}
                    for name in list(names)[:few]
                }
            },
            names,
        ),
        "dependent names": ({"items": {"dependentRequired": {"a": [f"x{index}" for index in range(many)]}}}, objects),
        "many listed values": ({"items": {"enum": [*range(many)]}}, [*range(-many, 0)]),
        "listed objects": ({"items": {"enum": objects}}, [{**each, "c": 1} for each in objects]),
        "one large constant": ({"items": {"const": objects}}, [objects[:-1], objects, 1]),
        "many required names": ({"items": {"required": [*names]}}, objects),
        "many properties": ({"items": {"properties": dict.fromkeys(names, whole)}}, objects),
        "properties that are not evaluated": (
            {
                "allOf": [{"properties": {name: True}} for name in names if len(name) < 6],
                "unevaluatedProperties": False,
            },
            names,
        ),
        "a name that is not evaluated": (
            {"allOf": [{"patternProperties": {"^(a+)+$": True}}], "unevaluatedProperties": False},
            {text: 1},
        ),
        "elements that are not evaluated": ({"allOf": [{"contains": whole}], "unevaluatedItems": False}, ["a"] * many),
        "conditions in conditions": (
            {
                "$defs": {
                    "i": {
                        "if": {"properties": {"n": {"$ref": "#/$defs/i"}}},
                        "then": {"properties": {"n": {"$ref": "#/$defs/i"}}},
                    }
                },
                "$ref": "#/$defs/i",
            },
            tree,
        ),
        "keys that are not allowed": (
            {"additionalProperties": False, "properties": dict.fromkeys(list(names)[::2], True)},
            names,
        ),
        "faults everywhere": ({"items": {"type": "string", "maximum": -1, "not": {"type": "number"}}}, [*range(many)]),
        "every one is valid": ({"oneOf": [{"description": f"d{index}"} for index in range(size // 25)]}, objects),
    }
