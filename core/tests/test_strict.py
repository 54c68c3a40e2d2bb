"""Strict forms: the same values, written so that strict mode takes them, and back without loss."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema
from hypothesis import event, given, reject
from hypothesis import strategies as st

from portico.errors import SchemaUnsupported
from portico.strict import StrictForm, strict_form
from portico.types import Mismatch, compile_type
from portico_testkit.strategies import json_values, near, type_cases

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
    return st.recursive(
        leaves,
        lambda inner: st.one_of(*(shape(inner) for shape in SHAPES)),
        max_leaves=5,
    )


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


def form_of(schema: Any) -> StrictForm | None:
    """Rewrite a schema; None where no value is valid."""
    if has_a_circle(schema):
        reject()
    try:
        return strict_form(schema)
    except SchemaUnsupported as error:
        assert "at #, nothing is valid" in str(error), f"{error} for {schema}"
        return None


def check_there_and_back(schema: Any, form: StrictForm, value: Any) -> None:
    expected = is_valid(schema, value)
    event(f"valid: {expected}, loosened: {bool(form.loosened)}, same: {form.identity}")
    try:
        encoded = form.encode(value)
    except Mismatch:
        assert not expected, f"a valid value was refused: {value!r}"
        return
    if form.identity:
        assert encoded is value
    if expected:
        assert is_valid(form.schema, encoded), f"{value!r} is valid, {encoded!r} is not"
        assert written(form.decode(encoded)) == written(value), f"{encoded!r} does not lead back to {value!r}"
    elif not form.loosened:
        assert not is_valid(form.schema, encoded), f"{value!r} is not valid, {encoded!r} is"


def check_back_and_there(schema: Any, form: StrictForm, encoded: Any) -> None:
    """What a model writes under the strict form is a value of the original, unless a key comes twice."""
    if not is_valid(form.schema, encoded):
        return
    try:
        value = form.decode(encoded)
    except Mismatch as error:
        assert "a key of its own" in str(error), f"{encoded!r} is of the strict form: {error}"
        return
    if not form.loosened:
        assert is_valid(schema, value), f"{encoded!r} became {value!r}, which is not valid"
    if is_valid(schema, value):
        assert is_valid(form.schema, form.encode(value))


@given(st.data())
def test_a_value_is_valid_exactly_when_its_encoding_is_and_comes_back_unchanged(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    form = form_of(schema)
    if form is None:
        assert not is_valid(schema, data.draw(values_for(schema, schema)))
        return
    check_rules(form.schema)
    for _ in range(3):
        drawn = data.draw(values_for(schema, schema))
        check_there_and_back(schema, form, drawn)
        check_there_and_back(schema, form, data.draw(near(drawn) | json_values()))


@given(st.data())
def test_what_is_valid_under_the_strict_form_is_decoded_to_a_valid_value(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    form = form_of(schema)
    if form is None:
        return
    for _ in range(3):
        drawn = data.draw(values_for(form.schema, form.schema))
        check_back_and_there(schema, form, drawn)
        check_back_and_there(schema, form, data.draw(near(drawn)))


@given(st.data())
def test_anything_else_is_decoded_or_refused_but_never_an_accident(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    form = form_of(schema)
    if form is None:
        return
    try:
        form.decode(data.draw(json_values() | values_for(schema, schema)))
    except Mismatch as error:
        assert error.faults


@given(st.data())
def test_every_type_of_the_core_has_an_exact_strict_form(data: st.DataObject) -> None:
    case = data.draw(type_cases())
    compiled = compile_type(case.hint)
    form = strict_form(compiled.schema)
    assert all("/uniqueItems is not held" in sentence for sentence in form.loosened), "only sets are loosened"
    check_rules(form.schema)
    value = json.loads(json.dumps(compiled.unstructure(data.draw(case.values))))
    check_there_and_back(compiled.schema, form, value)
    check_there_and_back(compiled.schema, form, data.draw(near(value)))
    assert written(form.decode(form.encode(value))) == written(value)
