"""Replies with a form: a JSON Schema or a Python type, asked for in the way that a service can."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar

from portico._chat.messages import ChatCapabilities, ChatRequest, Message, Text
from portico._tool_loop.partial_json import NOTHING, PartialJson
from portico._types.compiled import Mismatch
from portico.errors import SchemaUnsupported

if TYPE_CHECKING:
    from portico._ports.schema_validator import SchemaValidator
    from portico._ports.type_codec import TypeCodec
    from portico._schema.strict import StrictForm


T = TypeVar("T")

Manner: TypeAlias = Literal["strict", "schema", "object", "instruct"]
"""How a service is asked: the schema in strict form, the schema as it is, any JSON object, or in words.

In each but the first, the schema is told in words too.
"""

_ANY_OBJECT: Mapping[str, Any] = {"type": "object"}

_NAME = re.compile(r"[^0-9A-Za-z_-]+")
_FAULTS_SHOWN = 20


class ReplyProblem(ValueError):
    """A reply that cannot be used; ``faults`` are sentences for the model."""

    def __init__(self, *faults: str) -> None:
        self.faults = faults
        super().__init__("; ".join(self.faults))


class ResponseFormat(Generic[T]):
    """The form that a reply must have, made ready once.

    >>> format = ResponseFormat.of(dict[str, int])
    >>> format.read('{"a": 1}', "schema")
    {'a': 1}
    >>> format.read('{"a": "x"}', "schema")
    Traceback (most recent call last):
    portico._tool_loop.structured.ReplyProblem: $.a: expected an integer, got 'x'
    """

    def __init__(
        self,
        schema: Mapping[str, Any],
        structure: Callable[[Any], T],
        draft: Callable[[Any], T],
        *,
        name: str = "reply",
        may_be_strict: bool = True,
    ) -> None:
        self.schema = schema
        self.name = _NAME.sub("_", name)[:64] or "reply"
        self._may_be_strict = may_be_strict
        self._structure = structure
        self._draft = draft

    @classmethod
    def of(
        cls,
        returns: object,
        *,
        codecs: Iterable[TypeCodec] = (),
        validator: SchemaValidator | None = None,
        name: str | None = None,
        may_be_strict: bool = True,
    ) -> ResponseFormat[Any]:
        """Make the form of a type, or of a JSON Schema given as a mapping.

        A type's reply is an object of it; a schema's is the JSON value. ``name`` is what the service is told, by
        default the type's name or the schema's title. Raises ``SchemaUnsupported``.
        """
        if isinstance(returns, Mapping):
            schema, usual = returns, returns.get("title")
            structure, draft = _of_schema(returns, validator)
        else:
            from portico._types.compiling import compile_type

            compiled = compile_type(returns, codecs)
            schema, usual = compiled.schema, getattr(returns, "__name__", None)
            structure, draft = compiled.structure, compiled.draft or compiled.structure
        name = name or (usual if isinstance(usual, str) else "reply")
        return ResponseFormat(schema, structure, draft, name=name, may_be_strict=may_be_strict)

    def manner(self, capabilities: ChatCapabilities, *, tools: bool) -> Manner:
        """Choose how to ask a service.

        A service that is held to a schema by a grammar cannot call tools meanwhile; only strict ones do both.
        """
        if capabilities.json_object and self._is_any_object and not tools:
            return "object"
        if capabilities.strict and self.strict is not None:
            return "strict"
        if tools:
            return "instruct"
        if capabilities.response_schema:
            return "schema"
        return "object" if capabilities.json_object and self.schema.get("type") == "object" else "instruct"

    @property
    def _is_any_object(self) -> bool:
        schema = {key: self.schema[key] for key in self.schema.keys() - {"title", "description"}}
        return schema.pop("additionalProperties", True) in (True, {}) and schema == _ANY_OBJECT

    @cached_property
    def strict(self) -> StrictForm | None:
        """The strict form; None where strict mode cannot hold the schema, or the caller wants it as it is."""
        from portico._schema.strict import StrictForm

        try:
            return StrictForm.of(self.schema) if self._may_be_strict else None
        except SchemaUnsupported:
            return None

    def ask(self, request: ChatRequest, manner: Manner) -> ChatRequest:
        """Return the request that asks for a reply of this form.

        Strict services show the schema to the model. Others only keep its words within the schema, and a model that
        does not know what is wanted fills it with anything: those are told in words too.
        """
        if manner == "strict" and self.strict is not None:
            return replace(request, response_schema=self.strict.schema, response_name=self.name, response_strict=True)
        request = replace(request, messages=(*self._add_instruction(request.messages),))
        if manner == "instruct":
            return request
        schema = _ANY_OBJECT if manner == "object" else self.schema
        return replace(request, response_schema=schema, response_name=self.name)

    def _add_instruction(self, messages: Iterable[Message]) -> list[Message]:
        """Put the instruction behind the system's words: many services take them at the beginning only."""
        messages = list(messages)
        instruction = (
            "Answer with one JSON value and nothing else: no words around it, no code fence. "
            f"It must be valid under this JSON Schema:\n{json.dumps(self.schema, ensure_ascii=False)}"
        )
        if messages and messages[0].role == "system":
            first, *rest = messages
            return [Message("system", (*first.content, Text(f"\n\n{instruction}")), first.name), *rest]
        return [Message.of("system", instruction), *messages]

    def read(self, text: str, manner: Manner) -> T:
        """Make the value of a whole reply; raises `ReplyProblem` with everything that does not fit.

        A model that was asked in words may put others around the value, and JSON of another form in them: the first
        value that is of the form is taken, and the faults are those of the last.
        """
        try:
            values = list(PartialJson.values_in(text)) if manner == "instruct" else [json.loads(text)]
        except (ValueError, RecursionError) as error:
            raise ReplyProblem(f"it is not JSON: {error}") from error
        for value in values[:-1]:
            try:
                return self._value(value, manner)
            except ReplyProblem:
                continue
        return self._value(values[-1], manner)

    def _value(self, value: Any, manner: Manner) -> T:
        try:
            return self._structure(self._decode(value, manner))
        except Mismatch as error:
            raise ReplyProblem(*map(str, error.faults[:_FAULTS_SHOWN])) from error
        except RecursionError as error:
            raise ReplyProblem("it is nested too deeply") from error

    def draft(self, value: Any, manner: Manner) -> T:
        """Make a value of the part of a reply's JSON that has come; raises `Mismatch` where there is none yet."""
        return self._draft(self._decode(value, manner))

    def _decode(self, value: Any, manner: Manner) -> Any:
        return self.strict.decode(value) if manner == "strict" and self.strict is not None else value


class DraftReader(Generic[T]):
    """Makes values of a reply while it streams, each time that there is more to show.

    A reply that is no JSON has no drafts; reading it whole says what is wrong.
    """

    def __init__(self, format: ResponseFormat[T], manner: Manner) -> None:
        self._format = format
        self._manner = manner
        self._reader = PartialJson(search=manner == "instruct")
        self._broken = False
        self._value: Any = NOTHING
        self._last: Any = NOTHING

    def feed(self, text: str) -> T:
        """Take more of the reply's text; return the value so far where it has changed, else `NOTHING`."""
        nothing: T = NOTHING
        if self._broken:
            return nothing
        try:
            value = self._reader.feed(text)
            if value is self._value:
                return nothing
            self._value = value
            draft = self._format.draft(value, self._manner)
        except Mismatch:
            return nothing
        except (ValueError, RecursionError):
            self._broken = True
            return nothing
        try:
            if self._last is not NOTHING and draft == self._last:
                return nothing
        except Exception:  # noqa: BLE001, S110 - a class may be unable to compare partial values
            pass
        self._last = draft
        return draft


def _of_schema(
    schema: Mapping[str, Any], validator: SchemaValidator | None
) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Return what checks a value of a schema, and what copies a part of one."""
    from portico._schema.validate import PlainSchemaValidator
    from portico._types.compiling import copy_json

    validate = (validator or PlainSchemaValidator()).compile(schema)

    def structure(value: Any) -> Any:
        faults = validate(value)
        if faults:
            raise ReplyProblem(*faults[:_FAULTS_SHOWN])
        return value

    return structure, copy_json
