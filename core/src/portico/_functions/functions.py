"""Functions: Python functions that models and plans can call."""

from __future__ import annotations

import hashlib
import inspect
import json
import re
import typing
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from types import FunctionType, MethodType, ModuleType
from typing import Any, TypeVar, final, overload
from weakref import WeakValueDictionary

from portico._chat.messages import Tool
from portico._flows.labels import FunctionLabels
from portico._schema.coerce import structure_leniently
from portico._schema.definitions import hoist, shorten, with_definitions
from portico._schema.strict import StrictForm
from portico._types.classes import note, resolve_hints
from portico._types.compiled import Compiled, Mismatch
from portico._types.compiling import KEPT, compile_type
from portico._types.docstrings import describe
from portico.errors import ArgumentsInvalid, FunctionNotFound, SchemaUnsupported

if typing.TYPE_CHECKING:
    from portico._ports.type_codec import TypeCodec


F = TypeVar("F", bound=Callable[..., Any])
_NAME = re.compile(r"[0-9A-Za-z_]+")
_MARK = "__portico_function__"
SEARCH_TAG = "search"
RESULTS_TAG = "results"
"""The tag of each function that gives what a search found."""
ANSWER_TAG = "answer"
"""The tag of a function that answers a ``question`` in words from ``sources``, passages that searches found."""
_SEPARATORS = re.compile(r"[-._:/ ]+")
_ABSENT: Any = object()
_WIRE_LENGTH = 64
_LONGEST_OUTPUT = 4_000


@dataclass(frozen=True, slots=True)
class _Options:
    name: str | None
    description: str | None
    blocking: bool
    effects: bool
    tags: frozenset[str]
    labels: FunctionLabels | None = None


@overload
def function(callable: F, /) -> F: ...
@overload
def function(
    *,
    name: str | None = None,
    description: str | None = None,
    blocking: bool = False,
    effects: bool = False,
    tags: Iterable[str] = (),
    gives: Mapping[str, str] | str | None = None,
    takes: Mapping[str, str] | None = None,
) -> Callable[[F], F]: ...
def function(
    callable: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    blocking: bool = False,
    effects: bool = False,
    tags: Iterable[str] = (),
    gives: Mapping[str, str] | str | None = None,
    takes: Mapping[str, str] | None = None,
) -> Any:
    """Mark a callable as a function for kernels. It stays an ordinary callable.

    >>> @function
    ... def add(a: int, b: int = 1) -> int:
    ...     '''Add two numbers.'''
    ...     return a + b
    >>> add(1, 2), Function.of(add).description
    (3, 'Add two numbers.')

    ``blocking=True`` runs a synchronous one in a thread, so that it does not block others. ``effects=True`` says that
    it must not happen twice: it is not repeated unasked. ``tags`` are words by which planners recognise kinds.
    ``gives`` and ``takes`` label its result and parameters for a `Policy`, in the words of `FunctionLabels.read`.
    """
    labels = None if gives is None and takes is None else FunctionLabels.read(gives, takes)
    options = _Options(name, description, blocking, effects, frozenset(tags), labels)

    def mark(target: Any) -> Any:
        # What a class gives back of a static or class method is not the object that it holds.
        setattr(target.__func__ if isinstance(target, staticmethod | classmethod) else target, _MARK, options)
        return target

    return mark if callable is None else mark(callable)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: name, description, compiled type, and default."""

    name: str
    description: str
    compiled: Compiled
    required: bool
    default: Any = None

    @property
    def schema(self) -> dict[str, Any]:
        """JSON Schema of the parameter, with its description, and its default if that has a JSON form."""
        schema = dict(self.compiled.schema)
        if self.description:
            schema["description"] = self.description
        if not self.required:
            schema |= self.compiled.json_default(self.default)
        return schema


@dataclass(frozen=True, slots=True, weakref_slot=True)
class FunctionSpec:
    """The description of a function for planners and models: data only, no code.

    ``parameters`` and ``returns`` are JSON Schemas; ``parameters`` is of type object.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    returns: Mapping[str, Any]
    effects: bool = False
    tags: frozenset[str] = frozenset()
    labels: FunctionLabels | None = field(default=None, repr=False, compare=False)
    checked: Any = field(default=None, init=False, repr=False, compare=False)
    """A cache of the check of plans."""

    def to_openapi(self) -> dict[str, Any]:
        """Write the spec as JSON Schema of inputs and output, in the form of an OpenAPI operation.

        >>> from portico import Function
        >>> def double(number: int) -> int:
        ...     return 2 * number
        >>> Function.of(double).spec.to_openapi()["responses"]["200"]["content"]["application/json"]["schema"]
        {'type': 'integer'}

        ``parameters`` is a whole schema with its own ``$defs``, and the output's is `brief_returns`. Semantic Kernel
        calls this form a JsonSchemaFunctionView.
        """
        return {
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
            "responses": {
                "200": {
                    "description": self.returns.get("description") or "Success",
                    "content": {"application/json": {"schema": self.brief_returns}},
                }
            },
        }

    @property
    def brief_returns(self) -> Mapping[str, Any]:
        """The schema of the output as manuals show it: of one with more than 4,000 characters the upper levels."""
        return shorten(self.returns, _LONGEST_OUTPUT)

    def tool(self, *, name: str | None = None) -> Tool:
        """Make an entry of a chat service's tool list; the default ``name`` is the full name.

        >>> from portico import Function
        >>> def double(number: int) -> int:
        ...     return 2 * number
        >>> (Function.of(double, plugin="Sums").spec).tool().name
        'Sums-double'
        """
        return Tool(name or self.name, self.description, self.parameters)

    @staticmethod
    def write_text(specs: Iterable[FunctionSpec]) -> str:
        """Write manuals as indented text, a block for each function, in the form of Semantic Kernel's planners.

        >>> from portico import Function
        >>> def forecast(city: str, days: int = 1) -> str:
        ...     '''Tell the weather.
        ...
        ...     Args:
        ...         city: Where, by its English name.
        ...     '''
        >>> print(FunctionSpec.write_text([Function.of(forecast, plugin="Weather").spec]))
        Weather.forecast:
          description: Tell the weather.
          inputs:
          - city: Where, by its English name.
          - days: (default: 1)

        Names have a dot. Defaults are JSON.
        """
        return "\n\n".join("\n".join(_lines(spec)) for spec in specs)

    @staticmethod
    def wire_name(full_name: str) -> str:
        """Return a function's name for chat services: at most 64 letters, digits, ``_`` and ``-``, as OpenAI takes.

        A longer name keeps its beginning and ends in a digest of the whole, so that it is unique and always the same.
        """
        if len(full_name) <= _WIRE_LENGTH and full_name.isascii():
            return full_name
        digest = hashlib.sha256(full_name.encode()).hexdigest()[:8]
        return f"{full_name.encode('ascii', 'replace').decode().replace('?', '_')[: _WIRE_LENGTH - 9]}_{digest}"

    @staticmethod
    def find_name(name: str, full_names: Collection[str], *, lenient: bool = False) -> str:
        """Find the full name for another spelling that means one function only.

        >>> FunctionSpec.find_name("weather.forecast", ["Weather-Forecast", "Clock-Now"], lenient=True)
        'Weather-Forecast'

        ``Plugin.Function``, ``Plugin_Function`` and a bare ``Function`` are other spellings; with ``lenient``, for
        models, case does not matter. Raises ``FunctionNotFound`` with the nearest names, or with all that may be meant.
        """
        if name in full_names:
            return name
        for ignore_case in (False, True)[: 1 + lenient]:
            matches = _match_names(name, full_names, ignore_case)
            if len(matches) == 1:
                return matches[0]
            if matches:
                raise FunctionNotFound(name, list(full_names), meant=matches)
        raise FunctionNotFound(name, list(full_names))

    @staticmethod
    def find_names(names: Iterable[str], full_names: Collection[str]) -> Iterator[str]:
        """Yield the full names of functions; the name of a plugin means all of its functions.

        >>> list(FunctionSpec.find_names(["Clock", "rain"], ["Clock-now", "Clock-set", "Sky-rain", "Sky-snow"]))
        ['Clock-now', 'Clock-set', 'Sky-rain']

        Raises ``FunctionNotFound`` as `find_name` does, and ``TypeError`` for one text instead of several.
        """
        if isinstance(names, str):
            raise TypeError(f"names of functions are several, not one text: write [{names!r}]")
        for name in names:
            inside = [] if name in full_names else [each for each in full_names if each.startswith(f"{name}-")]
            yield from inside or (FunctionSpec.find_name(name, full_names),)

    @property
    def is_search(self) -> bool:
        """Whether it searches a source with a query."""
        return SEARCH_TAG in self.tags

    @property
    def is_answer(self) -> bool:
        """Whether it answers a ``question`` from ``sources``. A planner whose model words the answer needs none."""
        known, needed = (self.parameters.get(key, ()) for key in ("properties", "required"))
        return ANSWER_TAG in self.tags and {"question", "sources"} <= {*known} and {*needed} <= {"question", "sources"}

    def search_parameter(self, role: str) -> str:
        """Return what a search calls its parameter ``query``, ``count`` or ``skip``, by a tag like ``query=topic``."""
        return next((tag.partition("=")[2] for tag in self.tags if tag.startswith(f"{role}=")), role)

    def tool_form(self, *, strict: bool) -> tuple[Tool, StrictForm | None]:
        """Return a function's entry in a tool list; with ``strict`` in strict form where that is exact, and this form.

        A form that is no identity decodes the arguments that a model wrote.
        """
        plain = self.tool(name=FunctionSpec.wire_name(self.name))
        if not strict:
            return plain, None
        try:
            form = StrictForm.of(self.parameters, loosen=False)
        except SchemaUnsupported:
            return plain, None
        return Tool(plain.name, plain.description, form.schema, strict=True), form


@final
class Function:
    """A callable with its manual, ready to be called with Python values or with JSON.

    >>> def shout(text: str) -> str:
    ...     return text.upper()
    >>> shouting = Function.of(shout, plugin="Tone")
    >>> shouting.full_name, shouting.spec.parameters["required"]
    ('Tone-shout', ['text'])
    """

    def __init__(
        self,
        name: str,
        callable: Callable[..., Any],
        *,
        plugin: str | None = None,
        description: str = "",
        parameters: Iterable[Parameter] = (),
        returns: Compiled,
        blocking: bool = False,
        effects: bool = False,
        tags: frozenset[str] = frozenset(),
        labels: FunctionLabels | None = None,
        bind: Callable[[Any], Callable[..., Any] | Function] | None = None,
    ) -> None:
        for word in (name, plugin):
            if word is not None and not _NAME.fullmatch(word):
                raise ValueError(f"{word!r} is not a name: letters, digits and '_' only")
        self.name = name
        self.plugin = plugin
        self.full_name = f"{plugin}-{name}" if plugin else name
        self.callable = callable
        self._bind = bind
        # By identity of the kernel. Kernels hold the values, because a function may outlive its kernels.
        self._bound: WeakValueDictionary[int, Function] | None = None if bind is None else WeakValueDictionary()
        self.description = description
        self.parameters = tuple(parameters)
        names = [each.name for each in self.parameters]
        self.is_async = _is_async(callable)
        self.start: Callable[..., Coroutine[Any, Any, Any]] | None = _starter(callable, names)
        self.returns = returns
        self.blocking = blocking
        self.effects = effects
        self.tags = tags
        self.labels = labels
        for word in labels.parameters() if labels is not None else ():
            if word not in names:
                raise ValueError(f"takes of {self.full_name} names {word!r}; it has the parameters {', '.join(names)}")
        self._manual: FunctionSpec | None = None
        self._reading = tuple(
            (each.name, KEPT.get(id(each.compiled.structure)), each.compiled, each.required) for each in self.parameters
        )

    @classmethod
    def of(
        cls, callable: Callable[..., Any], *, plugin: str | None = None, codecs: Iterable[TypeCodec] = ()
    ) -> Function:
        """Make a function from a callable, its hints and its docstring.

        Raises ``SchemaUnsupported`` for a hint without JSON form, and ``TypeError`` for a class, ``*args``,
        ``**kwargs`` and positional-only parameters.
        """
        options: _Options = getattr(callable, _MARK, None) or _Options(None, None, False, False, frozenset())
        codecs = tuple(codecs)
        described = callable
        while isinstance(described, partial):
            described = described.func
        hints = _hints(described)
        documented = describe(described)
        parameters = []
        for parameter in inspect.signature(callable).parameters.values():
            if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                raise TypeError(f"{described!r}: the parameter {parameter} cannot be given by name")
            hint = hints.get(parameter.name, Any)
            compiled = compile_type(hint, codecs)
            required = parameter.default is parameter.empty
            parameters.append(
                Parameter(
                    parameter.name,
                    note(hint)
                    or documented.parameters.get(parameter.name)
                    or str(compiled.schema.get("description", "")),
                    compiled,
                    required,
                    None if required else parameter.default,
                )
            )
        returned = hints.get("return", Any)
        returns = compile_type(returned, codecs)
        if documented.returns and note(returned) is None:
            returns = replace(returns, schema={**returns.schema, "description": documented.returns})
        return cls(
            options.name or str(getattr(described, "__name__", type(described).__name__)),
            callable,
            plugin=plugin,
            description=options.description or documented.description,
            parameters=parameters,
            returns=returns,
            blocking=options.blocking,
            effects=options.effects,
            tags=options.tags,
            labels=options.labels,
        )

    def bound(self, kernel: object) -> Function:
        """Return the function for a kernel: itself, or what ``bind`` makes for the kernel.

        ``bind`` gets the kernel and returns a callable (functions of prompts) or a whole `Function` (plans).
        """
        if self._bind is None or self._bound is None:
            return self
        found = self._bound.get(id(kernel))
        if found is None:
            made = self._bind(kernel)
            if isinstance(made, Function):
                found = made
            else:
                found = copy(self)
                found.callable = made
                found.is_async, found.start = _is_async(made), _starter(made, [each.name for each in self.parameters])
            self._bound[id(kernel)] = found
        return found

    @property
    def spec(self) -> FunctionSpec:
        """The function's manual, made once."""
        # A cached property would make each call slower: it takes the object's dictionary out of CPython's short form.
        if self._manual is None:
            self._manual = self._make_manual()
        return self._manual

    def _make_manual(self) -> FunctionSpec:
        definitions: dict[str, Mapping[str, Any]] = {}
        whole: dict[str, Any] = {
            "type": "object",
            # Two modules may have classes of one name.
            "properties": {each.name: hoist(each.schema, definitions) for each in self.parameters},
            "required": [parameter.name for parameter in self.parameters if parameter.required],
            "additionalProperties": False,
        }
        schema = with_definitions(whole, definitions)
        returns = self.returns.schema
        return FunctionSpec(self.full_name, self.description, schema, returns, self.effects, self.tags, self.labels)

    def structure_arguments(self, arguments: Mapping[str, Any], *, lenient: bool = False) -> dict[str, Any]:
        """Turn JSON arguments into Python values.

        With ``lenient``, for arguments of a model, values that do not fit are converted where nothing is lost. Raises
        ``ArgumentsInvalid`` with every fault: missing, unknown, or not of the type.
        """
        values: dict[str, Any] = {}
        faults: tuple[str, ...] = ()
        for name, kind, compiled, required in self._reading:
            value = arguments.get(name, _ABSENT)
            if type(value) is kind:
                values[name] = value
            elif value is not _ABSENT:
                try:
                    values[name] = structure_leniently(compiled, value) if lenient else compiled.structure(value)
                except Mismatch as error:
                    faults += tuple(f"{name}{str(fault).removeprefix('$')}" for fault in error.faults)
                except RecursionError:
                    faults += (f"{name}: nested too deeply",)
            elif required:
                faults += (f"{name}: missing",)
        if not faults and len(values) == len(arguments):
            return values
        raise ArgumentsInvalid(self.full_name, [*faults, *self._unknown(arguments)])

    def _unknown(self, arguments: Iterable[str]) -> list[str]:
        known = [parameter.name for parameter in self.parameters]
        why = f"unknown; the parameters are {', '.join(known) or 'none'}"
        return [f"{name}: {why}" for name in arguments if name not in known]

    def __repr__(self) -> str:
        return f"Function({self.full_name!r})"


@dataclass(frozen=True, slots=True)
class FunctionPlugin:
    """A named group of functions.

    >>> class Sums:
    ...     '''Sums of numbers.'''
    ...
    ...     @function
    ...     def add(self, a: float, b: float) -> float:
    ...         return a + b
    >>> [function.full_name for function in FunctionPlugin.of(Sums())]
    ['Sums-add']
    """

    name: str
    functions: tuple[Function, ...]
    description: str = ""
    _by_name: Mapping[str, Function] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_name = {function.name: function for function in self.functions}
        if len(by_name) < len(self.functions):
            raise ValueError(f"the plugin {self.name!r} has two functions of one name")
        object.__setattr__(self, "_by_name", by_name)

    @classmethod
    def of(cls, group: object, name: str | None = None, *, codecs: Iterable[TypeCodec] = ()) -> FunctionPlugin:
        """Collect the marked functions of a module, a class or an object, in their order.

        Raises ``ValueError`` when none is marked.
        """
        if isinstance(group, type):
            group = group()
        default = group.__name__.rpartition(".")[2] if isinstance(group, ModuleType) else type(group).__name__
        name = name or default
        names = vars(group) if isinstance(group, ModuleType) else _list_members(type(group))
        members = [
            getattr(group, member)
            for member in names
            if not isinstance(inspect.getattr_static(group, member, None), property | cached_property)
        ]
        functions = tuple(
            Function.of(member, plugin=name, codecs=codecs) for member in members if hasattr(member, _MARK)
        )
        if not functions:
            raise ValueError(f"{name} has no functions: mark them with @function")
        description = inspect.getdoc(group) or ""
        return cls(name, functions, description.partition("\n\n")[0])

    def bound(self, kernel: object) -> FunctionPlugin:
        """Return the plugin for a kernel; see `Function.bound`."""
        functions = tuple(function.bound(kernel) for function in self.functions)
        return self if functions == self.functions else replace(self, functions=functions)

    def __iter__(self) -> Iterator[Function]:
        return iter(self.functions)

    def __getitem__(self, name: str) -> Function:
        return self._by_name[name]


def _is_async(callable: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(callable) or inspect.iscoroutinefunction(type(callable).__call__)


def _starter(own: Callable[..., Any], names: list[str]) -> Any:
    """Return what calls it with a mapping, or None where that might run something before it is awaited."""
    routine = own if isinstance(own, FunctionType | MethodType) else type(own).__call__
    code, bound = getattr(routine, "__code__", None), not isinstance(own, FunctionType)
    if code is None or not code.co_flags & inspect.CO_COROUTINE:
        return None
    # Where its code takes just these, they are given by position: ``**`` takes longer than all else of a call.
    match names if [*code.co_varnames[bound : code.co_argcount]] == names else []:
        case [a]:
            return lambda call, got: call(got[a]) if call is own and len(got) == 1 else call(**got)
        case [a, b]:
            return lambda call, got: call(got[a], got[b]) if call is own and len(got) == 2 else call(**got)
        case [a, b, c]:
            return lambda call, got: call(got[a], got[b], got[c]) if call is own and len(got) == 3 else call(**got)
    return lambda call, got: call(**got)


def _hints(callable: Callable[..., Any]) -> dict[str, Any]:
    if isinstance(callable, type):
        raise TypeError(f"{callable.__qualname__} is a class: FunctionPlugin.of collects its functions")
    target = callable if inspect.isroutine(callable) else type(callable).__call__
    return resolve_hints(target)


def _list_members(kind: type) -> list[str]:
    return list(dict.fromkeys(name for base in reversed(kind.__mro__) for name in vars(base) if name[:2] != "__"))


def _lines(spec: FunctionSpec) -> Iterator[str]:
    yield f"{spec.name.replace('-', '.')}:"
    yield f"  description: {_one_line(spec.description)}".rstrip()
    properties: Mapping[str, Any] = spec.parameters.get("properties", {})
    yield "  inputs:" if properties else "  inputs: none"
    required = spec.parameters.get("required", ())
    for name, schema in properties.items():
        known: Mapping[str, Any] = schema if isinstance(schema, Mapping) else {}
        words = [_one_line(str(known.get("description", "")))]
        if name not in required:
            default = json.dumps(known["default"], ensure_ascii=False) if "default" in known else None
            words.append("(optional)" if default is None else f"(default: {default})")
        yield f"  - {name}: {' '.join(filter(None, words))}".rstrip()


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _match_names(name: str, full_names: Iterable[str], ignore_case: bool) -> list[str]:
    """Find the names that may be meant; models also choose another separator, and begin with ``functions.``."""
    fold = str.casefold if ignore_case else str
    if ignore_case:
        name = fold(_SEPARATORS.sub("_", name.strip())).removeprefix("functions_")
    matches = []
    for full_name in full_names:
        bare = full_name.rpartition("-")[2]
        if name in (fold(bare), fold(full_name.replace("-", "_")), fold(full_name.replace("-", "."))):
            matches.append(full_name)
    return matches
