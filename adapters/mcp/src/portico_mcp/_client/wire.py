"""Tools as functions, and the results of calls as values: between the protocol's types and the core's."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from mcp_types import CallToolResult, GetPromptResult, Prompt, Tool

from portico import Function, FunctionLabels, Image, Message, Parameter, Text
from portico.errors import ResponseInvalid, SchemaUnsupported
from portico.plugins import Compiled, JsonSchema
from portico_mcp._client.pins import fingerprint
from portico_mcp._client.schemas import DATA, SchemaUnusable, read_schema
from portico_mcp._client.words import clean, sentence

if TYPE_CHECKING:
    from portico import Kernel
    from portico.ports import SchemaValidator

GetPrompt: TypeAlias = Callable[[str, Mapping[str, Any], str], Awaitable[GetPromptResult]]


class CallTool(Protocol):
    """Calls a tool of the server by its name; ``what`` names it in errors. Raises ``ServiceError`` where it failed."""

    async def __call__(self, tool: str, arguments: Mapping[str, Any], what: str, *, repeat: bool) -> CallToolResult: ...


_NOT_GIVEN = object()
"""The default of a parameter for which the server has its own: it has no JSON form."""
_COMPOSED = frozenset({"$ref", "allOf", "anyOf", "oneOf"})
_OPEN = frozenset({"additionalProperties", "patternProperties", "unevaluatedProperties", "anyOf", "oneOf", "$ref"})
TEXT: Mapping[str, Any] = {"type": "string"}
_PART: Mapping[str, Any] = {
    "type": {"enum": ["text", "image", "audio", "resource", "resource_link"]},
    **{key: {"type": "string"} for key in ("text", "media_type", "data", "uri", "name")},
    "data": {"type": "string", "description": "The bytes, in base64."},
}
_LIST = {"type": "array", "items": {"type": "object", "properties": _PART, "required": ["type"]}}
PARTS: Mapping[str, Any] = {"anyOf": [TEXT, _LIST]}
"""What a tool without an output schema gives: a text, or parts where there is more than text."""


def tool_function(
    said: Mapping[str, Any], name: str, plugin: str, call: CallTool, *, trusted: bool, validator: SchemaValidator | None
) -> Function:
    """Make a function of a tool, of which the server has ``said`` this.

    Raises `SchemaUnusable` for a tool whose schemas cannot be used.
    """
    tool = Tool.model_validate(said, by_name=False)
    schema = read_schema(tool.input_schema)
    if "properties" not in schema and _COMPOSED & schema.keys():
        raise SchemaUnusable("its parameters are composed of several schemas")
    definitions = schema.get("$defs", {})
    required = schema.get("required", ())
    parameters = []
    for key, part in schema.get("properties", {}).items():
        inner: dict[str, Any] = dict(part) if isinstance(part, Mapping) else {} if part else {"not": {}}
        known = inner.pop("description", "")
        compiled = _as_it_is(JsonSchema.attach(inner, definitions))
        parameters.append(Parameter(key, str(known), compiled, key in required, inner.get("default", _NOT_GIVEN)))
    returns = (
        _as_it_is(PARTS) if tool.output_schema is None else _checked(tool, f"functions.{plugin}: {name}", validator)
    )
    hints = tool.annotations
    effects = not (trusted and hints is not None and hints.read_only_hint is True)

    async def call_tool(**arguments: Any) -> Any:
        result = await call(tool.name, arguments, name, repeat=not effects)
        return value_of(result, returns, f"functions.{plugin}: {name}")

    title = tool.title or (hints.title if hints else None)
    return Function(
        name,
        call_tool,
        plugin=plugin,
        description=clean(tool.description or title or f"The tool {name}."),
        parameters=parameters,
        returns=returns,
        effects=effects,
        tags=frozenset({f"pin={fingerprint(said)}"}),
        labels=FunctionLabels(reaches_out=(hints is not None and hints.open_world_hint is True) or _takes_urls(schema)),
    )


def _takes_urls(schema: Mapping[str, Any]) -> bool:
    """Return whether a parameter is a URL, by its format or its name: whoever chooses it may be told things by it."""
    return any(
        re.search(r"(?:^|_)ur[il]s?$", re.sub(r"(?<=[a-z])(?=[A-Z])|-", "_", key).casefold())
        or (isinstance(part, Mapping) and re.search(r'"format": "(?:ur[il]|iri)"', json.dumps(part)))
        for key, part in schema.get("properties", {}).items()
    )


def prompt_function(said: Mapping[str, Any], name: str, plugin: str, get: GetPrompt, *, effects: bool) -> Function:
    """Make a function of a prompt: it asks the kernel's chat service with the messages that the server makes."""
    prompt = Prompt.model_validate(said, by_name=False)
    text, place = _as_it_is(TEXT), f"functions.{plugin}: {name}"

    def bind(kernel: Kernel) -> Callable[..., Any]:
        async def ask(**arguments: Any) -> str:
            found = await get(prompt.name, arguments, name)
            messages = [Message.of(each.role, *_message_parts(each.content, place)) for each in found.messages]
            return (await kernel.complete(messages)).value

        return ask

    return Function(
        name,
        _unbound,
        plugin=plugin,
        description=clean(prompt.description or prompt.title or f"Ask with the prompt {name}."),
        parameters=[
            Parameter(each.name, clean(each.description or "", 1_000), text, each.required is True, _NOT_GIVEN)
            for each in prompt.arguments or ()
        ],
        returns=text,
        effects=effects,
        tags=frozenset({f"pin={fingerprint(said)}"}),
        labels=FunctionLabels(),
        bind=bind,
    )


async def _unbound(**arguments: Any) -> Any:
    raise RuntimeError("this prompt is in no kernel: call what Kernel.add_plugin returned")


def resource_function(call: Callable[..., Any], name: str, plugin: str, *, effects: bool) -> Function:
    """Make a function of a method that lists or reads resources."""
    made = Function.of(call, plugin=plugin)
    return Function(
        name, call, plugin=plugin, description=made.description, parameters=made.parameters, returns=made.returns,
        effects=effects, labels=FunctionLabels(reaches_out="uri" in {each.name for each in made.parameters}),
    )  # fmt: skip


def _as_it_is(schema: Mapping[str, Any]) -> Compiled:
    """Return a schema that says what is to be expected; the server checks the arguments of its tools itself."""
    return Compiled(schema, _same, _same)


def _checked(tool: Tool, said: str, validator: SchemaValidator | None) -> Compiled:
    """Return the schema of a result, whose values are checked where the schema validator knows its keywords."""
    schema = read_schema(tool.output_schema or {})
    check: Callable[[Any], list[str]] | None = None
    if validator is not None:
        try:
            check = validator.compile(schema)
        except SchemaUnsupported:
            check = None

    def structure(value: Any) -> Any:
        if check is not None and (faults := check(value)):
            raise ResponseInvalid(f"{said} gave a result that its own schema forbids: {sentence(faults[0])}")
        return value

    return Compiled(schema if "allOf" in json.dumps(schema) else _closed(schema), structure, _same)


def _closed(schema: Any) -> Any:
    """Return the schema of a result in which an object has the properties that are described, and no others.

    A server may give more; a plan that uses what is not described is refused before it runs.
    """
    if isinstance(schema, list):
        return [_closed(part) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    made = {key: part if key in DATA else _closed(part) for key, part in schema.items()}
    if isinstance(schema.get("properties"), Mapping) and not _OPEN & schema.keys() and schema.get("type") == "object":
        made["additionalProperties"] = False
    return made


def _same(value: Any) -> Any:
    return value


def value_of(result: CallToolResult, returns: Compiled, said: str) -> Any:
    """Return what a call gave: its structured content where the tool has an output schema, else its content.

    Raises ``ResponseInvalid`` for a result that is not of the tool's schema.
    """
    if returns.schema is PARTS:
        if result.content or result.structured_content is None:
            return plain([_part(block.model_dump(mode="json", exclude_none=True)) for block in result.content])
        return json.dumps(result.structured_content, ensure_ascii=False)
    if result.structured_content is None and "structured_content" not in result.model_fields_set:
        raise ResponseInvalid(f"{said} gave no structured result, which its schema promises.")
    return returns.structure(result.structured_content)


def plain(parts: Sequence[Mapping[str, Any]]) -> Any:
    """Return the text of parts that are all text, else the parts."""
    if all(part["type"] == "text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    return list(parts)


def contents_of(contents: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the contents of a resource as parts; a text is one, with its URI only where there is more."""
    dumped = [each.model_dump(mode="json", exclude_none=True) for each in contents]
    return [_part({"type": "text" if "text" in each else "resource", **each}) for each in dumped]


def resource_of(resource: Any) -> dict[str, Any]:
    """Return what a server says of a resource, or of a template of resources."""
    uri = {"uri": str(resource.uri)} if hasattr(resource, "uri") else {"uri_template": resource.uri_template}
    found = uri | {"name": clean(resource.title or resource.name, 200)}
    more = {"description": resource.description and clean(resource.description), "media_type": resource.mime_type}
    return found | {key: value for key, value in more.items() if value}


def _part(block: Mapping[str, Any]) -> dict[str, Any]:
    inner = block.get("resource", block)
    media = {"media_type": inner.get("mime_type"), "data": inner.get("data", inner.get("blob"))}
    found = {
        "type": block["type"],
        "text": inner.get("text"),
        **media,
        "uri": inner.get("uri"),
        "name": inner.get("name"),
    }
    return {key: value for key, value in found.items() if value is not None}


def _message_parts(content: Any, said: str) -> list[Text | Image]:
    """Return the content of a prompt's message as parts; what is no text and no picture is named."""
    part = _part(content.model_dump(mode="json", exclude_none=True))
    if part["type"] == "image":
        try:
            return [Image(b64decode(part["data"]), media_type=part["media_type"])]
        except ValueError as error:
            raise ResponseInvalid(f"{said} gave a picture that cannot be read: {error}.") from error
    return [Text(part.get("text") or f"[{' '.join(filter(None, (part['type'], part.get('uri'))))}]")]
