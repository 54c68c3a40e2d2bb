"""Calls of functions from a template."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from portico._functions.functions import find_function
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
    mappings and classes with fields as JSON. What has no JSON form is written by its own ``__str__``. ``codecs`` are
    asked for the types that the standard library does not know.
    """

    __slots__ = ("_unstructure",)

    def __init__(self, codecs: Iterable[TypeCodec] = ()) -> None:
        codecs = tuple(codecs)
        self._unstructure: Callable[[Any], Callable[[Any], Any]] = lru_cache(_TYPES_KEPT)(
            lambda kind: _unstructuring(kind, codecs)
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
            return {str(key): self._json(element) for key, element in value.items()}
        return self._unstructure(kind)(value)


def _unstructuring(kind: Any, codecs: tuple[TypeCodec, ...]) -> Callable[[Any], Any]:
    try:
        return compile_type(kind, codecs).unstructure
    except SchemaUnsupported:
        if kind.__str__ is object.__str__ or issubclass(kind, bytes | bytearray):
            raise  # All that there is to say of it is its class and address, or how Python would write it.
        return str


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call of a function as it is written in a template, for checking it before anything runs.

    ``positional`` is how many arguments have no name, ``named`` the names of the others. Line and column count from 1.
    """

    function: str
    positional: int
    named: tuple[str, ...]
    line: int
    column: int

    @staticmethod
    def places(source: str) -> CallPlaces:
        """Return what finds the line and the column of each call in a source."""
        return CallPlaces(source)

    @staticmethod
    def caller(kernel: KernelLike, variables: Mapping[str, object] | None = None) -> CallFunction:
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

        A result comes as its JSON form. Raises ``FunctionNotFound`` and ``ArgumentsInvalid`` at once; awaiting raises
        what the function raises, and ``FunctionFailed`` for a result that is not of the function's type.
        """
        given = {} if variables is None else variables

        def call(name: str, arguments: Mapping[str, object], positional: Sequence[object] = (), /) -> Awaitable[object]:
            function = kernel.functions.get(name) or _find(kernel, name)
            return _invoke(kernel, function, _bound(function, arguments, positional, given))

        return call


class CallPlaces:
    r"""The lines of a source, looked through once, for the places of the calls in it.

    >>> CallPlaces("Dear\n{{Tone-shout 'Ada'}}").call("Tone-shout", 1, (), at=7)
    FunctionCall(function='Tone-shout', positional=1, named=(), line=2, column=3)
    """

    __slots__ = ("_begins",)

    def __init__(self, source: str) -> None:
        self._begins = [0]
        end = source.find("\n")
        while end >= 0:
            self._begins.append(end + 1)
            end = source.find("\n", end + 1)

    def call(self, function: str, positional: int, named: Iterable[str], *, at: int) -> FunctionCall:
        """Return the call whose name stands at the index ``at``."""
        line = bisect_right(self._begins, at)
        return FunctionCall(function, positional, tuple(named), line, at - self._begins[line - 1] + 1)


_AS_THEY_ARE = (str, int, float, bool, type(None), Trusted)


def json_caller(
    kernel: KernelLike,
    carry_out: Callable[[Function, dict[str, Any]], Awaitable[object]],
    variables: Mapping[str, object],
) -> CallFunction:
    """Return what a template calls functions with where each call is one of JSON, as the steps of plans are.

    ``carry_out`` is given the function and its JSON arguments, found and read as `FunctionCall.caller` does. Raises the
    same, and ``ArgumentsInvalid`` for a value that has no JSON form.
    """

    def call(name: str, arguments: Mapping[str, object], positional: Sequence[object] = (), /) -> Awaitable[object]:
        function = kernel.functions.get(name) or _find(kernel, name)
        return carry_out(function, _bound(function, arguments, positional, variables, as_json=True))

    return call


def _find(kernel: KernelLike, name: str) -> Function:
    try:
        return kernel.function(name)
    except FunctionNotFound:
        return find_function(name, kernel.functions, lenient=True)


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


def _bound(
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
        if name not in given:
            if not parameter.required:
                continue
            source = name if name in variables else "input"
            if source not in variables or (source != name and (values or faults or not bare)):
                faults.append(f"{name}: missing")
                continue
            given[name] = variables[source]
        value = given[name]
        if isinstance(value, str):
            try:
                # To a function a text is a text; what the prompt may take as markup is no matter of its.
                text = str(value) if type(value) in (Trusted, Prompt) else value
                values[name] = _read(parameter, text)[as_json]
            except Mismatch as error:
                faults += [f"{name}{str(fault).removeprefix('$')}" for fault in error.faults]
        elif value is not None or _takes(parameter, None):
            values[name] = _plain(name, value, faults) if as_json else value
        elif parameter.required and _takes(parameter, ""):
            values[name] = ""
        elif parameter.required:
            faults.append(f"{name}: missing")
    if faults:
        raise ArgumentsInvalid(function.full_name, faults)
    return values


def _by_name(
    parameters: Sequence[Parameter], arguments: Mapping[str, object], positional: Sequence[object], faults: list[str]
) -> dict[str, object]:
    """Give the arguments the names of their parameters."""
    names = [parameter.name for parameter in parameters]
    by_place = dict(zip(names, positional, strict=False))
    if len(positional) > len(names):
        faults.append(f"it takes {f'at most {len(names)}' if names else 'no'} arguments, not {len(positional)}")
    by_name: dict[str, object] = {}
    for written, value in arguments.items():
        name = written if written in names else _only_alike(written, names)
        if name is None:
            faults.append(f"{written}: unknown; the parameters are {', '.join(names) or 'none'}")
        elif name in by_place:
            faults.append(f"{name}: given twice, by place and by name")
        else:
            by_name[name] = value
    return by_place | by_name


def _only_alike(written: str, names: Sequence[str]) -> str | None:
    alike = [name for name in names if name.casefold() == written.casefold()]
    return alike[0] if len(alike) == 1 else None


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


def _plain(name: str, value: object, faults: list[str]) -> Any:
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        faults.append(f"{name}: the value has no JSON form: {error}")
        return None
