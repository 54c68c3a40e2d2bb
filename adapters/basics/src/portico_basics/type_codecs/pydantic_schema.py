"""JSON Schema of pydantic's types, in the words that core uses, and what of a type cannot be written in JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from portico.errors import SchemaUnsupported


class OpenSchema(GenerateJsonSchema):
    """Pydantic's schema, shorter and with what it drops.

    No titles that only repeat a name; texts of ``Annotated`` as descriptions; one literal as an enumeration and a
    tagged union as ``anyOf``, which every reader of core's schemas knows. The tag of a model must be there, also
    where it has a default: without it no one can tell which model is meant.
    """

    closed = False

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Say no: a field's title repeats its name."""
        return False

    def emit_warning(self, kind: Any, detail: str) -> None:
        """Refuse what pydantic would leave out; a default that JSON cannot hold is merely not shown."""
        if kind == "skipped-choice":
            raise SchemaUnsupported(f"A member of a union has no JSON Schema: {detail}")

    def model_schema(self, schema: Any) -> JsonSchemaValue:
        """Describe a model."""
        return self._finished(super().model_schema(schema), schema["cls"])

    def dataclass_schema(self, schema: Any) -> JsonSchemaValue:
        """Describe a dataclass."""
        return self._finished(super().dataclass_schema(schema), schema["cls"])

    def typed_dict_schema(self, schema: Any) -> JsonSchemaValue:
        """Describe a typed dictionary."""
        return self._finished(super().typed_dict_schema(schema), schema.get("cls"))

    def tagged_union_schema(self, schema: Any) -> JsonSchemaValue:
        """Describe a union with a discriminator: its tags exclude each other anyway."""
        described = super().tagged_union_schema(schema)
        described.pop("discriminator", None)
        if "oneOf" in described:
            described["anyOf"] = described.pop("oneOf")
        return described

    def literal_schema(self, schema: Any) -> JsonSchemaValue:
        """Describe literals."""
        return _enumerated(super().literal_schema(schema))

    def enum_schema(self, schema: Any) -> JsonSchemaValue:
        """Describe an enumeration."""
        described = _enumerated(super().enum_schema(schema))
        if described.get("title") == schema["cls"].__name__:
            described.pop("title")
        return described

    def decimal_schema(self, schema: Any) -> JsonSchemaValue:
        """Describe a decimal: what is written, with an exponent too, is of this format."""
        described = super().decimal_schema(schema)
        options = described.get("anyOf", [])
        text = {"type": "string", "format": "decimal"}
        return {"anyOf": [*(option for option in options if option.get("type") != "string"), text]}

    def _finished(self, described: JsonSchemaValue, cls: Any) -> JsonSchemaValue:
        if described.get("title") == getattr(cls, "__name__", None):
            described.pop("title", None)
        properties = described.get("properties")
        if properties is None:
            return described
        if self.closed:
            described.setdefault("additionalProperties", False)
        for key, text in self._texts(cls):
            properties.get(key, {}).setdefault("description", text)
        tags = [name for name, member in properties.items() if _is_tag(member)]
        if tags:
            required = described.get("required", [])
            described["required"] = [name for name in properties if name in required or name in tags]
        return described

    def _texts(self, cls: Any) -> Iterator[tuple[str, str]]:
        """Yield what ``Annotated[int, "how many"]`` says of fields, by key."""
        for name, info in getattr(cls, "__pydantic_fields__", {}).items():
            text = next((note for note in info.metadata if isinstance(note, str)), None)
            alias = first_alias(info.validation_alias)
            if text is not None:
                yield (alias if self.by_alias and alias else name), text


class ClosedSchema(OpenSchema):
    """The same with no other keys than those of the fields, as for dataclasses."""

    closed = True


def first_alias(alias: Any) -> str | None:
    """Return the key that pydantic's schema has for an alias; None where it goes by the field's name."""
    choices = getattr(alias, "choices", [alias])
    return next((choice for choice in choices if isinstance(choice, str)), None)


def _enumerated(described: JsonSchemaValue) -> JsonSchemaValue:
    if "const" in described:
        described["enum"] = [described.pop("const")]
    return described


def _is_tag(member: Any) -> bool:
    return isinstance(member, dict) and member.get("enum") == [member.get("default")]


def aliases_agree(adapter: TypeAdapter[Any]) -> bool:
    """Tell whether every field is read under the key that it is written under."""
    for name, field in _fields(adapter):
        alias = field.get("validation_alias")
        paths = [[alias]] if isinstance(alias, str) else alias or [[name]]
        read = paths if isinstance(paths[0], list) else [paths]
        if [field.get("serialization_alias") or name] not in read[:1]:
            return False
    return True


def lets_extra_in(adapter: TypeAdapter[Any]) -> bool:
    """Tell whether the configuration of a model inside of a type lets unknown keys in."""
    return any(
        node.get("extra_behavior") == "allow"
        or (node.get("config") or {}).get("extra_fields_behavior") in ("allow", "ignore")
        for node in _nodes(adapter.core_schema)
    )


def serializes_itself(adapter: TypeAdapter[Any]) -> bool:
    """Tell whether a part of a type is written by a function of its author's."""
    return any(
        callable(writer := node.get("function")) and not str(getattr(writer, "__module__", "")).startswith("pydantic")
        for holder in _nodes(adapter.core_schema)
        if isinstance(node := holder.get("serialization"), dict)
    )


def writes_all(adapter: TypeAdapter[Any]) -> bool:
    """Tell whether a value is always written with every field."""
    return not serializes_itself(adapter) and not any(
        node.get("serialization_exclude_if") for _, node in _fields(adapter)
    )


def require_written(adapter: TypeAdapter[Any], schema: JsonSchemaValue, name: str) -> None:
    """Refuse a type of which a part would not come back from JSON, or that does more than read it."""
    for field, node in _fields(adapter):
        if node.get("serialization_exclude"):
            raise SchemaUnsupported(f"{name} does not write its field {field!r}: no value would come back whole.")
        if node.get("init_only"):
            raise SchemaUnsupported(f"{name} is made from {field!r}, which it does not keep.")
        if node.get("init") is False:
            raise SchemaUnsupported(f"{name} writes {field!r}, which it is not made from.")
    functions = {getattr(node.get("function"), "__name__", "") for node in _nodes(adapter.core_schema)}
    if any(function.startswith("_serialize_secret") for function in functions) or any(
        node.get("writeOnly") is True for node in _nodes(schema)
    ):
        raise SchemaUnsupported(f"{name} holds a secret, which is masked when it is written. Use a str.")
    if "import_string" in functions:
        raise SchemaUnsupported(f"{name} imports what a text names; a text from outside must not choose code.")


def _fields(adapter: TypeAdapter[Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield name and description of every field inside of a type."""
    for node in _nodes(adapter.core_schema):
        fields = node.get("fields")
        if isinstance(fields, dict):
            yield from fields.items()
        elif isinstance(fields, list) and node.get("type") == "dataclass-args":
            yield from ((field["name"], field) for field in fields)


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every object of a nested structure, each once."""
    seen: set[int] = set()
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, dict | list | tuple) or id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, dict):
            yield node
            waiting.extend(node.values())
        else:
            waiting.extend(node)
