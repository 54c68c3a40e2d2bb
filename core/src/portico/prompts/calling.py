"""How a template reaches the functions of a kernel."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from portico.errors import ArgumentsInvalid, FunctionFailed, FunctionNotFound, PorticoError, SchemaUnsupported
from portico.functions import Function, Parameter
from portico.naming import find_function
from portico.prompts.prompt import Prompt, Trusted
from portico.types.compiled import Mismatch

if TYPE_CHECKING:
    from portico.kernel import Kernel
    from portico.ports.template_language import CallFunction

__all__ = ["caller", "json_caller"]

_AS_THEY_ARE = (str, int, float, bool, type(None), Trusted)


def caller(kernel: Kernel, variables: Mapping[str, object] | None = None) -> CallFunction:
    """Return what a template calls functions with.

    >>> import asyncio
    >>> from portico import Kernel, function
    >>> @function
    ... def repeat(text: str, times: int = 2) -> str:
    ...     return text * times
    >>> kernel = Kernel()
    >>> _ = kernel.add_function(repeat)
    >>> asyncio.run(caller(kernel)("repeat", {"times": "3"}, ["ho"]))
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


def json_caller(
    kernel: Kernel,
    carry_out: Callable[[Function, dict[str, Any]], Awaitable[object]],
    variables: Mapping[str, object],
) -> CallFunction:
    """Return what a template calls functions with where each call is one of JSON, as the steps of plans are.

    ``carry_out`` is given the function and its JSON arguments, found and read as `caller` does. Raises the same, and
    ``ArgumentsInvalid`` for a value that has no JSON form.
    """

    def call(name: str, arguments: Mapping[str, object], positional: Sequence[object] = (), /) -> Awaitable[object]:
        function = kernel.functions.get(name) or _find(kernel, name)
        return carry_out(function, _bound(function, arguments, positional, variables, as_json=True))

    return call


def _find(kernel: Kernel, name: str) -> Function:
    try:
        return kernel.function(name)
    except FunctionNotFound:
        return find_function(name, kernel.functions, lenient=True)


async def _invoke(kernel: Kernel, function: Function, values: dict[str, Any]) -> object:
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
