"""Calls of functions from a template."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from portico._functions.functions import FunctionSpec
from portico._prompts.prompt import Prompt, Trusted
from portico._types.compiled import Mismatch
from portico._types.compiling import compile_type
from portico.errors import ArgumentsInvalid, FunctionFailed, FunctionNotFound, PorticoError, SchemaUnsupported

if TYPE_CHECKING:
    from portico._functions.functions import Function, Parameter
    from portico._kernel_like import KernelLike
    from portico._ports.template_language import CallFunction
    from portico._ports.type_codec import TypeCodec


_TYPES_KEPT = 256


class TextForm:
    """Write values as text, each kind by one rule, whatever the locale.

    >>> from datetime import date
    >>> write = TextForm()
    >>> [write(value) for value in ("as it is", None, True, 2.5, date(2026, 3, 1))]
    ['as it is', '', 'True', '2.5', '2026-03-01']
    >>> write({"name": "Ada", "born": date(1815, 12, 10), "tall": True})
    '{"name": "Ada", "born": "1815-12-10", "tall": true}'

    Text stays, None is empty, and numbers and bools are written as Python and .NET write them. Everything else is
    written by its JSON form: what is one string there (dates, UUIDs, enumerations of texts) as that string, lists,
    mappings and classes with fields as JSON, without names that begin with ``_``. What has no JSON form is written by
    its own ``__str__``. ``codecs`` are asked for the types that the standard library does not know.
    """

    __slots__ = ("_unstructure",)

    def __init__(self, codecs: Iterable[TypeCodec] = ()) -> None:
        codecs = tuple(codecs)
        self._unstructure: Callable[[Any], Callable[[Any], Any]] = lru_cache(_TYPES_KEPT)(
            lambda kind: _find_unstructure(kind, codecs)
        )

    def __call__(self, value: object) -> str:
        """Return the text; raises ``ValueError`` for a value that has none, saying why."""
        try:
            value = self._json(value)
            if isinstance(value, str):
                return value
            if value is None:
                return ""
            if isinstance(value, bool | int | float):
                return str(value)
            return json.dumps(value, ensure_ascii=False)
        except SchemaUnsupported as error:
            raise ValueError(str(error)) from error
        except RecursionError as error:
            raise ValueError("The value is nested too deeply, or contains itself.") from error

    def _json(self, value: Any) -> Any:
        kind = type(value)
        if kind in (str, int, float, bool, type(None)):
            return value
        if kind in (list, tuple, set, frozenset):
            return [self._json(element) for element in value]
        if isinstance(value, Mapping):
            wrong = next((key for key in value if not isinstance(key, str)), None)
            if wrong is not None:
                raise SchemaUnsupported(f"The keys of a JSON object are strings, not {wrong!r}.")
            return {str(key): self._json(element) for key, element in value.items() if not key.startswith("_")}
        return _without_hidden(self._unstructure(kind)(value))


def _without_hidden(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_hidden(each) for key, each in value.items() if not str(key).startswith("_")}
    return [_without_hidden(each) for each in value] if isinstance(value, list) else value


def _find_unstructure(kind: Any, codecs: tuple[TypeCodec, ...]) -> Callable[[Any], Any]:
    try:
        return compile_type(kind, codecs).unstructure
    except SchemaUnsupported:
        if kind.__str__ is object.__str__ or issubclass(kind, bytes | bytearray):
            raise  # All that there is to say of it is its class and address, or how Python would write it.
        return str


@lru_cache(1)
def _line_starts(source: str) -> list[int]:
    return [0, *(found.end() for found in re.finditer("\n", source))]


@dataclass(frozen=True, slots=True)
class FunctionCall:
    r"""A call of a function as it is written in a template, for checking it before anything runs.

    >>> FunctionCall.at("Dear\n{{Tone-shout 'Ada'}}", 7, "Tone-shout", positional=1)
    FunctionCall(function='Tone-shout', positional=1, named=(), line=2, column=3, certain=True, variable='')

    ``positional`` is how many arguments have no name, ``named`` the names of the others. Line and column count from 1.
    A call that is not ``certain`` may be of something else than a function, or have other arguments. Where a value of
    the name ``variable`` is given to the template, nothing is called.
    """

    function: str
    positional: int
    named: tuple[str, ...]
    line: int
    column: int
    certain: bool = True
    variable: str = ""

    @classmethod
    def at(cls, source: str, index: int, function: str, *, positional: int, named: Iterable[str] = ()) -> FunctionCall:
        """Return the call whose name stands at an index of a template's source."""
        lines = _line_starts(source)
        line = bisect_right(lines, index)
        return cls(function, positional, tuple(named), line, index - lines[line - 1] + 1)

    @staticmethod
    def caller(
        kernel: KernelLike,
        variables: Mapping[str, object] | None = None,
        *,
        call_json: Callable[[Function, dict[str, Any]], Awaitable[object]] | None = None,
        called: Callable[[Function], object] | None = None,
    ) -> CallFunction:
        """Return what a template calls functions with.

        >>> import asyncio
        >>> from portico import Kernel, function
        >>> @function
        ... def repeat(text: str, times: int = 2) -> str:
        ...     return text * times
        >>> kernel = Kernel()
        >>> _ = kernel.add_function(repeat)
        >>> asyncio.run(FunctionCall.caller(kernel)("repeat", {"times": "3"}, ["ho"]))
        'hohoho'

        Values go to a function as they are, but for two kinds. Text for a parameter that takes no text is read as what
        the parameter takes: a date, a number, JSON. None for a parameter that does not take it leaves the parameter its
        default, and is empty text for one that has none. Names that differ in case only are understood.

        What a call leaves out, a required parameter takes from the variable of its name. Where a call has no arguments
        at all, the first required parameter takes the variable ``input`` if there is none of its name. Semantic Kernel
        fills optional parameters from variables too; here those are the template's to set.

        A result comes as its JSON form. ``call_json`` calls the function in place of the kernel, with JSON arguments;
        ``called`` gets each function before it is called.

        Raises ``FunctionNotFound`` and ``ArgumentsInvalid`` at once; awaiting raises what the function raises, and
        ``FunctionFailed`` for a result that is not of the function's type.
        """
        given = {} if variables is None else variables

        def call(name: str, arguments: Mapping[str, object], positional: Sequence[object] = (), /) -> Awaitable[object]:
            function = kernel.functions.get(name) or _find(kernel, name)
            if called is not None:
                called(function)
            if call_json is not None:
                return call_json(function, _bind(function, arguments, positional, given, as_json=True))
            return _invoke(kernel, function, _bind(function, arguments, positional, given))

        return call


_AS_THEY_ARE = (str, int, float, bool, type(None), Trusted)


def _find(kernel: KernelLike, name: str) -> Function:
    try:
        return kernel.function(name)
    except FunctionNotFound:
        return kernel.functions[FunctionSpec.find_name(name, kernel.functions, lenient=True)]


async def _invoke(kernel: KernelLike, function: Function, values: dict[str, Any]) -> object:
    result = await kernel.invoke(function, **values)
    if type(result) in _AS_THEY_ARE:
        return result
    try:
        return function.returns.unstructure(result)
    except SchemaUnsupported:
        return result
    except PorticoError:
        raise
    except Exception as error:
        raise FunctionFailed(function.full_name, error) from error


def _bind(
    function: Function,
    arguments: Mapping[str, object],
    positional: Sequence[object],
    variables: Mapping[str, object],
    *,
    as_json: bool = False,
) -> dict[str, Any]:
    """Give each parameter its value, or the JSON that it is read from, and report all faults at once."""
    faults: list[str] = []
    given = _by_name(function.parameters, arguments, positional, faults)
    bare = not arguments and not positional
    values: dict[str, Any] = {}
    for parameter in function.parameters:
        name = parameter.name
        if name not in given and parameter.required:
            if name in variables:
                given[name] = variables[name]
            elif bare and not (values or faults) and "input" in variables:
                given[name] = variables["input"]
            else:
                faults.append(f"{name}: missing")
        if name not in given:
            continue
        value = given[name]
        if value is None and not _takes(parameter, None):
            if not parameter.required:
                continue
            if not _takes(parameter, ""):
                faults.append(f"{name}: missing")
                continue
            value = ""
        try:
            if isinstance(value, str):
                # A function takes plain text: markup counts in prompts only.
                text = str(value) if type(value) in (Trusted, Prompt) else value
                values[name] = _read(parameter, text)[as_json]
            else:
                values[name] = json.loads(json.dumps(value, allow_nan=False)) if as_json else value
        except Mismatch as error:
            faults += [f"{name}{str(fault).removeprefix('$')}" for fault in error.faults]
        except (TypeError, ValueError, RecursionError) as error:
            faults.append(f"{name}: the value has no JSON form: {error}")
    if faults:
        raise ArgumentsInvalid(function.full_name, faults)
    return values


def _by_name(
    parameters: Sequence[Parameter], arguments: Mapping[str, object], positional: Sequence[object], faults: list[str]
) -> dict[str, object]:
    """Give the arguments the names of their parameters."""
    names = [parameter.name for parameter in parameters]
    given = dict(zip(names, positional, strict=False))
    if len(positional) > len(names):
        faults.append(f"it takes {f'at most {len(names)}' if names else 'no'} arguments, not {len(positional)}")
    by_place = set(given)
    for written, value in arguments.items():
        alike = [written] if written in names else [name for name in names if name.casefold() == written.casefold()]
        if len(alike) != 1:
            faults.append(f"{written}: unknown; the parameters are {', '.join(names) or 'none'}")
        elif alike[0] in by_place:
            faults.append(f"{alike[0]}: given twice, by place and by name")
        else:
            given[alike[0]] = value
    return given


def _takes(parameter: Parameter, value: object) -> bool:
    try:
        parameter.compiled.structure(value)
    except Mismatch:
        return False
    return True


def _read(parameter: Parameter, text: str) -> tuple[Any, Any]:
    """Read a text as what the parameter takes, as a JSON string first, then as JSON; return the value and the JSON."""
    structure = parameter.compiled.structure
    try:
        return structure(text), text
    except Mismatch as error:
        refused = error
    try:
        value = json.loads(text.lower() if text in ("True", "False") else text)
    except (ValueError, RecursionError):
        raise refused from None
    if isinstance(value, str):
        raise refused
    return structure(value), value
