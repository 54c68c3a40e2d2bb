"""Strict forms: the same values, written so that strict mode takes them, and back without loss."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema
import pytest
from hypothesis import event, given, reject, strategies as st
from tests.support.strategies import type_cases

from portico._schema.strict import StrictForm
from portico._types.compiled import Mismatch
from portico._types.compiling import compile_type
from portico.errors import SchemaUnsupported
from portico_testkit.strategies import json_values, near

KEYS = ["a", "b", "kind", "entries", "option_1", "value"]
FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
PLAIN_WORDS = {"type", "enum", "const", "title", "description"}
WORDS_OF_TYPES = {
    "object": {"properties", "required", "additionalProperties"},
    "array": {"items", "minItems", "maxItems"},
    "string": {"pattern", "format"},
    "number": {"multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"},
    "integer": {"multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"},
    "boolean": set(),
    "null": set(),
}


def is_valid(schema: Any, value: Any) -> bool:
    return bool(jsonschema.Draft202012Validator(schema).is_valid(value))


def resolved(root: Any, reference: str) -> Any:
    for token in reference.split("/")[1:]:
        root = root[token.replace("%20", " ").replace("~1", "/")]
    return root


def has_a_circle(root: Any) -> bool:
    """Tell whether a schema asks for itself of one and the same value: the reference would follow it for ever."""
    ways: dict[int, list[Any]] = {}
    waiting = [root]
    while waiting:
        schema = waiting.pop()
        if not isinstance(schema, dict) or id(schema) in ways:
            continue
        here = [part for word in ("anyOf", "oneOf", "allOf") for part in schema.get(word, ())]
        here += [schema[word] for word in ("not", "if", "then") if word in schema]
        here += [resolved(root, schema["$ref"])] if "$ref" in schema else []
        ways[id(schema)] = [part for part in here if isinstance(part, dict)]
        inside = [
            schema[word] for word in ("items", "additionalProperties", "propertyNames", "contains") if word in schema
        ]
        inside += [*schema.get("prefixItems", ()), *schema.get("properties", {}).values()]
        waiting += [*here, *inside, *schema.get("patternProperties", {}).values()]
    left = dict(ways)
    while True:
        ends = [key for key, parts in left.items() if not any(id(part) in left for part in parts)]
        if not ends:
            return bool(left)
        for key in ends:
            del left[key]


def written(value: Any) -> str:
    """Write a value so that 1, 1.0 and true differ, and the order of keys does not matter."""
    return json.dumps(value, sort_keys=True)


def schemas_within(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield schema
    for word in ("properties", "$defs"):
        for part in schema.get(word, {}).values():
            yield from schemas_within(part)
    for part in [*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else [])]:
        yield from schemas_within(part)


def depth(schema: Mapping[str, Any]) -> int:
    parts = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
    parts += [schema["items"]] if "items" in schema else []
    return max((1 + depth(part) for part in parts), default=0)


def check_rules(root: Mapping[str, Any]) -> None:
    """Hold a schema against the rules of OpenAI's guide, and those that its service tells by an error."""
    assert root["type"] == "object", "the root is an object"
    definitions = root.get("$defs", {})
    assert depth(root) <= 10
    assert all(1 + depth(definition) <= 10 for definition in definitions.values())
    for schema in schemas_within(root):
        check_rule(schema, {f"#/$defs/{name}" for name in definitions}, extra={"$defs"} if schema is root else set())


def check_rule(schema: Mapping[str, Any], references: set[str], extra: set[str]) -> None:
    words = schema.keys() - extra
    if "$ref" in schema:
        assert words == {"$ref"}, f"nothing stands beside a reference: {schema}"
        assert schema["$ref"] in references
    elif "anyOf" in schema:
        assert words <= {"anyOf", "title", "description"}, f"nothing restricts values beside anyOf: {schema}"
        assert schema["anyOf"]
    else:
        kind, *null = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
        assert null in ([], ["null"]), f"there is one type, or null as well: {schema}"
        assert words <= PLAIN_WORDS | WORDS_OF_TYPES[kind], f"a keyword is not of the type: {schema}"
        assert schema.get("format", "date") in FORMATS
        assert not any(isinstance(value, dict | list) for value in [*schema.get("enum", ()), schema.get("const")])
        if kind == "object":
            assert schema["additionalProperties"] is False
            assert schema["required"] == list(schema["properties"]), "every property is required"
        if kind == "array":
            assert "items" in schema


def kinds() -> st.SearchStrategy[Any]:
    names = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])
    return names | st.lists(names, min_size=1, max_size=3, unique=True)


def plain_values() -> st.SearchStrategy[Any]:
    return st.sampled_from(["a", "b", "", 0, 1, 1.0, 2.5, True, False, None])


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Draw schemas of objects as people write them."""
    return st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(st.sampled_from(KEYS), inner, max_size=3)},
        optional={
            "required": st.lists(st.sampled_from(KEYS[:3]), max_size=2, unique=True),
            "additionalProperties": st.just(False) | st.just(False) | inner,
        },
    ).map(lambda schema: schema if "required" in schema else {**schema, "required": list(schema["properties"])})


def arrays(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    fixed = st.lists(inner, min_size=1, max_size=3).map(
        lambda places: {"type": "array", "prefixItems": places, "minItems": len(places), "maxItems": len(places)}
    )
    return fixed | st.builds(lambda item: {"type": "array", "items": item}, inner)


def maps(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(
        {"type": st.just("object"), "additionalProperties": inner},
        optional={
            "minProperties": st.integers(0, 2),
            "maxProperties": st.integers(0, 3),
            "propertyNames": st.sampled_from([{"pattern": "^[a-e]"}, {"enum": ["a", "b"]}, {"maxLength": 1}]),
        },
    )


def unions(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(lambda options: {"anyOf": options}, st.lists(inner, min_size=1, max_size=3))


def tagged_unions(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Draw unions whose alternatives have the same keys, and tags that tell them apart, or do not."""
    tags = st.lists(plain_values(), min_size=1, max_size=2).map(lambda values: {"enum": values})
    required = st.sampled_from([["kind"], ["kind", "a"], ["a"], []])
    option = st.builds(
        lambda tag, member, names: {
            "type": "object",
            "properties": {"kind": tag, "a": member},
            "required": names,
            "additionalProperties": False,
        },
        tags,
        inner,
        required,
    )
    word = st.sampled_from(["anyOf", "oneOf"])
    return st.builds(lambda word, options: {word: options}, word, st.lists(option, min_size=2, max_size=3))


def anything_at_all(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Draw schemas of any keywords, whether they make sense together or not."""
    small = st.integers(0, 3)
    members = st.dictionaries(st.sampled_from(KEYS), inner, max_size=2)
    return st.fixed_dictionaries(
        {},
        optional={
            "$ref": references(),
            "type": kinds(),
            "enum": st.lists(json_values(3) | plain_values(), max_size=3),
            "const": json_values(3) | plain_values(),
            "properties": members,
            "required": st.lists(st.sampled_from(KEYS), max_size=2, unique=True),
            "additionalProperties": inner,
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "e", "x"]), inner, max_size=2),
            "propertyNames": inner,
            "minProperties": small,
            "maxProperties": small,
            "items": inner,
            "prefixItems": st.lists(inner, max_size=3),
            "minItems": small,
            "maxItems": small,
            "uniqueItems": st.booleans(),
            "contains": inner,
            "anyOf": st.lists(inner, min_size=1, max_size=3),
            "oneOf": st.lists(inner, min_size=1, max_size=3),
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "not": inner,
            "if": inner,
            "then": inner,
            "minimum": small,
            "exclusiveMaximum": small,
            "multipleOf": st.sampled_from([1, 2, 0.5]),
            "pattern": st.sampled_from(["a", "^b", "(?=x)x"]),
            "minLength": small,
            "format": st.sampled_from(["date", "uri", "decimal"]),
            "default": plain_values(),
            "description": st.just("What it is."),
            "nullable": st.booleans(),
            "dependentRequired": st.just({"a": ["b"]}),
        },
    )


def references() -> st.SearchStrategy[str]:
    return st.sampled_from(["#/$defs/first", "#/$defs/second%20one", "#/definitions/a~1b", "#"])


SHAPES = (objects, arrays, maps, unions, tagged_unions, anything_at_all)


@functools.cache
def inner_schemas() -> st.SearchStrategy[Any]:
    leaves = st.one_of(
        kinds().map(lambda kind: {"type": kind}),
        st.booleans() | st.just({}),
        st.lists(plain_values(), min_size=1, max_size=3).map(lambda values: {"enum": values}),
        st.builds(lambda value: {"const": value}, plain_values()),
        references().map(lambda reference: {"$ref": reference}),
        references().map(lambda reference: {"$ref": reference, "description": "What it is."}),
    )
    return st.recursive(leaves, lambda inner: st.one_of(*(shape(inner) for shape in SHAPES)), max_leaves=5)


@functools.cache
def schemas() -> st.SearchStrategy[Any]:
    """Draw schemas with definitions that may lead to each other and to the root."""
    inner = inner_schemas()
    roots = st.one_of(*(shape(inner) for shape in SHAPES), inner)

    def with_definitions(root: Any, first: Any, second: Any, third: Any) -> Any:
        if not isinstance(root, dict):
            return root
        return {**root, "$defs": {"first": first, "second one": second}, "definitions": {"a/b": third}}

    return st.builds(with_definitions, roots, inner, inner, inner)


@functools.cache
def small_values() -> st.SearchStrategy[Any]:
    return json_values(3)


@st.composite
def values_for(draw: st.DrawFn, schema: Any, root: Any, level: int = 0) -> Any:
    """Draw a value that has something to do with a schema; often a valid one."""
    if not isinstance(schema, dict) or not schema or level > 6:
        return draw(small_values())
    if "$ref" in schema:
        return draw(values_for(resolved(root, schema["$ref"]), root, level + 1))
    combined = [part for word in ("anyOf", "oneOf", "allOf") for part in schema.get(word, ())]
    if combined and draw(st.integers(0, 3)):
        return draw(values_for(draw(st.sampled_from(combined)), root, level + 1))
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return draw(st.sampled_from(schema["enum"]))
    kind = schema.get("type", "object" if "properties" in schema else "array" if "items" in schema else None)
    kind = draw(st.sampled_from(kind)) if isinstance(kind, list) and kind else kind
    if kind == "object":
        names = schema.get("properties", {})
        value = {
            name: draw(values_for(member, root, level + 1))
            for name, member in names.items()
            if name in schema.get("required", ()) or draw(st.booleans())
        }
        rest = schema.get("additionalProperties", True)
        for name in draw(st.lists(st.sampled_from([*KEYS, "c", "date"]), max_size=2)) if rest is not False else []:
            value.setdefault(name, draw(values_for(rest, root, level + 1)))
        return value
    if kind == "array":
        places = schema.get("prefixItems", [])
        value = [draw(values_for(place, root, level + 1)) for place in places]
        extra = draw(st.integers(0, 2)) if len(places) < schema.get("maxItems", 9) else 0
        return [*value, *(draw(values_for(schema.get("items", True), root, level + 1)) for _ in range(extra))]
    plain: dict[str, st.SearchStrategy[Any]] = {
        "string": st.text(max_size=3) | st.sampled_from(["a", "b"]),
        "integer": st.integers(-3, 5) | st.sampled_from([1.0, 2.0]),
        "number": st.integers(-3, 5) | st.sampled_from([0.5, 1.0, 2.5]),
        "boolean": st.booleans(),
        "null": st.none(),
    }
    return draw(plain.get(str(kind), small_values()))


def form_of(schema: Any) -> StrictForm:
    """Rewrite a schema that has a strict form."""
    if has_a_circle(schema):
        reject()
    try:
        return StrictForm.of(schema)
    except SchemaUnsupported as error:
        event(f"none: {str(error).rpartition(', ')[2]}"[:60])
        reject()
        raise


def check(schema: Any, form: StrictForm, written: Any) -> None:
    """What a model writes under the strict form is a value of the original, unless a key comes twice."""
    if not is_valid(form.schema, written):
        return
    event(f"loosened: {bool(form.loosened)}, same: {form.identity}")
    try:
        value = form.decode(written)
    except Mismatch as error:
        assert "a key that is not there before" in str(error), f"{written!r} is of the strict form: {error}"
        return
    if form.identity:
        assert value is written
    if not form.loosened:
        assert is_valid(schema, value), f"{written!r} became {value!r}, which is not valid"


@given(st.data())
def test_what_is_written_under_the_strict_form_is_decoded_to_a_valid_value(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    form = form_of(schema)
    check_rules(form.schema)
    for _ in range(3):
        drawn = data.draw(values_for(form.schema, form.schema))
        check(schema, form, drawn)
        check(schema, form, data.draw(near(drawn)))


@given(st.data())
def test_anything_else_is_decoded_or_refused_but_never_an_accident(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    form = form_of(schema)
    try:
        form.decode(data.draw(json_values() | values_for(schema, schema)))
    except Mismatch as error:
        assert error.faults


@given(st.data())
def test_every_type_of_the_core_has_a_strict_form_but_for_tuples_of_several_types(data: st.DataObject) -> None:
    compiled = compile_type(data.draw(type_cases()).hint)
    try:
        form = StrictForm.of(compiled.schema)
    except SchemaUnsupported:
        assert "prefixItems" in json.dumps(compiled.schema)
        return
    assert all("/uniqueItems is not held" in sentence for sentence in form.loosened), "only sets are loosened"
    check_rules(form.schema)
    check(compiled.schema, form, data.draw(values_for(form.schema, form.schema)))


TEXT = {"type": "string"}
WHOLE = {"type": "integer"}
NOTHING = {"type": "null"}


def closed(properties: dict[str, Any], required: list[str] | None = None) -> dict[str, Any]:
    names = list(properties) if required is None else required
    return {"type": "object", "properties": properties, "required": names, "additionalProperties": False}


def entries_of(value: Any) -> dict[str, Any]:
    return {"type": "array", "items": closed({"key": TEXT, "value": value})}


def rewritten(member: Any, **definitions: Any) -> Any:
    """Return what becomes of the schema of a required property."""
    form = StrictForm.of({**closed({"x": member}), "$defs": definitions})
    assert form.loosened == ()
    return form.schema["properties"]["x"]


def test_the_schemas_of_the_guide_come_out_as_they_are() -> None:
    step = closed({"explanation": TEXT, "output": TEXT})
    guide = [
        closed({"steps": {"type": "array", "items": step}, "final_answer": TEXT}),
        {
            **closed({"steps": {"type": "array", "items": {"$ref": "#/$defs/step"}}, "final_answer": TEXT}),
            "$defs": {"step": step},
        },
        closed({"email": {"type": "string", "format": "email"}, "name": {"type": "string", "pattern": "^@[a-z]+$"}}),
        closed({"degrees": {"type": "number", "minimum": -130, "maximum": 130}}),
        closed({"item": {"anyOf": [closed({"name": TEXT, "age": WHOLE}), closed({"number": TEXT, "street": TEXT})]}}),
    ]
    for schema in guide:
        form = StrictForm.of(schema)
        assert form.schema == schema
        assert form.identity
        assert form.loosened == ()


def test_a_root_that_is_no_object_is_wrapped() -> None:
    form = StrictForm.of({"type": "array", "items": WHOLE})
    assert form.schema == closed({"value": {"type": "array", "items": WHOLE}})
    assert form.decode({"value": [1]}) == [1]
    for other in ([1], {}, {"value": [], "more": 1}, None):
        with pytest.raises(Mismatch, match='one key "value"'):
            form.decode(other)


def test_an_optional_property_is_null_when_it_is_not_there() -> None:
    form = StrictForm.of({"type": "object", "properties": {"a": TEXT, "b": WHOLE}, "required": ["a"]})
    assert form.schema == closed({"a": TEXT, "b": {"anyOf": [WHOLE, NOTHING]}})
    assert form.decode({"a": "", "b": None}) == {"a": ""}


def test_an_optional_property_that_may_be_null_stays_null() -> None:
    form = StrictForm.of(closed({"a": {"type": ["string", "null"]}}, required=[]))
    assert form.schema == closed({"a": {"anyOf": [TEXT, NOTHING]}})
    assert form.identity


def test_a_map_is_an_array_of_entries() -> None:
    form = StrictForm.of({"type": "object", "additionalProperties": WHOLE})
    assert form.schema == closed({"value": entries_of(WHOLE)})
    entry = {"key": "b", "value": 1}
    assert form.decode({"value": [entry]}) == {"b": 1}
    with pytest.raises(Mismatch, match=r"\$\.value\[1\]\.key: expected a key that is not there before, got 'b'"):
        form.decode({"value": [entry, entry]})


def test_free_json_is_kept() -> None:
    form = StrictForm.of(closed({"x": {}}))
    inner = [{"entries": []}]
    written = [1, 1.0, True, None, "a", {"entries": [{"key": "b", "value": inner}]}]
    assert repr(form.decode({"x": written})) == repr({"x": [1, 1.0, True, None, "a", {"b": [{}]}]})


def test_a_tuple_of_equal_elements_is_an_array_of_that_length() -> None:
    schema = {"type": "array", "prefixItems": [WHOLE, WHOLE], "minItems": 2, "maxItems": 2}
    assert rewritten(schema) == {"type": "array", "items": WHOLE, "minItems": 2, "maxItems": 2}


def test_an_alternative_is_decoded_by_what_the_value_is() -> None:
    def tagged(tag: str) -> Any:
        return closed({"kind": {"const": tag}, "a": TEXT}, ["kind"])

    form = StrictForm.of(closed({"x": {"oneOf": [tagged("a"), tagged("b"), {"type": "array", "items": TEXT}]}}))
    assert form.loosened == ()
    assert form.decode({"x": {"kind": "b", "a": None}}) == {"x": {"kind": "b"}}
    assert form.decode({"x": ["a"]}) == {"x": ["a"]}


def test_one_of_is_loosened_where_a_value_may_fit_several() -> None:
    form = StrictForm.of(closed({"x": {"oneOf": [WHOLE, {"type": "number"}]}}))
    assert form.loosened == (
        "#/properties/x/oneOf is not held: it becomes anyOf, and a value may fit several of its alternatives",
    )


def test_listed_values_have_their_type() -> None:
    assert rewritten({"enum": ["a", "b"]}) == {"type": "string", "enum": ["a", "b"]}
    assert rewritten({"const": 1}) == {"type": "integer", "const": 1}
    assert rewritten({"enum": [1, 2.5]}) == {"type": "number", "enum": [1, 2.5]}
    assert rewritten({"enum": ["a", 1]}) == {"anyOf": [{**WHOLE, "enum": [1]}, {**TEXT, "enum": ["a"]}]}


def test_what_stands_beside_a_reference_is_kept() -> None:
    described = {"$ref": "#/$defs/point", "description": "Where."}
    assert rewritten(described, point=closed({"x": WHOLE})) == {**closed({"x": WHOLE}), "description": "Where."}


def test_what_several_schemas_ask_is_asked_together() -> None:
    parts = [{"type": "object", "properties": {"a": TEXT}, "required": ["a"]}, {"properties": {"b": WHOLE}}]
    assert rewritten({"allOf": parts}) == closed({"a": TEXT, "b": {"anyOf": [WHOLE, NOTHING]}})


def test_keywords_that_strict_mode_does_not_know_are_loosened_or_refused() -> None:
    schema = closed({"a": {"type": "string", "minLength": 1, "pattern": "(?=a)"}})
    assert StrictForm.of(schema).loosened == (
        "#/properties/a/minLength is not held: strict mode has no such keyword",
        "#/properties/a/pattern is not held: strict mode has no lookaround and no backreferences",
    )
    with pytest.raises(SchemaUnsupported, match="minLength is not held"):
        StrictForm.of(schema, loosen=False)


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (False, "nothing is valid"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#"}}}, "the schema leads to itself"),
        ({"$ref": "https://example.org"}, "leads out of the schema"),
        ({"type": "nonsense"}, "no types of JSON Schema"),
        ({"type": "array", "prefixItems": [TEXT, WHOLE]}, "one schema for all elements"),
        ({"enum": [{"a": 1}]}, "lists strings, numbers"),
        (closed({f"p{index}": TEXT for index in range(5001)}), "5,001 properties, and strict mode takes 5,000"),
    ],
    ids=str,
)
def test_what_has_no_strict_form_is_refused_with_the_reason(schema: Any, reason: str) -> None:
    with pytest.raises(SchemaUnsupported) as caught:
        StrictForm.of(schema)
    assert reason in str(caught.value)


def test_a_reply_can_be_decoded_while_it_comes() -> None:
    shape = {
        "anyOf": [closed({"kind": {"const": "a"}, "b": TEXT}, ["kind"]), closed({"kind": {"const": "c"}, "b": TEXT})]
    }
    form = StrictForm.of(closed({"name": TEXT, "note": TEXT, "shape": shape}, required=["name"]))
    assert form.decode({}) == {}
    assert form.decode({"name": "A", "note": None}) == {"name": "A"}
    with pytest.raises(Mismatch):
        form.decode({"shape": {}})


def nested(levels: int, required: list[str] | None = None) -> dict[str, Any]:
    schema: dict[str, Any] = TEXT
    for _ in range(levels):
        schema = closed({"x": schema}, required)
    return schema


def test_ten_levels_stay_and_deeper_ones_move_to_a_definition() -> None:
    assert StrictForm.of(nested(10)).schema == nested(10)
    form = StrictForm.of(nested(11))
    assert form.identity, "references change no value"
    assert form.schema["$defs"] == {"part": nested(1)}


def test_a_schema_or_a_value_that_is_too_deep_is_refused() -> None:
    with pytest.raises(SchemaUnsupported, match=r"deeper than 200 levels|nested too deeply"):
        StrictForm.of(nested(201))
    endless: dict[str, Any] = {}
    endless["items"] = endless
    with pytest.raises(SchemaUnsupported, match=r"deeper than 200 levels|nested too deeply"):
        StrictForm.of(endless)
    value: Any = []
    for _ in range(5000):
        value = [value]
    with pytest.raises(Mismatch, match="nested less deeply"):
        StrictForm.of({}).decode({"value": value})


def test_references_that_fork_at_every_step_take_no_time_that_doubles() -> None:
    for word in ("anyOf", "oneOf"):
        fork = {f"a{step}": {word: [{"$ref": f"#/$defs/a{step + 1}"}] * 2} for step in range(60)}
        schema = closed({"x": {"$ref": "#/$defs/a0"}}, required=[])
        form = StrictForm.of({**schema, "$defs": {**fork, "a60": closed({"y": TEXT}, required=[])}})
        assert form.decode({"x": {"y": "a"}}) == {"x": {"y": "a"}}
