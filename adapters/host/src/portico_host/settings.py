"""Raw values of the configuration to settings classes, strictly, with every mistake at once."""

from __future__ import annotations

import datetime as dt
import typing
from collections import deque
from collections.abc import (
    Callable,
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
    MutableSequence,
    MutableSet,
    Sequence,
    Set,
)
from enum import Enum
from pathlib import Path
from typing import Any

from cattrs import BaseValidationError, Converter
from cattrs.errors import AttributeValidationNote
from cattrs.gen import make_dict_structure_fn

from portico.errors import SchemaUnsupported
from portico.plugins import Secret
from portico_host.fields import bare, holds_secret, is_settings_class, named_elements, settings_fields, union_members
from portico_host.mistakes import Wrong, kind_of, shown, unknown_word
from portico_host.secret_source import EXPECTED, SecretSource
from portico_host.tree import Given, parsed

__all__ = [
    "SCALARS",
    "Fault",
    "Structurer",
    "Unfit",
    "array_maker",
    "enumeration",
    "expected",
    "is_literal",
    "is_table",
    "literal",
    "nothing",
    "plain",
]

_ARRAYS: Mapping[Any, Callable[[Iterable[Any]], Any]] = {
    list: list,
    tuple: tuple,
    set: set,
    frozenset: frozenset,
    Sequence: tuple,
    Iterable: tuple,
    Set: frozenset,
    MutableSequence: list,
    MutableSet: set,
    deque: deque,
}
_NATIVE: Mapping[Any, str] = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "a string",
    Path: "a path",
    Secret: EXPECTED,
    dt.datetime: "a date and time",
    dt.date: "a date",
    dt.time: "a time",
    None: "nothing",
    type(None): "nothing",
    Any: "any value",
}


def expected(hint: Any) -> str:
    """Say what a setting of this type takes."""
    hint = bare(hint)
    members = union_members(hint)
    if members is not None:
        return " or ".join(dict.fromkeys(expected(m) for m in members if bare(m) is not type(None)))
    if is_literal(hint):
        return _one_of([raw for raw, _ in _literal_pairs(hint)])
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _one_of([member.value for member in hint])
    if array_maker(hint) is not None:
        inner = [argument for argument in typing.get_args(hint) if argument is not Ellipsis]
        return f"an array, each {expected(inner[0])}" if len(inner) == 1 else "an array"
    if hint in _NATIVE:
        return _NATIVE[hint]
    return "a table"


def _boolean(value: Any) -> bool:
    value = parsed(value)
    if not isinstance(value, bool):
        raise Wrong("true or false", shown(value))
    return value


def _integer(value: Any) -> int:
    value = parsed(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise Wrong("an integer", shown(value))
    return value


def _number(value: Any) -> float:
    value = parsed(value)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise Wrong("a number", shown(value))
    try:
        return float(value)
    except OverflowError:
        raise Wrong("a number", "an integer too large for one") from None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Wrong("a string", shown(value))
    return str(value)


def nothing(value: Any) -> None:
    """Accept None only."""
    if value is not None:
        raise Wrong("nothing", kind_of(value))


def plain(value: Any) -> Any:
    """Return a value without the marks of where it came from."""
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return str(value) if isinstance(value, str) else value


def _native(kind: type[Any]) -> Callable[[Any], Any]:
    def structure(value: Any) -> Any:
        value = parsed(value)
        # A datetime is a date to Python; to TOML it is not.
        if not isinstance(value, kind) or (kind is dt.date and isinstance(value, dt.datetime)):
            raise Wrong(_NATIVE[kind], shown(value))
        return value

    return structure


def _choose(value: Any, options: Sequence[tuple[Any, Any]], one_of: str) -> Any:
    for candidate in (plain(value), plain(parsed(value))):
        for raw, option in options:
            if type(raw) is type(candidate) and raw == candidate:
                return option
    raise Wrong(one_of, shown(value))


def literal(hint: Any) -> Callable[[Any, Any], Any]:
    """Return the reader of a ``Literal``."""
    pairs = _literal_pairs(hint)
    words = _one_of([raw for raw, _ in pairs])
    options = typing.get_args(hint)
    return lambda value, _: value if isinstance(value, Enum) and value in options else _choose(value, pairs, words)


def _literal_pairs(hint: Any) -> list[tuple[Any, Any]]:
    """Return what a file says for each option of a ``Literal``, with the option; of an ``Enum`` the value."""
    options = typing.get_args(hint)
    return [(option.value if isinstance(option, Enum) else option, option) for option in options]


def enumeration(hint: Any) -> Callable[[Any, Any], Any]:
    """Return the reader of an ``Enum``: by value, and a member as it is."""
    pairs = [(member.value, member) for member in hint]
    words = _one_of([member.value for member in hint])
    return lambda value, _: value if isinstance(value, hint) else _choose(value, pairs, words)


def _one_of(options: Iterable[Any]) -> str:
    return "one of " + ", ".join(
        str(option).lower() if isinstance(option, bool) else repr(option) for option in options
    )


def array_maker(hint: Any) -> Callable[[Iterable[Any]], Any] | None:
    """Return what makes the collection of an array type, None for other types."""
    hint = bare(hint)
    if named_elements(hint) is not None:
        make: Callable[[Iterable[Any]], Any] = hint._make
        return make
    return _ARRAYS.get(typing.get_origin(hint) or hint) if _hashable(hint) else None


def is_literal(hint: Any) -> bool:
    """Return whether it is a ``Literal``."""
    origin: Any = typing.get_origin(hint)
    return origin is typing.Literal


def is_table(hint: Any) -> bool:
    """Return whether it is a type of open tables, any key to one type of value."""
    return (typing.get_origin(hint) or hint) in (dict, Mapping, MutableMapping)


def _hashable(hint: Any) -> bool:
    try:
        hash(hint)
    except TypeError:
        return False
    return True


SCALARS: Mapping[type[Any], Callable[[Any], Any]] = {
    bool: _boolean,
    int: _integer,
    float: _number,
    str: _text,
    dt.datetime: _native(dt.datetime),
    dt.date: _native(dt.date),
    dt.time: _native(dt.time),
}
"""The readers of scalar types; each raises `Wrong`."""


Fault: typing.TypeAlias = tuple[tuple[str, ...], str]
"""A key inside the settings, and a sentence about it."""

_MAXIMUM_DEPTH = 50


class Unfit(Exception):
    """Settings do not fit their class; ``faults`` are all of them."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(f"{'.'.join(key)}: {sentence}" for key, sentence in self.faults))


class Structurer:
    """Structure raw values with cattrs, made strict.

    An integer is not a boolean, a number is not cut to an integer, a string is a string, an unknown key is a
    mistake. Relative paths of the file are relative to ``folder``; those of the environment and of overrides
    to the working directory.
    """

    def __init__(self, secrets: SecretSource, folder: Path) -> None:
        self._secrets = secrets
        self._folder = folder
        self._converter = Converter(
            forbid_extra_keys=True, use_alias=True, structure_fallback_factory=_unsupported, detailed_validation=True
        )
        for kind in SCALARS:
            self._converter.register_structure_hook(kind, _scalar(kind, SCALARS[kind]))
        self._converter.register_structure_hook(Path, _scalar(Path, self._path))
        for kind in (bytes, complex):
            self._converter.register_structure_hook(kind, _refused)
        register = self._converter.register_structure_hook_factory
        register(lambda hint: hint in (Secret, None, type(None), Any), self._special)
        register(lambda hint: isinstance(hint, type) and issubclass(hint, Enum), enumeration)
        register(is_literal, literal)
        register(lambda hint: array_maker(hint) is not None, self._array)
        register(is_table, self._table)
        register(is_settings_class, self._class)
        register(lambda hint: union_members(hint) is not None, self._union)
        register(lambda hint: bare(hint) is not hint, lambda hint: self._hook(bare(hint)))

    def structure(self, cls: type[Any], values: Mapping[str, Any]) -> Any:
        """Return an instance of ``cls``.

        Raises `Unfit` with every fault, and ``SchemaUnsupported`` for a field type that no file can hold.
        Nothing raised carries a secret, nor the original error that might.
        """
        faults: list[Fault]
        try:
            if _too_deep(values):
                raise Wrong(f"at most {_MAXIMUM_DEPTH} levels", "more")
            return self._converter.structure(values, cls)
        except Exception as error:  # noqa: BLE001 - validators of strangers raise what they like
            unsupported = _unsupported_in(error)
            faults = list(_flatten(error, ()))
        if unsupported is not None:
            raise unsupported
        raise Unfit([(key, self._secrets.scrub(sentence)) for key, sentence in faults])

    def scrub(self, text: str) -> str:
        """Replace in a text every secret that was made here."""
        return self._secrets.scrub(text)

    def _hook(self, hint: Any) -> Callable[[Any, Any], Any]:
        return self._converter.get_structure_hook(hint)

    def _special(self, hint: Any) -> Callable[[Any, Any], Any]:
        if hint is Secret:
            return lambda value, _: self._secrets.make(value)
        if hint is Any:
            return lambda value, _: plain(value)
        return lambda value, _: nothing(value)

    def _path(self, value: Any) -> Path:
        if isinstance(value, Path):
            return value
        if not isinstance(value, str) or not value or "\0" in value:
            raise Wrong("a path", shown(value))
        try:
            path = Path(str(value)).expanduser()
        except RuntimeError:
            raise Wrong(sentence=f"the home folder of {shown(value)} is not known.") from None
        return (Path.cwd() if isinstance(value, Given) else self._folder) / path

    def _array(self, hint: Any) -> Callable[[Any, Any], Any]:
        make = array_maker(hint)
        assert make is not None  # noqa: S101 - the predicate of this factory
        named = named_elements(hint)
        arguments = typing.get_args(hint) if named is None else named
        fixed = named is not None or (typing.get_origin(hint) is tuple and Ellipsis not in arguments)
        arguments = arguments or (() if fixed else (Any,))
        hints = arguments if fixed else (arguments[0],)

        def structure(value: Any, _: Any) -> Any:
            value = parsed(value)
            if not isinstance(value, list | tuple):
                raise Wrong(expected(hint), kind_of(value))
            if fixed and len(value) != len(hints):
                raise Wrong(f"an array of {len(hints)} elements", f"one of {len(value)}")
            each = hints if fixed else hints * len(value)
            return make(self._each(((str(i), h, v) for i, (h, v) in enumerate(zip(each, value, strict=True)))).values())

        return structure

    def _table(self, hint: Any) -> Callable[[Any, Any], Any]:
        key_hint, value_hint = typing.get_args(hint) or (str, Any)
        if bare(key_hint) is not str:
            raise SchemaUnsupported(f"The keys of a table are strings, not {key_hint!r}.")

        def structure(value: Any, _: Any) -> Any:
            value = parsed(value)
            if not isinstance(value, Mapping):
                raise Wrong(expected(hint), kind_of(value))
            return self._each((str(key), value_hint, part) for key, part in value.items())

        return structure

    def _class(self, cls: Any) -> Callable[[Any, Any], Any]:
        fields = settings_fields(cls)
        known = [field.key for field in fields]
        inner = make_dict_structure_fn(
            cls,
            self._converter,
            _cattrs_forbid_extra_keys=False,
            _cattrs_use_alias=True,
            _cattrs_detailed_validation=True,
        )

        def structure(value: Any, _: Any) -> Any:
            value = parsed(value)
            if not isinstance(value, Mapping):
                raise Wrong("a table", kind_of(value))
            faults: list[Fault] = [
                ((str(key),), unknown_word(str(key), known, "a setting here")) for key in value if key not in known
            ]
            missing = [field for field in fields if field.required and field.key not in value]
            faults += [
                ((field.key,), f"is missing; expected {expected(field.hint)}{_about(field.doc)}.") for field in missing
            ]
            if not faults:
                try:
                    return inner(value, cls)
                except Exception as error:  # noqa: BLE001 - as in structure
                    unsupported = _unsupported_in(error)
                    faults = [_at_field(fault, known) for fault in _flatten(error, ())]
                raise unsupported or Unfit(faults)
            # The values that are there are tried too, so that one run tells everything.
            for field in fields:
                if field.key in value:
                    try:
                        self._hook(field.hint)(value[field.key], field.hint)
                    except SchemaUnsupported:
                        raise
                    except Exception as error:  # noqa: BLE001 - as in structure
                        faults += _flatten(error, (field.key,))
            raise Unfit(faults)

        return structure

    def _union(self, hint: Any) -> Callable[[Any, Any], Any]:
        members = union_members(hint) or ()
        some = [member for member in members if bare(member) is not type(None)]
        hooks = [(member, self._hook(member)) for member in some]

        def structure(value: Any, _: Any) -> Any:
            if value is None and len(some) < len(members):
                return None
            if len(hooks) == 1:
                return hooks[0][1](value, hooks[0][0])
            if isinstance(value, Given) and any(bare(member) is str for member in some):
                return str(value)
            for member, hook in hooks:
                try:
                    return hook(value, member)
                except SchemaUnsupported:
                    raise
                except Exception:  # noqa: BLE001, S112 - the next alternative may fit
                    continue
            raise Wrong(expected(hint), kind_of(value) if holds_secret(hint) else shown(value))

        return structure

    def _each(self, parts: Iterable[tuple[str, Any, Any]]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        faults: list[Fault] = []
        for key, hint, value in parts:
            try:
                made[key] = self._hook(hint)(value, hint)
            except SchemaUnsupported:
                raise
            except Exception as error:  # noqa: BLE001 - every fault is collected
                faults += _flatten(error, (key,))
        if faults:
            raise Unfit(faults)
        return made


def _flatten(error: BaseException, key: tuple[str, ...]) -> Iterator[Fault]:
    if isinstance(error, Unfit):
        yield from (((*key, *inner), sentence) for inner, sentence in error.faults)
    elif isinstance(error, BaseValidationError):
        for part in error.exceptions:
            names = [note.name for note in getattr(part, "__notes__", ()) if isinstance(note, AttributeValidationNote)]
            yield from _flatten(part, (*key, *(name.lstrip("_") for name in names[:1])))
    elif isinstance(error, Wrong):
        yield key, error.sentence
    else:
        # A validator of the settings class; attrs' own put the offending value behind the sentence.
        text = error.args[0] if error.args and isinstance(error.args[0], str) else type(error).__name__
        yield key, text if text.endswith((".", "!", "?")) else f"{text}."


def _at_field(fault: Fault, known: Sequence[str]) -> Fault:
    """Move what a validator says of the whole to the field with which its sentence begins."""
    key, sentence = fault
    first = sentence.partition(" ")[0].strip("'\"`")
    return ((first,), sentence) if not key and first in known else fault


def _unsupported_in(error: BaseException) -> SchemaUnsupported | None:
    """Find the mistake of a settings class itself, inside the groups that cattrs makes."""
    if isinstance(error, SchemaUnsupported):
        return SchemaUnsupported(str(error))
    parts = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    return next((found for found in map(_unsupported_in, parts) if found is not None), None)


def _scalar(kind: type[Any], read: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a hook for exactly ``kind``; cattrs hands it that of subclasses too, such as an ``IntEnum``."""

    def structure(value: Any, hint: Any) -> Any:
        hint = bare(hint)
        if hint is kind:
            return read(value)
        if isinstance(hint, type) and issubclass(hint, Enum):
            return enumeration(hint)(value, hint)
        return _refused(value, hint)

    return structure


def _refused(value: Any, hint: Any) -> Any:
    raise SchemaUnsupported(f"A setting cannot be of the type {hint!r}.")


def _about(doc: str) -> str:
    return f" ({doc.strip().rstrip('.')})" if doc.strip() else ""


def _unsupported(hint: Any) -> Callable[[Any, Any], Any]:
    return _refused


def _too_deep(value: Any, depth: int = 0) -> bool:
    if depth > _MAXIMUM_DEPTH:
        return True
    parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return any(_too_deep(part, depth + 1) for part in parts)
